"""How deep are bodies in each other? A search over ever smaller pieces of both surfaces, for many pairs at once.

Question: the largest depth of one body's surface inside the other, over both, from below and from above.
Method:   all triangles that reach into the other body's box are pieces. Every round evaluates all pieces of all pairs
          (`traversal`); the deepest centre is the bound from below. Pieces that cannot be deeper than the accuracy
          allows are done, the others are cut across their longest edge.
Sound:    lower <= depth <= upper, rounding included. Where a pair has had its share of pieces the bounds are wider than
          was asked for, and `reached` says so. The same bits for any number of threads.
Known as: branch and bound; directed Hausdorff distance of surfaces within a solid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import warp as wp

from tangere.query.depth.traversal import BEYOND, OtherBody, PieceDepth, SurfacePiece, find_piece_depths
from tangere.query.first_contact.rigid.bodies import Forest
from tangere.runtime import choose_device, launch
from tangere.shape.mesh import Mesh

#: More than what rounding does to a depth, relative to the largest coordinate.
_ROUNDING = 2.0**-44


@dataclass(frozen=True, eq=False)
class DepthBounds:
    """Depths of k pairs of bodies."""

    lower: np.ndarray  #: (k,) the depth is not smaller [m]
    upper: np.ndarray  #: (k,) … and not larger [m]
    point: np.ndarray  #: (k, 3) of one surface, in the world, that is as deep as `lower`; NaN where that is 0 [m]
    normal: np.ndarray  #: (k, 3) unit, the nearest way out for the first body, from there; 0 where lower is 0
    reached: np.ndarray  #: (k,) whether the bounds are as near as was asked for
    pieces: int  #: that were evaluated, of all pairs


def search_depths(
    shapes: Sequence[Mesh],
    shape: np.ndarray,
    poses: np.ndarray,
    pairs: np.ndarray,
    *,
    accuracy: float,
    resolution: np.ndarray | float,
    most: int = 1_000_000,
    device: str | wp.Device | None = None,
) -> DepthBounds:
    """Depths of pairs of bodies, body i being `shapes[shape[i]]` at `poses[i]`.

    Args:
        accuracy: lower is at least (1 - accuracy) upper …
        resolution: … or upper is at most this [m]; one, or one for each pair.
        most: pieces that are evaluated of each pair, about.
    """
    device = choose_device(device)
    pairs = np.asarray(pairs, np.int64).reshape(-1, 2)
    count = len(pairs)
    lower, done = np.zeros(count), np.zeros(count)
    point, way = np.full((count, 3), np.nan), np.zeros((count, 3))
    from_first = np.zeros(count, bool)
    reached, spent = np.ones(count, bool), np.zeros(count, np.int64)
    resolution = np.broadcast_to(np.asarray(resolution, np.float64), (count,))
    # Row 2k is the first body of pair k in the second, row 2k + 1 the other way round.
    inner, outer = pairs.reshape(-1), pairs[:, ::-1].reshape(-1)
    forest = Forest.of(shapes, device)
    others = np.zeros(2 * count, OtherBody.numpy_dtype())
    others["node"], others["triangle"] = forest.first_node[shape[outer]], forest.first_triangle[shape[outer]]
    on_device = wp.array(others, dtype=OtherBody, device=device)
    pieces, sizes = _first_pieces(shapes, shape, poses, inner, outer)
    slack = _ROUNDING * sizes.reshape(-1, 2).max(axis=1)
    evaluated = 0
    while len(pieces):
        evaluated += len(pieces)
        found = _evaluated(pieces, on_device, forest, device)
        pair = pieces["body"] // 2
        spent += np.bincount(pair, minlength=count)
        centre = pieces["corners"].mean(axis=1)
        # The deepest centre of each pair; of equal ones the first.
        order = np.lexsort((np.arange(len(pair)), -found["centre"], pair))
        best = order[np.unique(pair[order], return_index=True)[1]]
        best = best[found["centre"][best] - slack[pair[best]] > lower[pair[best]]]
        rows = pair[best]
        lower[rows] = found["centre"][best] - slack[rows]
        point[rows], way[rows], from_first[rows] = centre[best], found["way"][best], pieces["body"][best] % 2 == 0
        upper = np.maximum(found["upper"] + slack[pair], 0.0)
        enough = np.maximum(lower / (1.0 - accuracy), np.maximum(resolution, 2.0 * slack))
        open_ = (upper > enough[pair]) & (found["side"] != BEYOND)
        tired = open_ & (spent[pair] >= most)
        reached[pair[tired]] = False
        closed = (~open_ | tired) & (found["side"] != BEYOND)
        np.maximum.at(done, pair[closed], upper[closed])
        pieces = _halves(pieces[open_ & ~tired], found[open_ & ~tired])
    upper = np.maximum(done, lower) + slack
    places, ways = np.full((count, 3), np.nan), np.zeros((count, 3))
    deep = np.flatnonzero(lower > 0.0)
    frame = poses[pairs[deep, np.where(from_first[deep], 1, 0)]]
    places[deep] = np.einsum("kij,kj->ki", frame[:, :3, :3], point[deep]) + frame[:, :3, 3]
    out = np.einsum("kij,kj->ki", frame[:, :3, :3], way[deep] / np.linalg.norm(way[deep], axis=1, keepdims=True))
    ways[deep] = np.where(from_first[deep, None], out, -out)
    return DepthBounds(lower, upper, places, ways, reached, evaluated)


def _first_pieces(
    shapes: Sequence[Mesh], shape: np.ndarray, poses: np.ndarray, inner: np.ndarray, outer: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The triangles of bodies that reach into the boxes of others, in their frames; and the largest coordinates."""
    parts, sizes = [], np.zeros(len(inner))
    for row, (one, other) in enumerate(zip(inner, outer, strict=True)):
        mesh, bounds = shapes[shape[one]], shapes[shape[other]].bounds
        turn, shift = poses[other, :3, :3], poses[other, :3, 3]
        rotation, offset = turn.T @ poses[one, :3, :3], turn.T @ (poses[one, :3, 3] - shift)
        corners = (mesh.vertices @ rotation.T + offset)[mesh.faces]
        sizes[row] = (
            np.abs(bounds).max() + np.abs(mesh.bounds).max() + np.abs(poses[[one, other], :3, 3]).max() + 1e-300
        )
        slack = _ROUNDING * sizes[row]
        near = ((corners.max(axis=1) >= bounds[0] - slack) & (corners.min(axis=1) <= bounds[1] + slack)).all(axis=1)
        parts.append(corners[near])
    pieces = np.zeros(sum(map(len, parts)), SurfacePiece.numpy_dtype())
    if parts:
        pieces["corners"] = np.concatenate(parts)
        pieces["body"] = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    return pieces, sizes


def _evaluated(pieces: np.ndarray, others: wp.array, forest: Forest, device: wp.Device) -> np.ndarray:
    depths = wp.empty(len(pieces), dtype=PieceDepth, device=device)
    inputs = [wp.array(pieces, dtype=SurfacePiece, device=device), others, forest.nodes, forest.corners]
    launch(find_piece_depths, len(pieces), inputs, [depths], device=device, grain=64)
    return depths.numpy()


def _halves(pieces: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Each piece cut in two across its longest edge."""
    corners, rows = pieces["corners"], np.arange(len(pieces))
    edge = np.linalg.norm(np.roll(corners, -1, axis=1) - corners, axis=2).argmax(axis=1)
    p, q, r = (corners[rows, (edge + k) % 3] for k in range(3))
    middle = 0.5 * (p + q)
    halves = np.repeat(pieces, 2)
    halves["corners"][0::2] = np.stack([p, middle, r], axis=1)
    halves["corners"][1::2] = np.stack([middle, q, r], axis=1)
    halves["nearest"], halves["side"] = np.repeat(found["nearest"], 2), np.repeat(found["side"], 2)
    return halves
