"""Worlds from files."""
