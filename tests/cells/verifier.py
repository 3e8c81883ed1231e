"""Brute-force checks of maps and registrations, from positions and topology only.

Nothing here uses the library's walks, rings or lists: laws are checked on the raw arrays, rings are found by comparing
vertices, owners by trying every simplex. Spec: specs/pitiot-multiresolution-interactions 2.1, 2.5, 2.11-2.13, 7.
"""

from __future__ import annotations

import numpy as np


def check_map(map, *, area: float | None = None, tolerance: float = 1e-12) -> None:
    """Raise AssertionError naming the law and the first dart that breaks it."""
    darts = map.darts
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
    _check_cells(map, darts, a)
    volumes = simplex_sizes(map)[darts]
    law(volumes > 0, "its simplex has positive size")
    if area is not None:
        assert abs(volumes.sum() - area) <= tolerance * area, f"sizes add up to {volumes.sum()}, not {area}"


def _check_cells(map, darts, a) -> None:
    levels, child, parent = map.numpy("cell_level"), map.numpy("first_child"), map.numpy("parent")
    leaves = map.leaves
    assert np.array_equal(np.unique(a["cell"][darts]), leaves), "the darts belong to the leaves, each of which has some"
    listed = []
    anchor = map.numpy("anchor")
    for c in leaves:
        d, before = int(anchor[c]), -1
        while d >= 0:
            assert a["back"][d] == before, f"dart {d}: its list runs both ways"
            assert a["cell"][d] == c, f"dart {d}: it is listed with its cell"
            listed.append(d)
            before, d = d, int(a["link"][d])
    assert sorted(listed) == darts.tolist(), "each live dart is listed once"
    split = np.flatnonzero((levels >= 0) & (child >= 0))
    for c in split:
        for k in map.children(int(c)):
            assert parent[k] == c
            assert levels[k] == levels[c] + 1
    vertices = np.unique(a["origin"][darts])
    assert map.vertex_count == len(vertices), f"{map.vertex_count} vertices are said to live, {len(vertices)} do"
    assert map.dart_count == len(darts)


def simplices(map) -> np.ndarray:
    """(darts, dimension + 1, 3): cell centre, (face centre,) origin and end of every dart."""
    origin, phi1, cell = map.numpy("origin"), map.numpy("phi1"), map.numpy("cell")
    position, centre = map.positions, map.numpy("centre")
    corners = [centre[cell], position[origin], position[origin[phi1]]]
    if map.dimension == 3:
        corners.insert(1, map.numpy("face_centre"))
    return np.stack(corners, axis=1)


def simplex_sizes(map) -> np.ndarray:
    corners = simplices(map)
    sides = corners[:, 1:] - corners[:, :1]
    if map.dimension == 3:
        return np.einsum("ij,ij->i", np.cross(sides[:, 0], sides[:, 1]), sides[:, 2]) / 6
    normal = np.cross(sides[:, 0], sides[:, 1])
    return normal[:, 2] / 2 if map.flat else np.linalg.norm(normal, axis=1) / 2


def rings(map) -> dict[int, set[int]]:
    """For each leaf the other leaves with a vertex in common."""
    darts = map.darts
    at = {}
    cell, origin = map.numpy("cell"), map.numpy("origin")
    for c, v in zip(cell[darts].tolist(), origin[darts].tolist()):
        at.setdefault(v, set()).add(c)
    found = {int(c): set() for c in map.leaves}
    for cells in at.values():
        for c in cells:
            found[c] |= cells
    return {c: around - {c} for c, around in found.items()}


def check_rings(map) -> None:
    for c, around in rings(map).items():
        assert set(map.rings.row(c).tolist()) == around, f"ring of cell {c}"


