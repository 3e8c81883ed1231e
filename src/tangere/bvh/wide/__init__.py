"""Trees with eight children in each node, for CPUs: a box against all eight by a few vector instructions."""

from tangere.bvh.wide.layout import level_offsets
from tangere.bvh.wide.moving import CONE_ROWS, MovingWideBvh, cone_rows
from tangere.bvh.wide.order import compact_order
from tangere.bvh.wide.records import AabbRecord, FitFrame, records_meet
from tangere.bvh.wide.simd_descent import DESCENT_STATE, begin_descent, meeting_clusters, meeting_of, next_cluster
from tangere.bvh.wide.simd_fit import fit_rows, vertex_at
from tangere.bvh.wide.tree import FIT_GRAIN, WideBvh, WideBvhBoxes

__all__ = [
    "CONE_ROWS",
    "DESCENT_STATE",
    "FIT_GRAIN",
    "AabbRecord",
    "FitFrame",
    "MovingWideBvh",
    "WideBvh",
    "WideBvhBoxes",
    "begin_descent",
    "compact_order",
    "cone_rows",
    "fit_rows",
    "level_offsets",
    "meeting_clusters",
    "meeting_of",
    "next_cluster",
    "records_meet",
    "vertex_at",
]
