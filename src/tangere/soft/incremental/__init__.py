"""Cuts that write only what they touch: rows of dofs, faces and trees, in arrays with room, with a log to undo them."""

from tangere.soft.incremental.in_place import InPlaceUpdate

__all__ = ["InPlaceUpdate"]
