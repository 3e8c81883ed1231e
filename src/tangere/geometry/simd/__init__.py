"""Eight or four lanes at a time on CPUs: C++ texts that native Warp functions of engines are put together from."""

from tangere.geometry.simd.boxes import MOVING_BOXES, STATIC_BOXES
from tangere.geometry.simd.closest_points import POINT_TRIANGLE, SEGMENT_SEGMENT
from tangere.geometry.simd.vectors import ROWS, VECTORS, lanes_by_mask

__all__ = [
    "MOVING_BOXES",
    "POINT_TRIANGLE",
    "ROWS",
    "SEGMENT_SEGMENT",
    "STATIC_BOXES",
    "VECTORS",
    "lanes_by_mask",
]
