"""Capsules whose axes cross, are parallel, coaxial, concentric or points: distances of segments to fifty digits."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import tangere as tg

#: Relative to the size of both bodies.
LEAST = 1e-10
FAMILIES = ("any", "crossing", "ends", "parallel", "nearly_parallel", "coaxial", "concentric", "points")


def family(name: str, count: int, rng: np.random.Generator):
    """Radii (2, n), half lengths (2, n) and poses (2, n, 4, 4) of two capsules that overlap."""
    radius, half = rng.uniform(0.1, 0.5, (2, count)), rng.uniform(0.2, 1.0, (2, count))
    places = np.tile(np.eye(4), (2, count, 1, 1))
    places[..., :3, :3] = Rotation.random(2 * count, rng=rng).as_matrix().reshape(2, count, 3, 3)
    off = rng.normal(size=(count, 3)) * 0.2
    u, w = places[..., :3, 2]
    tiny = np.where(rng.random(count) < 0.2, 0.0, 10.0 ** rng.uniform(-14.0, -1.0, count))[:, None]
    if name in ("crossing", "ends"):
        across = np.cross(u, w)
        s, t = (rng.uniform(-1.0, 1.0, (count, 1)) * each[:, None] for each in half)
        if name == "ends":
            s = half[0][:, None] * rng.choice([-1.0, 1.0], (count, 1))
        off = s * u - t * w + tiny * across / np.linalg.norm(across, axis=1)[:, None]
    if name in ("parallel", "nearly_parallel", "coaxial"):
        places[1, :, :3, :3] = places[0, :, :3, :3]
        off = np.where(name == "coaxial", rng.normal(size=(count, 1)) * u, off)
    if name == "nearly_parallel":
        lean = Rotation.from_rotvec(rng.normal(size=(count, 3)) * tiny).as_matrix()
        places[1, :, :3, :3] = lean @ places[1, :, :3, :3]
    if name == "concentric":
        off = 0.0 * off
    if name == "points":
        half[:, rng.random(count) < 0.5] = 1e-300
        half[0] = 1e-300
        half[1, 0] = 1.0  # of a batch without any length the cores are points
    places[0, :, :3, 3] = rng.normal(size=(count, 3))
    places[1, :, :3, 3] = places[0, :, :3, 3] + off
    return radius, half, places


def apart_of(u, w, d, one, other):
    """The least |d + t w - s u| for |s| <= one, |t| <= other, and where it is: all candidates, by fifty digits."""

    def dot(x, y):
        return sum(p * q for p, q in zip(x, y, strict=True))

    def clamped(x, most):
        return min(max(x, -most), most)

    uu, ww, uw, du, dw = dot(u, u), dot(w, w), dot(u, w), dot(d, u), dot(d, w)
    places = []
    for s in (-one, one):
        places.append((s, clamped((s * uw - dw) / ww, other)))
    for t in (-other, other):
        places.append((clamped((t * uw + du) / uu, one), t))
    det = uu * ww - uw * uw
    if det > Decimal(10) ** -40:
        s, t = (du * ww - dw * uw) / det, (du * uw - dw * uu) / det
        if abs(s) <= one and abs(t) <= other:
            places.append((s, t))
    ways = [[d[k] + t * w[k] - s * u[k] for k in range(3)] for s, t in places]
    return min(((dot(way, way).sqrt(), way) for way in ways), key=lambda each: each[0])


@pytest.mark.parametrize("name", FAMILIES)
def test_capsules_part_by_their_radii_less_what_their_axes_are_apart(rng, effort, device, name):
    count = effort(400, 60)
    radius, half, places = family(name, count, rng)
    placed = [tg.Capsule(radius[k], 2.0 * half[k]).at(places[k]) for k in (0, 1)]
    found = tg.manifold(*placed, distance=0.0, device=device)
    gap, normal = np.full(count, np.inf), np.zeros((count, 3))
    np.minimum.at(gap, found.query, found.gap)
    normal[found.query] = found.normal
    compared = 0
    with localcontext(prec=50):
        for row in range(count):
            u, w = ([Decimal(float(x)) for x in places[k, row, :3, 2]] for k in (0, 1))
            d = [Decimal(float(y)) - Decimal(float(x)) for x, y in zip(*places[:, row, :3, 3], strict=True)]
            apart, way = apart_of(u, w, d, *(Decimal(float(each)) for each in half[:, row]))
            margins, size = float(radius[:, row].sum()), float(radius[:, row].sum() + half[:, row].sum())
            if abs(float(apart) - margins) <= LEAST * size:
                continue
            if apart > margins:
                assert np.isinf(gap[row])
                continue
            compared += 1
            assert gap[row] == pytest.approx(float(apart) - margins, abs=LEAST * size)
            assert np.linalg.norm(normal[row]) == pytest.approx(1.0, abs=1e-14)
            lean = [float(half[k, row] * abs(normal[row] @ places[k, row, :3, 2])) for k in (0, 1)]
            past = sum(lean) + margins + float(normal[row] @ (places[1, row, :3, 3] - places[0, row, :3, 3]))
            assert -gap[row] >= past - LEAST * size  # moved so far, they are apart
            if apart > 1e-7 * size:
                expected = [float(-x / apart) for x in way]
                assert normal[row] == pytest.approx(expected, abs=1e-8)
    assert compared > count // 4
