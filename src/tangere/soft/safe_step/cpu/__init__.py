"""Searches and certificates of the safe step on CPU, eight at a time."""
