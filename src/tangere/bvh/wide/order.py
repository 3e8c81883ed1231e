"""An order of things in space in which neighbours make small boxes, for trees whose nodes are all full.

Question: which eight, 64, 512, ... neighbours belong together?
Method:   the order of a k-d tree whose halves are cut at a power of two, along the longest side of the middles: 8, 64,
          512, ... neighbours, counted from the first, are one cell of it. Boxes of eight meet half as many others as
          along a Morton curve (of two tori 9 and 19, of a cloth 25 and 37).
Known as: a left-balanced k-d tree, built by quickselect (Bentley 1975; Hoare 1961).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.runtime import SOUND, choose_device, launch

wp.set_module_options(SOUND)


def compact_order(items: np.ndarray, points: np.ndarray, smallest: int = 8) -> np.ndarray:
    """The order (n,) of items (n, w) of points (m, 3) [m]; cells of `smallest` items, a power of two, are not cut."""
    count, cpu = len(items), choose_device("cpu")
    lower, upper = points.min(axis=0), points.max(axis=0)
    where = wp.array(points, dtype=wp.vec3d, device=cpu, copy=False)
    named = wp.array(items, dtype=wp.int32, device=cpu, copy=False)
    places = wp.empty(count, dtype=wp.vec4f, device=cpu)
    scale = 1.0 / max(float((upper - lower).max()), 1e-300)
    launch(_place_middles, count, [named, items.shape[1], where, wp.vec3d(*lower), scale], [places], device=cpu)
    size = smallest
    while size < count:
        size *= 2
    while size > smallest:
        launch(_halve, -(-count // size), [size], [places], device=cpu, grain=max(1, 16384 // size))
        size //= 2
    return places.numpy()[:, 3].copy().view(np.int32)


@wp.func_native("""
    struct Place { float x[3]; int number; };
    Place* rows = (Place*)places.data;
    float lower[3], upper[3];
    for (int c = 0; c < 3; ++c)
        lower[c] = upper[c] = rows[begin].x[c];
    for (int k = begin + 1; k < end; ++k)
        for (int c = 0; c < 3; ++c) {
            lower[c] = rows[k].x[c] < lower[c] ? rows[k].x[c] : lower[c];
            upper[c] = rows[k].x[c] > upper[c] ? rows[k].x[c] : upper[c];
        }
    int axis = 0;
    for (int c = 1; c < 3; ++c)
        if (upper[c] - lower[c] > upper[axis] - lower[axis])
            axis = c;
    // Moves those that `goes` says of to the front; without a branch, which could not be predicted.
    auto parted = [rows](int low, int high, auto goes) -> int {
        for (int k = low; k < high; ++k) {
            const Place place = rows[k];
            rows[k] = rows[low];
            rows[low] = place;
            low += goes(place);
        }
        return low;
    };
    // Anywhere: a coordinate that rises and falls again, as around a ring, is lowest or highest at ends and middle.
    unsigned seed = begin;
    auto picked = [&](int low, int high) -> float {
        seed = seed * 1664525u + 1013904223u;
        return rows[low + (int)((unsigned long long)seed * (high - low) >> 32)].x[axis];
    };
    int low = begin, high = end;
    while (high - low > 1) {
        const float x = picked(low, high), y = picked(low, high), z = picked(low, high);
        const float pivot = x < y ? (y < z ? y : x < z ? z : x) : (x < z ? x : y < z ? z : y);
        const int below = parted(low, high, [=](const Place& place) { return place.x[axis] < pivot; });
        if (middle < below) {
            high = below;
            continue;
        }
        low = parted(below, high, [=](const Place& place) { return place.x[axis] == pivot; });
        if (middle < low)
            break;
    }
""")
def select(places: wp.array[wp.vec4f], begin: int, middle: int, end: int):
    """Exchange places from `begin` to `end` until none before `middle` is beyond one after it: quickselect."""
    ...


@wp.kernel
def _place_middles(
    first: int,
    items: wp.array2d[int],
    width: int,
    points: wp.array[wp.vec3d],
    origin: wp.vec3d,
    scale: wp.float64,
    places: wp.array[wp.vec4f],
):
    """Middles of the boxes of items, from 0 to 1, and the numbers of the items, which are only moved along."""
    i = first + wp.tid()
    lower = points[items[i, 0]]
    upper = lower
    for c in range(1, width):
        lower = wp.min(lower, points[items[i, c]])
        upper = wp.max(upper, points[items[i, c]])
    half = wp.float64(0.5) * scale
    middle = wp.vec3f((lower - origin) * half + (upper - origin) * half)
    places[i] = wp.vec4f(middle[0], middle[1], middle[2], wp.cast(i, wp.float32))


@wp.kernel
def _halve(first: int, size: int, places: wp.array[wp.vec4f]):
    begin = (first + wp.tid()) * size
    middle = begin + size / 2
    end = wp.min(begin + size, places.shape[0])
    if middle < end:
        select(places, begin, middle, end)
