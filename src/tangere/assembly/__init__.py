"""CAD assemblies: which parts clash, how, how deep, and which of them come out which way."""

from tangere.assembly.assembly import Assembly
from tangere.assembly.clash import Clash, Clashes, ClashKind
from tangere.assembly.part import Part
from tangere.assembly.removal import Removal, Removals

__all__ = [
    "Assembly",
    "Clash",
    "ClashKind",
    "Clashes",
    "Part",
    "Removal",
    "Removals",
]
