"""Cells that split and merge, one after the other or in independent sets."""
