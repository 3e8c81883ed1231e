"""Procedural terrains, in metres: same arguments, same bits.

All cover `size` = (along x, along y) with square cells of side `cell` and start at the origin. Steps (kerbs, stairs,
blocks) rise within one cell: heights are a function of the place.
"""

from __future__ import annotations

import math

import numpy as np

from tangere.runtime import InputError, described, positive, positives, random_source
from tangere.shape.heightfield.heightfield import Heightfield


def flat(size: tuple[float, float] = (20.0, 20.0), cell: float = 0.1) -> Heightfield:
    """Level ground at height 0."""
    x, y = _places("flat", size, cell)
    return Heightfield(np.zeros((len(y), len(x))), cell, name="flat")


def slope(
    size: tuple[float, float] = (20.0, 20.0), cell: float = 0.1, *, angle: float = 0.2, heading: float = 0.0
) -> Heightfield:
    """A plane.

    Args:
        angle: how steep, in (-pi/2, pi/2) [rad].
        heading: the direction in which it rises, from the x axis [rad].
    """
    if not abs(angle) < 0.5 * math.pi:
        raise InputError(f"slope: the angle must be between -pi/2 and pi/2, not {described(angle)}")
    x, y = _places("slope", size, cell)
    rise = math.tan(angle)
    heights = rise * math.cos(heading) * x[None, :] + rise * math.sin(heading) * y[:, None]
    return Heightfield(heights, cell, name="slope")


def fractal(
    size: tuple[float, float] = (20.0, 20.0),
    cell: float = 0.1,
    *,
    seed: int = 0,
    deviation: float = 0.5,
    roughness: float = 1.0,
    longest: float | None = None,
) -> Heightfield:
    """Rough ground: random waves whose amplitude falls with a power of their number.

    Args:
        deviation: standard deviation of the heights [m].
        roughness: Hurst exponent; 0.5 is rugged, 1 is open country, 2 is smooth.
        longest: waves are no longer than this [m]; None means half of the size.
    """
    x, y = _places("fractal", size, cell)
    count = len(y), len(x)
    rng = random_source(seed, "fractal: seed")
    along_y, along_x = np.fft.fftfreq(count[0], cell), np.fft.fftfreq(count[1], cell)
    frequency = np.hypot(along_y[:, None], along_x[None, :])
    lowest = 1.0 / (0.5 * max(size) if longest is None else longest)
    with np.errstate(divide="ignore"):
        amplitude = np.where(frequency >= lowest, frequency ** -(roughness + 1.0), 0.0)
    waves = np.fft.ifft2(amplitude * np.exp(2j * np.pi * rng.random(count))).real
    spread = waves.std()
    return Heightfield(waves * (deviation / spread if spread > 0.0 else 0.0), cell, name="fractal")


def dunes(
    size: tuple[float, float] = (40.0, 40.0),
    cell: float = 0.1,
    *,
    seed: int = 0,
    height: float = 1.5,
    length: float = 12.0,
) -> Heightfield:
    """Sand dunes: long windward and short lee slopes, in rows that wander and change in height.

    Args:
        height: of the crests, about [m].
        length: from crest to crest [m].
    """
    x, y = _places("dunes", size, cell)
    rng = random_source(seed, "dunes: seed")
    wander, change = (_smooth_noise(rng, x, y, 2.5 * length) for _ in range(2))
    phase = (x[None, :] / length + 0.35 * wander) % 1.0
    windward = 0.75
    rise = np.where(phase < windward, phase / windward, (1.0 - phase) / (1.0 - windward))
    crest = 0.5 - 0.5 * np.cos(np.pi * rise)
    return Heightfield(height * (1.0 + 0.3 * change) * crest, cell, name="dunes")


def kerbs(
    size: tuple[float, float] = (20.0, 20.0),
    cell: float = 0.1,
    *,
    height: float = 0.15,
    road: float = 4.0,
    pavement: float = 2.0,
) -> Heightfield:
    """Roads along y, with raised pavements between them.

    Args:
        height: of a kerb [m].
        road, pavement: their widths [m].
    """
    x, y = _places("kerbs", size, cell)
    raised = (x + 1e-9) % (road + pavement) >= road
    return Heightfield(np.tile(np.where(raised, height, 0.0), (len(y), 1)), cell, name="kerbs")


def stairs(
    size: tuple[float, float] = (10.0, 4.0), cell: float = 0.05, *, rise: float = 0.17, tread: float = 0.3
) -> Heightfield:
    """A flight of steps up along x.

    Args:
        rise, tread: height and depth of a step [m].
    """
    x, y = _places("stairs", size, cell)
    return Heightfield(np.tile(rise * np.floor((x + 1e-9) / tread), (len(y), 1)), cell, name="stairs")


def city_blocks(
    size: tuple[float, float] = (60.0, 60.0),
    cell: float = 0.25,
    *,
    seed: int = 0,
    block: float = 12.0,
    street: float = 6.0,
    kerb: float = 0.15,
    tallest: float = 20.0,
) -> Heightfield:
    """Streets in a grid, a pavement around each block, and a building on it.

    Args:
        block, street: widths [m]; a pavement takes 1.5 m of a block on every side.
        kerb: height of the pavement [m].
        tallest: highest building [m].
    """
    x, y = _places("city_blocks", size, cell)
    pitch = block + street
    rng = random_source(seed, "city_blocks: seed")
    roofs = rng.uniform(0.2 * tallest, tallest, (int(y[-1] / pitch) + 1, int(x[-1] / pitch) + 1))
    at_x, at_y = x % pitch, y % pitch
    on_block = (at_x < block)[None, :] & (at_y < block)[:, None]
    inner = [(at > 1.5) & (at < block - 1.5) for at in (at_x, at_y)]
    roof = roofs[(y / pitch).astype(int)[:, None], (x / pitch).astype(int)[None, :]]
    heights = np.where(inner[0][None, :] & inner[1][:, None], roof, np.where(on_block, kerb, 0.0))
    return Heightfield(heights, cell, name="city blocks")


def _places(ground: str, size: tuple[float, float], cell: float) -> tuple[np.ndarray, np.ndarray]:
    """x of the columns and y of the rows."""
    sides, cell = positives(size, f"{ground}: size", 2), positive(cell, f"{ground}: cell")
    if cell > min(sides):
        raise InputError(f"{ground}: a terrain of size {size} cannot have cells of {cell} m")
    columns, rows = (round(side / cell) for side in sides)
    return cell * np.arange(columns + 1), cell * np.arange(rows + 1)


def _smooth_noise(rng: np.random.Generator, x: np.ndarray, y: np.ndarray, length: float) -> np.ndarray:
    """Random heights in [-1, 1] that change over `length`: a cubic blend between the vertices of a coarse grid."""
    rows, columns = int(y[-1] / length) + 2, int(x[-1] / length) + 2
    knots = rng.uniform(-1.0, 1.0, (rows, columns))
    i, j = (v / length for v in (y, x))
    a, b = i.astype(int), j.astype(int)
    s, t = (v * v * (3.0 - 2.0 * v) for v in (i - a, j - b))
    upper = knots[a][:, b] * (1.0 - t) + knots[a][:, b + 1] * t
    lower = knots[a + 1][:, b] * (1.0 - t) + knots[a + 1][:, b + 1] * t
    return upper * (1.0 - s)[:, None] + lower * s[:, None]
