"""Questions to maps of cells: refinement, tracking, registration."""

from __future__ import annotations

from typing import Any

import numpy as np

from tools import words
from tools.digest.answers import Book, Columns, section


def _maps(book: Book) -> dict[str, Any]:
    made = {
        "quads": words.quad_grid(5, 4, jitter=0.2, device="cpu"),
        "hexes": words.hex_grid(3, 3, 2, jitter=0.15, device="cpu"),
        "triangles": words.triangle_grid(4, 4, jitter=0.1, device="cpu"),
        "tets": words.tet_grid(2, 2, 2, jitter=0.05, device="cpu"),
        "surface": words.map_of_mesh(words.generate.icosphere(2), device="cpu"),
    }
    return dict(book.some(made.items(), 2))


def map_columns(cells: Any) -> Columns:
    """A map by what is alive of it."""
    darts, leaves = cells.darts, cells.leaves
    names = ("phi1", "phi2", "origin", "cell") + (("phi3",) if cells.dimension == 3 else ())
    found = {name: cells.numpy(name)[darts] for name in names}
    corners = cells.positions[cells.numpy("origin")[darts]]
    return found | {
        "darts": darts,
        "leaves": leaves,
        "levels": cells.levels[leaves],
        "corners": corners,
        "centres": cells.numpy("centre")[leaves],
        "vertices": np.array(cells.vertex_count),
    }


def _mergeable(cells: Any) -> np.ndarray:
    child, parent, levels = (cells.numpy(name) for name in ("first_child", "parent", "cell_level"))
    inner = np.flatnonzero((levels >= 0) & (child >= 0))
    return np.setdiff1d(inner, parent[inner])


def _refined(cells: Any, rng: np.random.Generator, rounds: int = 3) -> Any:
    """A map with cells split at random, and some merged again."""
    for k in range(rounds):
        leaves = cells.leaves
        words.split_cells(cells, np.sort(rng.choice(leaves, min(4, len(leaves)), replace=False)), balanced=k % 2 == 0)
    ready = _mergeable(cells)
    words.merge_cells(cells, ready[:2], balanced=True)
    return cells


@section
def cells(book: Book) -> None:
    """Maps that are split and merged, points tracked through them, and who is registered where."""
    if not book.quick:
        _other_cells(book)
    for name, grid in _maps(book).items():
        rng = book.rng(name)
        book.keep(f"{name}.made", map_columns(grid))
        book.keep(f"{name}.refined", map_columns(_refined(grid, rng)))
        if not book.quick:
            _map_questions(book, name, grid)
        if name == "surface":
            darts = rng.choice(grid.darts, 80)
            points = words.on_surface(grid, darts, np.tile([0.5, 0.25, 0.25], (80, 1)))
            by = 0.4 * rng.uniform(-1, 1, (80, 3))
            book.keep(f"{name}.points", points)
            book.ask(f"{name}.glide", words.glide, grid, points, by, darts, by)
            continue
        _tracking(book, name, grid, rng)
        _registration(book, name, grid, rng)


def _other_cells(book: Book) -> None:
    """Cells split in sets, and walks through simplices."""
    for name, grid in {
        "quads": words.quad_grid(6, 6, device="cpu"),
        "hexes": words.hex_grid(3, 3, 3, jitter=0.1, device="cpu"),
    }.items():
        words.split_cells(grid, grid.leaves[::2], method="sets")
        words.split_cells(grid, grid.leaves[::5], balanced=True, method="sets")
        words.merge_cells(grid, _mergeable(grid)[:4], method="sets")
        book.keep(f"sets.{name}", map_columns(grid))
    solid, rng = words.solid_block((3, 3, 3)), book.rng("simplices")
    walked = words.Simplices(solid.vertices, solid.tets, device="cpu")
    book.ask("simplices.tets", walked.locate, 0.5 * rng.uniform(-1, 1, (90, 3)), np.zeros(90, np.int32))
    sheet = words.generate.sheet(72)
    walked = words.Simplices(sheet.vertices[:, :2], sheet.faces, device="cpu")
    points = 0.55 * rng.uniform(-1, 1, (90, 2))
    book.ask("simplices.triangles", walked.locate, points, np.zeros(90, np.int32))


def _map_questions(book: Book, name: str, grid: Any) -> None:
    for orbit in ("vertex", "edge", "face"):
        found = words.orbits(grid, orbit)
        book.keep(f"{name}.{orbit}s", {"number": found.number, "one_dart": found.one_dart})
    book.ask(f"{name}.incident", words.incident, grid, "vertex", "face")
    book.ask(f"{name}.adjacent", words.adjacent, grid, "face", "edge")
    book.ask(f"{name}.border", words.is_border, grid)
    book.ask(f"{name}.ring", words.ring_of_cells, grid, grid.leaves[:3])
    book.ask(f"{name}.ancestors", lambda: words.ancestors(grid, 0)[grid.leaves])
    book.ask(f"{name}.hanging", words.hanging_nodes, grid)
    book.ask(f"{name}.blind", words.blind_cells, grid)
    for level in (0, 1):
        links = words.level_links(grid, level)
        alive = grid.darts
        book.keep(f"{name}.level{level}", {"phi1": links.phi1[alive], "phi2": links.phi2[alive]})
    tables = words.explicit_levels(grid)
    first = grid.darts[grid.levels[grid.numpy("cell")[grid.darts]] == 0]  # darts of the coarsest level
    book.keep(f"{name}.levels", {"phi1": tables.phi1(first, 0), "phi2": tables.phi2(first, 0)})
    matrix, free = words.constraint_matrix(grid)
    dense = matrix.tocsr()
    dense.sort_indices()
    book.keep(f"{name}.constraint", {"data": dense.data, "at": dense.indices, "begin": dense.indptr, "free": free})


