"""Twins for CUDA."""
