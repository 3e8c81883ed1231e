"""Questions about one instant: distances, intersections, signed distances, proximity."""

from __future__ import annotations

from typing import Any

import numpy as np

import tangere as tg
from tools import words
from tools.digest.answers import Book, section
from tools.digest.moving_triangles import crumpled
from tools.digest.questions import motions, place, poses, shapes


@section
def distance(book: Book) -> None:
    """Distances of meshes in many poses, at many times, and one by one."""
    all_shapes = shapes()
    for a, b in book.some([("torus", "ball"), ("box", "box"), ("gear", "comb"), ("bumps", "torus")], 2):
        one, other = all_shapes[a], all_shapes[b]
        many = poses(book.rng(f"{a}{b}"), book.size(60, 12), 2.5)
        book.ask(f"{a}-{b}.poses", tg.distance, one.moving(tg.Rest(many)), other, device="cpu")
        single = [tg.distance(one.moving(tg.Rest(pose)), other, device="cpu") for pose in many[:: book.size(4, 6)]]
        book.keep(f"{a}-{b}.alone", single)
    screw = motions("screw", book.rng("times"), 1)[0]
    times = np.linspace(0, 1, book.size(40, 5))
    book.ask("times", tg.distance, all_shapes["torus"].moving(screw), all_shapes["gear"], time=times, device="cpu")


@section
def intersection(book: Book) -> None:
    """Triangles that meet, of two meshes and of one with itself."""
    all_shapes = shapes()
    for a, b in book.some([("torus", "ball"), ("box", "box"), ("gear", "comb"), ("bumps", "torus")], 2):
        one, other = all_shapes[a], all_shapes[b]
        many = poses(book.rng(f"{a}{b}"), book.size(20, 4), 1.5)
        many[0], many[1] = np.eye(4), place(0.5)  # in the same place; faces in one plane
        found = [tg.intersecting_pairs(one.at(pose), other, device="cpu") for pose in many]
        book.keep(f"{a}-{b}.pairs", found)
        book.keep(f"{a}-{b}.any", [tg.intersects(one.moving(tg.Rest(pose)), other, device="cpu") for pose in many])
    for number in range(book.size(3, 1)):
        sheet, end = crumpled(book.rng(f"self {number}"), book.size(800, 200))
        states = [sheet.moving(tg.Linear(end)).at(t) for t in (0.0, 0.4, 0.7, 1.0)]
        book.keep(f"self{number}.any", [tg.intersects(state, device="cpu") for state in states])
        book.keep(f"self{number}.pairs", [words.self_intersections(state, device="cpu") for state in states])


@section
def signed_distance(book: Book) -> None:
    """Points inside and outside of closed meshes, exactly and from samples."""
    all_shapes = shapes()
    for name in ("torus", "box") if book.quick else ("torus", "box", "gear", "bumps", "ball"):
        mesh, rng = all_shapes[name], book.rng(name)
        points = rng.uniform(-1.6, 1.6, (book.size(600, 60), 3))
        points = np.concatenate([points, mesh.vertices[:20], mesh.vertices[mesh.edges[:20]].mean(axis=1)])
        book.ask(f"{name}.points", tg.signed_distance, points, mesh, device="cpu")
        field = tg.DistanceField.of(mesh, 0.3 if book.quick else 0.15, device="cpu")
        book.keep(f"{name}.field", {"samples": field.samples, "origin": field.origin, "error": field.error})
        for k, pose in enumerate((None, poses(rng, 1, 0.2)[0])):
            read = field.at(points, pose, device="cpu")
            book.keep(f"{name}.read{k}", dict(zip(("distance", "gradient"), read, strict=True)))


BROAD_PHASES = ("tree", "grid", "levels", "sweep", "front", "brute")


