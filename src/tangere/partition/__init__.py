"""Who is near whom: the step of moving meshes, and the pairs of their pieces that may meet."""

from tangere.partition.step import Body, FittedBody, Step
from tangere.partition.tree_pairs import Side, pairs

__all__ = ["Body", "FittedBody", "Side", "Step", "pairs"]
