"""Parts with their trees, kept in one file."""

from tangere.bvh.prepared.part_file import load_part, save_part

__all__ = [
    "load_part",
    "save_part",
]
