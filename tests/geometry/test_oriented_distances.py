"""Lower bounds of the distances of one oriented box from eight, in float32, against points of both in float64."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from scipy.spatial.transform import Rotation

from tangere.geometry.simd import ROWS
from tangere.geometry.simd.oriented_boxes import ORIENTED_DISTANCES
from tangere.runtime import SOUND, launch

wp.set_module_options(SOUND)

#: What float32 does to products, in the text; and a text that does not count it.
ROOM = "0x1p-19f * (ways + sizes)"

_CODE = """
    const float* of_c = &boxes.data[15 * i];
    const float* of_h = of_c + 3;
    Axes* of_m = (Axes*)(of_c + 6);
    Lane length;
    const Lane bound = oriented_distances((const Lane*)&rows.data[136 * i], of_c, of_m, of_h, slacks.data[i], length);
    for (int lane = 0; lane < 8; ++lane)
        out.data[8 * i + lane] = bound[lane];
"""


@wp.func_native(ROWS + ORIENTED_DISTANCES + _CODE)
def bounds_of(
    rows: wp.array[wp.float32], boxes: wp.array[wp.float32], slacks: wp.array[wp.float32], i: int, out: wp.array[float]
): ...


@wp.func_native(ROWS + ORIENTED_DISTANCES.replace(ROOM, "0.0f") + _CODE)
def bounds_without_room(
    rows: wp.array[wp.float32], boxes: wp.array[wp.float32], slacks: wp.array[wp.float32], i: int, out: wp.array[float]
): ...


@wp.kernel
def _bounds(
    first: int,
    rows: wp.array[wp.float32],
    boxes: wp.array[wp.float32],
    slacks: wp.array[wp.float32],
    room: int,
    out: wp.array[float],
):
    i = first + wp.tid()
    if room == 1:
        bounds_of(rows, boxes, slacks, i, out)
    else:
        bounds_without_room(rows, boxes, slacks, i, out)


class Boxes:
    """Boxes along coordinate axes in eights, whose records are exact, and of each eight one that is turned."""

    def __init__(self, rng, count: int, away: float, scale: float) -> None:
        self.centres = np.float32(scale * (rng.normal(size=(count, 8, 3)) + away))
        self.halves = np.float32(scale * rng.random((count, 8, 3)) * 10.0 ** rng.uniform(-2, 0, (count, 8, 3)))
        self.axes = Rotation.random(count, random_state=rng).as_matrix()  # of the one, in rows
        nearly = rng.random(count) < 0.3
        lean = Rotation.from_rotvec(rng.normal(size=(count, 3)) * 10.0 ** rng.uniform(-8, -2, (count, 1))).as_matrix()
        self.axes[nearly] = lean[nearly]
        self.half = np.float32(scale * rng.random((count, 3)))
        self.centre = scale * (rng.normal(size=(count, 3)) * 2.0 + away)
        # The first of the eight is a hair from the face of one that has nearly its axes: there the bound is tight.
        hair = scale * 10.0 ** rng.uniform(-6, -2, count)
        beside = self.centres[:, 0].astype(float)
        beside[:, 0] += self.halves[:, 0, 0] + np.abs(self.axes[:, :, 0] * self.half).sum(axis=1) + hair
        self.centre[nearly] = beside[nearly]
        self.slack = np.float32(2.0**-22 * scale * (abs(away) + 5.0)) * np.ones(count, np.float32)

    def bounds(self, *, room: bool = True, slack: bool = True) -> np.ndarray:
        """(n, 8) what the text tells."""
        count = len(self.centre)
        rows = np.zeros((count, 17, 8), np.float32)
        rows[:, 0:3], rows[:, 3:6] = self.centres.transpose(0, 2, 1), self.halves.transpose(0, 2, 1)
        for k in range(3):
            rows[:, 6 + 4 * k] = 1.0
        boxes = np.concatenate([self.centre, self.half, self.axes.reshape(-1, 9)], axis=1).astype(np.float32)
        out = wp.zeros(8 * count, dtype=wp.float32, device="cpu")
        arrays = [wp.array(x.ravel(), device="cpu") for x in (rows, boxes, self.slack * slack)]
        launch(_bounds, count, [*arrays, int(room)], [out], device=wp.get_device("cpu"))
        return out.numpy().reshape(count, 8).astype(float)

    def distances(self) -> np.ndarray:
        """(n, 8) not smaller than the true ones, and nearly as small: projections on both boxes in turn."""
        x = np.broadcast_to(self.centre[:, None], self.centres.shape).copy()
        half = self.half.astype(float)[:, None]
        low, high = self.centres - self.halves.astype(float), self.centres + self.halves.astype(float)
        for _ in range(300):
            on_eight = np.clip(x, low, high)
            local = np.einsum("nki,nli->nlk", self.axes, on_eight - self.centre[:, None])
            x = self.centre[:, None] + np.einsum("nki,nlk->nli", self.axes, np.clip(local, -half, half))
        return np.linalg.norm(x - on_eight, axis=2)


@pytest.mark.parametrize(("away", "scale"), [(0.0, 1.0), (1e4, 1.0), (0.0, 1e-8), (0.0, 1e14), (300.0, 1e-6)])
def test_bounds_are_never_above_the_distance_of_the_boxes(rng, effort, away, scale):
    boxes = Boxes(rng, effort(400), away, scale)
    true = boxes.distances()
    bounds = boxes.bounds()
    assert (bounds <= true).all()
    apart = true > 1e-3 * scale + 100.0 * boxes.slack[:, None]
    assert apart.any()
    assert (bounds[apart] > 0.5 * true[apart]).mean() > 0.9


def test_without_room_for_products_some_bounds_are_too_large(rng, effort):
    boxes = Boxes(rng, effort(400, least=200), 0.0, 1.0)
    assert (boxes.bounds(room=False, slack=False) > boxes.distances()).sum() > 10


def test_without_slack_for_centres_some_bounds_are_too_large(rng, effort):
    boxes = Boxes(rng, effort(400, least=200), 1e4, 1.0)
    assert (boxes.bounds(slack=False) > boxes.distances()).sum() > 10