def barycentric(map, points: np.ndarray) -> np.ndarray:
    """(n, darts, dimension + 1): weights of every point in every live dart simplex."""
    corners = simplices(map)[map.darts]
    dim = map.dimension
    origin = corners[:, 0, :dim]
    inverse = np.linalg.inv((corners[:, 1:, :dim] - corners[:, :1, :dim]).transpose(0, 2, 1))
    weights = np.einsum("dij,ndj->ndi", inverse, points[:, None, :dim] - origin[None])
    return np.concatenate([1 - weights.sum(axis=2, keepdims=True), weights], axis=2)


def owners(map, points: np.ndarray, slack: float = 1e-9) -> list[set[int]]:
    """For each point the leaves that hold it; more than one only within `slack` (relative) of a face."""
    cell = map.numpy("cell")[map.darts]
    least = barycentric(map, points).min(axis=2)
    return [set(cell[row >= -slack].tolist()) for row in least]


def segment_cells(map, a: np.ndarray, b: np.ndarray, slack: float) -> set[int]:
    """Leaves whose simplices, grown or (slack > 0) shrunk a little, a segment meets: clipped against every simplex."""
    darts = map.darts
    at_a, at_b = barycentric(map, np.stack([a, b]))
    low, high = np.zeros(len(darts)), np.ones(len(darts))
    for k in range(at_a.shape[1]):
        start, end = at_a[:, k] - slack, at_b[:, k] - slack
        with np.errstate(divide="ignore", invalid="ignore"):
            cut = start / (start - end)
        low = np.where((start < 0) & (end > start), np.maximum(low, cut), low)
        high = np.where((end < 0) & (start > end), np.minimum(high, cut), high)
        low = np.where((start < 0) & (end <= start), 2.0, low)
        # A segment that stays outside this side misses the simplex.
        low = np.where((start < 0) & (end < 0), 2.0, low)
    return set(map.numpy("cell")[darts[low <= high]].tolist())


def check_registration(registration, *, near: bool = True, slack: float = 1e-9) -> None:
    """Properties 1 to 4: everyone present exactly where they are, near around it, every dart in the right cell."""
    map = registration.map
    points, darts = registration.points, registration.darts
    alive = np.zeros(len(map.numpy("tag")), bool)
    alive[map.darts] = True
    assert alive[darts].all(), f"point {np.argmax(~alive[darts])} aims at a dead dart"
    cells = map.numpy("cell")[darts]
    for i, possible in enumerate(owners(map, points)):
        assert cells[i] in possible, f"point {i} aims at cell {cells[i]} but is in {possible}"
    sets = {"points": [{int(c)} for c in cells], "segments": [], "triangles": []}
    for i, (a, b) in enumerate(registration.segments):
        found = set(registration.crossed("segments", i).tolist())
        _check_crossed(map, points[a], points[b], found, f"segment {i}", slack)
        sets["segments"].append(found)
    for i, corners in enumerate(registration.triangles):
        found = set(registration.crossed("triangles", i).tolist())
        for a, b in zip(corners, np.roll(corners, -1)):
            least = segment_cells(map, points[a], points[b], slack)
            assert least <= found, f"triangle {i} lacks cells {least - found}"
        sets["triangles"].append(found)
    around = rings(map)
    for kind, members in sets.items():
        groups = registration.present(kind)
        start, order = groups.start.numpy(), groups.order.numpy()
        present = {c: {i for i, own in enumerate(members) if c in own} for c in around}
        for c in range(len(start) - 1):
            row = order[start[c] : start[c + 1]].tolist()
            assert sorted(row) == sorted(present.get(c, set())), f"{kind} present in cell {c}"
        if near:
            for c, others in around.items():
                expected = set().union(*[present[b] for b in others]) - present[c] if others else set()
                assert set(registration.near(kind, c).tolist()) == expected, f"{kind} near cell {c}"


def _check_crossed(map, a, b, found, what, slack):
    least, most = segment_cells(map, a, b, slack), segment_cells(map, a, b, -slack)
    assert least <= found, f"{what} lacks cells {least - found}"
    assert found <= most, f"{what} has cells {found - most} it does not cross"
