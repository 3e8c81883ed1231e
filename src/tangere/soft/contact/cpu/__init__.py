"""Searches for contacts on CPU, eight candidates at a time."""
