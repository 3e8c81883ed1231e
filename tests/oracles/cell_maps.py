"""Brute-force checks of maps and registrations, from positions and topology only.

Nothing here uses the library's walks, rings or lists: laws are checked on the raw arrays, rings are found by comparing
vertices, owners and crossed cells by trying every simplex. Everything is array arithmetic over all darts, entities and
cells at once: it runs after each of 10^5 operations. Laws: Pitiot 2015, sections 3.1, 3.3
and chapter 5.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np


class Snapshot:
    """The arrays of a map as they are now, and what brute force makes of them."""

    def __init__(self, map) -> None:
        self.map, self.dimension = map, map.dimension
        self.surface = map.dimension == 2 and not map.flat
        self.darts, self.leaves = map.darts, map.leaves
        for name in ("phi1", "origin", "cell", "centre"):
            setattr(self, name, map.numpy(name))
        self.position = map.positions

    @cached_property
    def corners(self) -> np.ndarray:
        """(darts, dimension + 1, 3): cell centre, (face centre,) origin and end of every live dart."""
        d = self.darts
        corners = [self.centre[self.cell[d]], *(self.position[self.origin[x]] for x in (d, self.phi1[d]))]
        if self.dimension == 3:
            corners.insert(1, self.map.numpy("face_centre")[d])
        return np.stack(corners, axis=1)

    @cached_property
    def sizes(self) -> np.ndarray:
        """(darts,) area or volume of every simplex, negative where it is turned inside out (not on surfaces)."""
        sides = self.corners[:, 1:] - self.corners[:, :1]
        normal = np.cross(sides[:, 0], sides[:, 1])
        if self.dimension == 3:
            return (normal * sides[:, 2]).sum(axis=1) / 6
        return np.linalg.norm(normal, axis=1) / 2 if self.surface else normal[:, 2] / 2

    @cached_property
    def gradients(self) -> np.ndarray:
        """(darts, dimension, 3): how the weights of all corners but the first grow."""
        sides = self.corners[:, 1:] - self.corners[:, :1]
        a, b = sides[:, 0], sides[:, 1]
        c = sides[:, 2] if self.dimension == 3 else np.cross(a, b)
        rows = np.stack([np.cross(b, c), np.cross(c, a), np.cross(a, b)], axis=1)
        rows /= (rows[:, 0] * a).sum(axis=1)[:, None, None]
        return rows[:, : self.dimension]

    def weights(self, points: np.ndarray) -> np.ndarray:
        """(n, darts, dimension + 1): weights of every point in every live simplex."""
        rows = self.gradients
        start = (rows * self.corners[:, :1]).sum(axis=2)
        found = (points @ rows.reshape(-1, 3).T).reshape(len(points), *start.shape) - start
        return np.concatenate([1 - found.sum(axis=2, keepdims=True), found], axis=2)

    @cached_property
    def touching(self) -> np.ndarray:
        """(cells, cells) bool: which leaves have a vertex in common with each leaf, itself left out."""
        at = np.zeros((len(self.centre), len(self.position)), np.float32)
        at[self.cell[self.darts], self.origin[self.darts]] = 1
        at = at[:, at.any(axis=0)]
        together = at @ at.T > 0
        np.fill_diagonal(together, False)
        return together


def check_map(map, *, area: float | None = None, tolerance: float = 1e-12) -> None:
    """Raise AssertionError naming the law and the first dart that breaks it."""
    now = Snapshot(map)
    darts = now.darts
    a = {name: map.numpy(name) for name in ("phi1", "phi_1", "phi2", "phi3", "origin", "cell", "tag", "link", "back")}
    alive = np.zeros(len(a["phi1"]) + 1, bool)
    alive[darts] = True

    def law(holds, text):
        assert holds.all(), f"dart {darts[~holds][0]}: {text}"

    for name in ("phi1", "phi_1"):
        law(alive[a[name][darts]], f"{name} is a live dart")
    law(a["phi_1"][a["phi1"][darts]] == darts, "phi_1(phi1(d)) = d")
    for name in ("phi2", "phi3"):
        there = a[name][darts]
        inside = there >= 0
        law(~inside | alive[there], f"{name} is a live dart")
        law(~inside | (a[name][there] == darts), f"{name}({name}(d)) = d")
        law(~inside | (a["origin"][there] == a["origin"][a["phi1"][darts]]), f"{name}(d) starts where d ends")
        law(~inside | (there != darts), f"{name}(d) is not d")
    law(a["cell"][a["phi1"][darts]] == a["cell"][darts], "cell(phi1(d)) = cell(d)")
    if map.dimension == 3:
        there = a["phi3"][darts]
        inside = there >= 0
        law(a["phi2"][darts] >= 0, "phi2 exists")
        law(a["cell"][a["phi2"][darts]] == a["cell"][darts], "cell(phi2(d)) = cell(d)")
        law(~inside | (a["phi1"][a["phi3"][a["phi1"][darts]]] == there), "phi1(phi3(phi1(d))) = phi3(d)")
        law(~inside | (a["cell"][there] != a["cell"][darts]), "phi3 goes to another cell")
        face_centre = map.numpy("face_centre")
        law((face_centre[a["phi1"][darts]] == face_centre[darts]).all(axis=1), "one centre per face")
        law(~inside | (face_centre[there] == face_centre[darts]).all(axis=1), "one centre on both sides of a face")
    _check_walls(map, darts, a, law)
    _check_lists(map, darts, a, law)
    _check_cells(map, darts, a)
    law(now.sizes > 0, "its simplex has positive size")
    if area is not None:
        assert abs(now.sizes.sum() - area) <= tolerance * area, f"sizes add up to {now.sizes.sum()}, not {area}"


def _check_walls(map, darts, a, law) -> None:
    """A wall is one from both sides: blocked itself, or beside an obstacle."""
    across, obstacle = a["phi3" if map.dimension == 3 else "phi2"][darts], map.numpy("obstacle")
    inside = across >= 0
    closed, own = (a["tag"] >> 12) & 1, (a["tag"] >> 13) & 1
    law(~inside | (own[across] == own[darts]), "an edge or face is blocked from both sides")
    if map.dimension == 3:
        law(own[a["phi1"][darts]] == own[darts], "a face is blocked as a whole")
    beside = (obstacle[a["cell"][darts]] != 0) | (inside & (obstacle[a["cell"][across]] != 0))
    law(closed[darts] == ((own[darts] == 1) | beside), "a wall is blocked itself or beside an obstacle")


def _check_lists(map, darts, a, law) -> None:
    """The darts of every leaf are in one list from its anchor on, which runs both ways."""
    link, back, cell, anchor = a["link"], a["back"], a["cell"], map.numpy("anchor")
    law((link[darts] < 0) | (back[link[darts]] == darts), "its list runs both ways")
    law((back[darts] < 0) | (link[back[darts]] == darts), "its list runs both ways")
    law((link[darts] < 0) | (cell[link[darts]] == cell[darts]), "it is listed with its cell")
    # So the lists are chains and rings of live darts. Jumping twice as far each time, every chain ends at its head.
    head = np.where(back >= 0, back, np.arange(len(back)))
    for _ in range(int(np.ceil(np.log2(len(darts) + 1)))):
        head = head[head]
    law(head[darts] == anchor[cell[darts]], "its list begins at the anchor of its cell")


def _check_cells(map, darts, a) -> None:
    levels, child, parent = map.numpy("cell_level"), map.numpy("first_child"), map.numpy("parent")
    leaves = map.leaves
    assert np.array_equal(np.unique(a["cell"][darts]), leaves), "the darts belong to the leaves, each of which has some"
    for c in np.flatnonzero((levels >= 0) & (child >= 0)):
        for k in map.children(int(c)):
            assert parent[k] == c
            assert levels[k] == levels[c] + 1
    vertices = np.unique(a["origin"][darts])
    assert map.vertex_count == len(vertices), f"{map.vertex_count} vertices are said to live, {len(vertices)} do"
    assert map.dart_count == len(darts)


def rings(map) -> dict[int, set[int]]:
    """For each leaf the other leaves with a vertex in common."""
    now = Snapshot(map)
    return {int(c): set(np.flatnonzero(now.touching[c]).tolist()) for c in now.leaves}


def check_rings(map, now: Snapshot | None = None) -> None:
    now = now or Snapshot(map)
    rows = map.rings.rows(now.leaves)
    stored = np.zeros_like(now.touching)
    stored[now.leaves[:, None], rows] = True
    np.fill_diagonal(stored, False)
    wrong = (stored != now.touching).any(axis=1)
    assert not wrong.any(), f"ring of cell {np.argmax(wrong)}"


def owners(map, points: np.ndarray, slack: float = 1e-9) -> list[set[int]]:
    """For each point the leaves that hold it; more than one only within `slack` (relative) of a face."""
    now = Snapshot(map)
    holding = now.weights(points).min(axis=2) >= -slack
    return [set(now.cell[now.darts[row]].tolist()) for row in holding]


def segment_cells(map, a: np.ndarray, b: np.ndarray, slack: float) -> set[int]:
    """Leaves whose simplices, grown or (slack > 0) shrunk a little, a segment meets: clipped against every simplex."""
    now = Snapshot(map)
    at = now.weights(np.stack([a, b]))
    met = _met(at, np.array([[0, 1]]), slack)[0]
    return set(now.cell[now.darts[met]].tolist())


def crossed_bounds(now: Snapshot, a: np.ndarray, b: np.ndarray, slack: float) -> tuple[np.ndarray, np.ndarray]:
    """(segments, cells) bool, twice: the leaves that segments cross for certain, and those that they at least touch."""
    flat = np.zeros((len(a), 3 - a.shape[1]))
    weights = now.weights(np.concatenate([np.concatenate([x, flat], axis=1) for x in (a, b)]))
    ends = np.stack([np.arange(len(a)), len(a) + np.arange(len(a))], axis=1)
    least, most = (_by_cell(now, _met(weights, ends, limit)) for limit in (slack, -slack))
    return least, most


def _met(weights: np.ndarray, ends: np.ndarray, slack: float) -> np.ndarray:
    """(segments, darts) bool: which simplices, shrunk by `slack`, a segment between two of the points meets."""
    behind = weights < slack
    # A segment with both ends behind one side misses the simplex; few simplices are left to clip it against.
    met = ~(behind[ends[:, 0]] & behind[ends[:, 1]]).any(axis=2)
    segment, dart = np.nonzero(met)
    start, end = (weights[ends[segment, k], dart] - slack for k in range(2))
    with np.errstate(divide="ignore", invalid="ignore"):
        cut = start / (start - end)
    low = np.where(start < 0, cut, 0).max(axis=1)
    high = np.where(end < 0, cut, 1).min(axis=1)
    met[segment, dart] = low <= high
    return met


def check_registration(registration, *, near: bool = True, slack: float = 1e-9) -> None:
    """Properties 1 to 4: everyone present exactly where they are, near around it, every dart in the right cell.

    `near` asks for who is near every cell; else rings and who is present, which is what near is made of, are checked.
    """
    now = Snapshot(registration.map)
    points, darts = registration.points, registration.darts
    place = np.full(len(now.cell), -1)
    place[now.darts] = np.arange(len(now.darts))
    assert (place[darts] >= 0).all(), f"point {np.argmax(place[darts] < 0)} aims at a dead dart"
    weights = now.weights(points)
    each = np.arange(len(points))
    cells = now.cell[darts]
    if now.surface:
        # The aimed triangle holds the point: within its sides and in its plane.
        out = weights[each, place[darts]].min(axis=1) < -slack
        corners = now.corners[place[darts]]
        normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        off = np.abs(((points - corners[:, 0]) * normal).sum(axis=1)) / (normal**2).sum(axis=1) ** 0.75
        out |= off > slack
    else:
        holding = _by_cell(now, weights.min(axis=2) >= -slack)
        out = ~holding[each, cells]
    assert not out.any(), f"point {np.argmax(out)} aims at cell {cells[np.argmax(out)]}, which does not hold it"
    one = np.zeros((len(points), len(now.centre)), bool)
    one[each, cells] = True
    expected = {"points": (one, one)}
    segments, triangles = registration.segments, registration.triangles
    if now.surface:
        for kind, rows in (("segments", segments), ("triangles", triangles)):
            both = one[rows].any(axis=1)
            expected[kind] = both, both
    else:
        sides = np.concatenate([segments, triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)])
        bounds = []
        for limit in (slack, -slack):
            crossed = _by_cell(now, _met(weights, sides, limit))
            bounds.append(
                (crossed[: len(segments)], crossed[len(segments) :].reshape(-1, 3, len(now.centre)).any(axis=1))
            )
        expected["segments"], expected["triangles"] = zip(*bounds)
    check_rings(registration.map, now)
    for kind, (least, most) in expected.items():
        found = _present(registration, kind, len(least), len(now.centre))
        _demand(found | ~least, kind, "lacks")
        if not (kind == "triangles" and registration.fill):
            _demand(most | ~found, kind, "wrongly has")
        if kind != "points" and len(found):
            row = registration.crossed(kind, len(found) // 2).tolist()
            assert row == np.flatnonzero(found[len(found) // 2]).tolist(), f"{kind} keep their cells themselves"
        if near:
            around = (now.touching.astype(np.float32) @ found.T.astype(np.float32) > 0) & ~found.T
            for c in now.leaves:
                listed = registration.near(kind, int(c))
                assert np.array_equal(listed, np.flatnonzero(around[c])), f"{kind} near cell {c}"


def _by_cell(now: Snapshot, darts: np.ndarray) -> np.ndarray:
    """(n, cells) bool from (n, live darts) bool."""
    found = np.zeros((len(darts), len(now.centre)), bool)
    row, dart = np.nonzero(darts)
    found[row, now.cell[now.darts[dart]]] = True
    return found


def _present(registration, kind: str, count: int, cells: int) -> np.ndarray:
    """(n, cells) bool: who the lists say is where; nobody may be listed twice in a cell."""
    groups = registration.present(kind)
    start, order = groups.start.numpy(), groups.order.numpy()
    assert start[0] == 0
    assert start[-1] == len(order)
    where = np.repeat(np.arange(len(start) - 1), np.diff(start))
    found = np.zeros((count, max(cells, len(start) - 1)), bool)
    found[order, where] = True
    assert found.sum() == len(order), f"one of the {kind} is listed twice in a cell"
    assert not found[:, cells:].any(), f"{kind} are listed in cells that do not exist"
    return found[:, :cells]


def _demand(holds: np.ndarray, kind: str, what: str) -> None:
    if not holds.all():
        number, cell = np.argwhere(~holds)[0]
        raise AssertionError(f"{kind}: number {number} {what} cell {cell}")
