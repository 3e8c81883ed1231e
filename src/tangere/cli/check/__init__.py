"""`tangere check`: a part along its path, or a robot along its trajectory."""

from tangere.cli.check.part import check

__all__ = ["check"]
