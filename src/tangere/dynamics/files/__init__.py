"""Worlds from files and to files."""