def _inside(rng: np.random.Generator, grid: Any, count: int) -> np.ndarray:
    """Random points of a map."""
    high = grid.positions[grid.numpy("origin")[grid.darts]].max(axis=0)
    points = rng.uniform(0.03, 0.97, (count, 3)) * high
    return points if grid.dimension == 3 else points * [1, 1, 0]


def _tracking(book: Book, name: str, grid: Any, rng: np.random.Generator) -> None:
    count = book.size(120, 20)
    points, targets = _inside(rng, grid, count), _inside(rng, grid, count) * 1.1
    located = book.ask(f"{name}.locate", words.locate, grid, points)
    if located is None:
        return
    book.ask(f"{name}.move", words.move_points, grid, points, targets, located.dart)
    crossed = words.crossed(grid, points, targets, located.dart)
    book.keep(f"{name}.crossed", dict(zip(("first", "cells", "blocked"), crossed, strict=True)))
    if book.quick:
        return
    book.ask(f"{name}.classify", words.classify, grid, points, located.dart)
    book.ask(f"{name}.again", words.locate, grid, targets / 1.1, located.dart)
    if grid.dimension == 3:
        book.ask(f"{name}.convex", words.track_convex, grid, points, targets, located.dart)
    else:
        book.ask(f"{name}.glide", words.glide, grid, points, targets - points, located.dart)
        followed = words.CrossingPoints(grid, points, targets / 1.1, located.dart)
        for step in range(4):
            followed.move(points + 0.02 * step * (targets / 1.1 - points), targets / 1.1)
        book.keep(f"{name}.followed", dict(zip(("first", "cells"), followed.cells, strict=True)))
    grid.block("cell", grid.leaves[:2])
    book.ask(f"{name}.walls", words.move_points, grid, points[30:], targets[30:], located.dart[30:])
    grid.block("cell", grid.leaves[:2], blocked=False)


def _registration(book: Book, name: str, grid: Any, rng: np.random.Generator) -> None:
    points = _inside(rng, grid, book.size(90, 24))
    third = len(points) // 3
    numbers = np.arange(3 * third).reshape(third, 3)
    for form in ("sorted",) if book.quick else ("sorted", "incremental"):
        own = words.quad_grid(6, 6, device="cpu") if grid.dimension == 2 else words.hex_grid(4, 4, 3, device="cpu")
        inside = np.minimum(points, 2.9 if grid.dimension == 3 else 5.9)
        world = words.Registration(own, inside, segments=numbers[:, :2], triangles=numbers, form=form)
        case = f"{name}.{form}"
        book.keep(
            f"{case}.density", dict(zip(("merged", "split"), words.adapt(world, words.Density(6, 2)), strict=True))
        )
        book.keep(f"{case}.adapted", map_columns(own))
        tip = words.NearPoint(inside[0], radius=0.5, level=2)
        book.keep(f"{case}.tip", dict(zip(("merged", "split"), words.adapt(world, tip), strict=True)))
        way = 0.7 * rng.uniform(-1, 1, points.shape)
        book.keep(f"{case}.stopped", world.move(world.points + way * ([1, 1, 0] if own.dimension == 2 else 1)))
        _registered(book, case, world)
        if book.quick:
            continue
        world.split(own.leaves[:5], balanced=True)
        world.merge(_mergeable(own)[:2], balanced=True)
        added = world.add(inside[:4])
        world.remove(added[:2])
        _registered(book, f"{case}.later", world)
        pairs = words.within_radius(world, 0.4)
        numbered, far = words.nearest_points(world, 3)
        book.keep(f"{case}.near", {"within": pairs, "nearest": numbered, "distance": far})
        seen = [words.in_ring(world, kind, point) for kind in ("points", "segments") for point in range(0, 30, 3)]
        book.keep(f"{case}.in_ring", seen)
        beside = [
            words.around_things(world, "triangles", k, "points", level=level) for k in range(9) for level in (None, 0)
        ]
        book.keep(f"{case}.around", beside)
        coarse = [words.in_ring_at(world, "points", int(cell), 1) for cell in own.leaves[:6]]
        book.keep(f"{case}.in_ring_at", coarse)
        book.keep(f"{case}.counters", world.counters)
        book.keep(f"{case}.walls", world.stopped("segments"))
        world.deform(own.positions * 1.05)
        _registered(book, f"{case}.deformed", world)
    if not book.quick:
        own = words.quad_grid(6, 6, device="cpu") if grid.dimension == 2 else words.hex_grid(4, 4, 3, device="cpu")
        filled = words.Registration(own, inside, triangles=numbers, fill=True)
        book.keep(f"{name}.filled", [filled.crossed("triangles", k) for k in range(third)])
        book.ask(f"{name}.large", words.large_triangles, filled)
        divided = words.divide_large_triangles(words.Registration(own, inside, triangles=numbers))
        book.keep(f"{name}.divided", {"points": divided.points, "triangles": divided.triangles})


def _registered(book: Book, case: str, world: Any) -> None:
    found = {"points": world.points, "cells": world.cells}
    for kind in ("points", "segments", "triangles"):
        groups = world.present(kind)
        found |= {f"{kind}_start": groups.start.numpy(), f"{kind}_order": groups.order.numpy()}
    book.keep(case, found)
    book.keep(f"{case}.beside", [world.near(kind, int(world.cells[0])) for kind in ("points", "segments", "triangles")])
