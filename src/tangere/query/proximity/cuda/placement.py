"""Vertices put in the order of their trees on CUDA, and their boxes."""

from __future__ import annotations

from typing import Any

import warp as wp

from tangere.bvh.lbvh import LERP_ERROR, UNDERFLOW, Frame, code_below
from tangere.bvh.wide import AabbRecord
from tangere.query.proximity.cuda.lbvh import CudaLbvhBoxes
from tangere.query.proximity.feature_trees import FeatureTrees, PlacedVertices
from tangere.runtime import SOUND

wp.set_module_options(SOUND)


def place_launch(
    trees: FeatureTrees, placed: PlacedVertices, positions: wp.array, distance: float, frame: Frame
) -> tuple[wp.Kernel, int, list[Any]]:
    """Kernel, number of indices and arguments of the launch that places vertices and makes their boxes.

    Args:
        positions: of all vertices of a scene, (v,) vec3d [m].
        frame: where boxes are kept.
    """
    assert isinstance(placed.vertices, CudaLbvhBoxes)
    inputs = [positions, trees.vertices.numbers, 0.5 * distance, wp.vec3d(*frame.origin), frame.scale]
    return _place, trees.count, [*inputs, placed.positions, placed.vertices.items]


@wp.kernel
def _place(
    first: int,
    positions: wp.array[wp.vec3d],
    numbers: wp.array[int],
    margin: wp.float64,
    origin: wp.vec3d,
    scale: wp.float64,
    placed: wp.array[wp.vec3d],
    boxes: wp.array[AabbRecord],
):
    i = first + wp.tid()
    p = positions[numbers[i]]
    placed[i] = p
    box = AabbRecord()
    for k in range(3):
        room = LERP_ERROR * (wp.abs(p[k]) + wp.abs(origin[k]) + margin) + margin + UNDERFLOW
        box[k] = code_below((p[k] - origin[k] - room) * scale)
        box[3 + k] = code_below((origin[k] - p[k] - room) * scale)
    boxes[i] = box
