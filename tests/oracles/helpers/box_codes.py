"""Moving boxes as tangere keeps them, to and from float32 corners."""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.bvh.lbvh import MovingBox

__all__ = ["at_rest", "corners", "on_device"]


def corners(boxes: wp.array) -> np.ndarray:
    """(n, 2, 2, 3) float32: beginning and end; lower and upper corner."""
    codes = boxes.numpy().reshape(-1, 2, 2, 3)
    numbers = np.where(codes < 0, -1.0, 1.0).astype(np.float32) * (2 * np.abs(codes)).astype(np.int32).view(np.float32)
    return numbers * np.array([1.0, -1.0], np.float32)[:, None]


def on_device(places: np.ndarray) -> wp.array:
    """The boxes with these corners (n, 2, 2, 3); exact if the last bit of each number is zero, see `at_rest`."""
    signed = np.ascontiguousarray(places * np.array([1.0, -1.0])[:, None], np.float32)
    bits = signed.view(np.int32)
    codes = np.where(bits < 0, -(bits & 0x7FFFFFFF), bits) >> 1
    return wp.array(codes.reshape(-1, 12), dtype=MovingBox, device="cpu")


def at_rest(boxes: np.ndarray) -> np.ndarray:
    """(n, 2, 3) boxes as moving boxes (n, 2, 2, 3) that stay where they are, their numbers cut to an even last bit."""
    even = (np.ascontiguousarray(boxes, np.float32).view(np.int32) & ~1).view(np.float32)
    return np.stack([even, even], axis=1)
