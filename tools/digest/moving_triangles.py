"""Questions about moving vertices, edges, faces and meshes that deform."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

import tangere as tg
from tools import words
from tools.digest.answers import Book, section
from tools.digest.questions import SIDES, place, queries, shapes


@section
def primitives(book: Book) -> None:
    """Batches of vertices, edges, faces and triangles, in every mode."""
    for kind in SIDES:
        ask = getattr(tg.query, kind)
        x0, x1 = queries(kind, book.rng(kind), book.size(150, 8))
        book.ask(f"{kind}.sound", ask, x0, x1, device="cpu")
        book.ask(f"{kind}.separation", ask, x0, x1, separation=0.03, tolerance=1e-4, device="cpu")
        few = slice(None, None, book.size(3, 5))
        book.ask(f"{kind}.exact", ask, x0[few], x1[few], mode="exact", device="cpu")
        if kind != "vertex_vertex":
            book.ask(f"{kind}.published", words.published, kind, x0, x1)
        if book.quick:
            continue
        book.ask(f"{kind}.without_details", ask, x0, x1, details=False, device="cpu")
        one_by_one = [ask(x0[i : i + 1], x1[i : i + 1], device="cpu") for i in range(0, len(x0), 9)]
        book.keep(f"{kind}.alone", one_by_one)
        arrays = [wp.array(x, dtype=wp.vec3d, device="cpu") for x in (x0, x1)]
        book.ask(f"{kind}.warp", ask, *arrays)
        if kind != "vertex_vertex":
            reading = words.Reading(zero=1e-12, widen=1e-9, vanishing="none")
            book.ask(f"{kind}.published_reading", words.published, kind, x0, x1, reading)
    if not book.quick:
        for kind in ("vertex_face", "edge_edge"):
            x0, x1 = queries(kind, book.rng(f"robust {kind}"), 60)
            book.ask(f"{kind}.robust", words.robust_filter, tg.Kind[kind.upper()], x0, x1, device="cpu")
        x0, x1 = queries("triangle_triangle", book.rng("robust"), 60)
        book.ask("triangle_triangle.robust", words.robust_triangles, x0, x1, device="cpu")
        book.ask("triangle_triangle.trusted", tg.query.triangle_triangle, x0, x1, start="trusted", device="cpu")


def crumpled(rng: np.random.Generator, triangles: int) -> tuple[Any, np.ndarray]:
    """A sheet that folds through itself, and where its vertices end."""
    sheet = words.generate.sheet(triangles, size=(2.0, 1.4))
    x, y, _ = sheet.vertices.T
    start = np.stack([x, y, 0.2 * x * x], axis=1) + 0.01 * rng.uniform(-1, 1, sheet.vertices.shape)
    end = np.stack([0.55 * x * (1.0 - 1.3 * x * x), 0.9 * y, 0.6 * x * x + 0.05 * x * y], axis=1)
    return sheet.replace(vertices=start), end + 0.01 * rng.uniform(-1, 1, end.shape)


@section
def deforming(book: Book) -> None:
    """First and all contacts of meshes whose vertices move along lines, with each other and with themselves."""
    all_shapes, rng = shapes(), book.rng("pairs")
    pairs = [("ball", "torus"), ("box", "gear"), ("comb", "bumps"), ("torus", "torus"), ("box", "box")]
    first, every, near = [], [], []
    for a, b in book.some(pairs * 4, 2):
        one, other = all_shapes[a], all_shapes[b].at(place(*rng.uniform(1.6, 2.6, 2), rng.uniform(-0.5, 0.5)))
        ends = [mesh.vertices + 0.15 * rng.uniform(-1, 1, mesh.vertices.shape) for mesh in (one, other)]
        ends[0] += (1.1, 1.1, 0.0)
        moving = one.moving(tg.Linear(ends[0])), other.moving(tg.Linear(ends[1]))
        first.append(tg.first_contact(*moving, device="cpu"))
        every.append(tg.all_contacts(*moving, device="cpu"))
        near.append(tg.first_contact(*moving, separation=0.05, tolerance=1e-4, device="cpu"))
    book.keep("pairs.first", first)
    book.keep("pairs.all", every)
    book.keep("pairs.separation", near)
    for number in range(book.size(4, 1)):
        sheet, end = crumpled(book.rng(f"cloth {number}"), book.size(1800, 450))
        cloth = sheet.moving(tg.Linear(end))
        book.ask(f"cloth{number}.first", tg.first_contact, cloth, device="cpu")
        if book.quick:
            continue
        book.ask(f"cloth{number}.all", tg.all_contacts, cloth, device="cpu")
        if number == 0:
            book.ask(f"cloth{number}.candidates", tg.candidates, cloth, device="cpu")
            book.ask(f"cloth{number}.near", tg.candidates, cloth, separation=0.02, device="cpu")
        book.ask(f"cloth{number}.exact", tg.first_contact, cloth, mode="exact", device="cpu")
        book.ask(f"cloth{number}.trusted", tg.first_contact, cloth, start="trusted", separation=1e-3, device="cpu")
    ball, torus = all_shapes["ball"], all_shapes["torus"]
    over = ball.at(place(0.9)).moving(tg.Linear(ball.vertices + (2.0, 0.1, 0.0)))
    book.ask("start.first", tg.first_contact, over, torus, device="cpu")
    book.ask("start.all", tg.all_contacts, over, torus, device="cpu")
    if book.quick:
        return
    book.ask("start.trusted", tg.first_contact, over, torus, start="trusted", device="cpu")
    touching = [all_shapes["box"], all_shapes["box"].at(place(1.0))]
    book.ask("start.touching", tg.first_contact, *touching, device="cpu")
    falling = all_shapes["box"].at(place(0.2, 0.1, 1.0))
    falling = falling.moving(tg.Linear(falling.vertices - (0.0, 0.0, 1.0)))
    for mode in ("sound", "exact"):
        book.ask(f"flat.{mode}", tg.first_contact, falling, all_shapes["box"], mode=mode, device="cpu")
    book.ask("flat.all", tg.all_contacts, falling, all_shapes["box"], mode="exact", device="cpu")
    book.ask("flat.brute", words.first_contact, falling, all_shapes["box"], broad_phase="brute", device="cpu")
    book.ask("flat.published", words.first_contact_published, falling, all_shapes["box"])
    book.ask("candidates", tg.candidates, over, torus, device="cpu")
    apart = ball.moving(tg.Linear(ball.vertices + 0.1))
    book.ask("free", tg.first_contact, apart, torus.at(place(9.0)), device="cpu")