@section
def proximity(book: Book) -> None:
    """Features nearer than a distance: every broad phase, exclusions, detectors, and the pipeline of seven stages."""
    all_shapes = shapes()
    torus, ball = all_shapes["torus"], all_shapes["ball"].at(place(1.75, 0.2, 0.1))
    sheet, end = crumpled(book.rng("sheet"), book.size(800, 200))
    folded = sheet.moving(tg.Linear(end)).at(0.7)
    phases = BROAD_PHASES[:2] if book.quick else BROAD_PHASES
    for phase in phases:
        options = {"broad_phase": phase, "device": "cpu"}
        book.ask(f"two.{phase}", tg.proximity, torus, ball, distance=0.12, **options)
        book.ask(f"self.{phase}", tg.proximity, folded, distance=0.04, **options)
        if not book.quick:
            book.ask(f"list.{phase}", tg.proximity, [torus, ball, folded], distance=0.05, **options)
    book.ask("nearest", tg.proximity, folded, distance=0.06, nearest=True, device="cpu")
    reach = 0.15 if book.quick else 0.06  # more than half an edge, or nothing of the sheet is near at rest
    excluded = {
        "rings": tg.Exclusion.rings(sheet, 2),
        "at_rest": tg.Exclusion.at_rest(sheet, reach, device="cpu"),
        "gaps": tg.Exclusion.gaps(sheet, reach, device="cpu"),
    }
    for name, exclusion in book.some(excluded.items(), 3):
        book.ask(f"exclude.{name}", tg.proximity, folded, distance=reach, exclude=exclusion, device="cpu")
        book.keep(f"exclude.{name}.pairs", {"keys": exclusion.keys, "activation": exclusion.activation})
    _detector(book, torus, ball, excluded["gaps"].widened(folded, 0.06, device="cpu"), folded)
    if not book.quick:
        _moving_cones(book, torus, folded)
    every = {
        "sound": words.Settings(),
        "published": words.Settings(mode="published"),
        "published_cones": words.Settings(mode="published", cones=True, bounds="spheres"),
        "spheres": words.Settings(bounds="spheres", object_faces=14, regions=False),
        "levels": words.Settings(levels=True, primitive_boxes=True),
        "cones": words.Settings(cones=True, fused=False),
        "cells": words.Settings(cell=0.2, within=False),
    }
    for name, settings in book.some(every.items(), 2):
        shelter = {"exclude": [tg.Exclusion.at_rest(m, 0.3, device="cpu") for m in (torus, ball, folded)]}
        options = {"settings": settings, **(shelter if name == "cones" else {})}
        for per_pair in (False,) if book.quick else (False, True):
            case = f"stages.{name}{int(per_pair)}"
            found = words.detect([torus, ball, folded], distance=0.05, per_pair=per_pair, device="cpu", **options)
            book.keep(case, {"contacts": found.contacts, "counts": found.counts, "losses": found.losses})
            book.keep(f"{case}.tests", {k: int(v) for k, v in vars(found.tests).items()})


def _moving_cones(book: Book, torus: Any, folded: Any) -> None:
    """Cones of normals that hold for a whole step."""
    shelter = [tg.Exclusion.at_rest(mesh, 0.3, device="cpu") for mesh in (torus, folded)]
    end = np.concatenate([torus.vertices * 1.05, folded.vertices + (0.0, 0.02, 0.05)])
    options = {"settings": words.Settings(cones=True), "exclude": shelter, "end": end, "device": "cpu"}
    found = words.detect([torus, folded], distance=0.05, **options)
    book.keep("stages.moving_cones", {"contacts": found.contacts, "counts": found.counts})


def _detector(book: Book, torus: Any, ball: Any, exclusion: Any, folded: Any) -> None:
    for name, options in {
        "all": {},
        "between": {"within": False},
        "within": {"between": False, "exclude": [None, None, exclusion]},
    }.items():
        detector = tg.Detector([torus, ball, folded], distance=0.06, device="cpu", **options)
        for step in range(book.size(6, 2)):
            moved = ball.vertices + (-0.04 * step, 0.01 * step, 0.0)
            near = detector.find([torus.vertices, moved, folded.vertices * (1.0 + 0.01 * step)])
            rows = {k: getattr(near, k).numpy()[: len(near)] for k in ("quads", "weights", "gap", "features", "kind")}
            book.keep(f"detector.{name}.{step}", rows)
            book.keep(f"detector.{name}.{step}.contacts", near.contacts)
            if step == 3:
                detector.reorder()
