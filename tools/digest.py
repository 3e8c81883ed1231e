"""Has any answer changed? Thousands of questions to every system, with fixed seeds, and a digest of all answers.

    python -m tools.digest --out answers.npz              # every answer column, a hash for each section and one of all
    python -m tools.digest --compare before.npz after.npz # which columns differ, and by how much
    python -m tools.digest --quick --sections soft,crowd  # a part of the questions; some of the sections
    python -m tools.digest --record                       # what tests/test_digest.py compares with

Everything is asked through the face of the library, on the CPU; names that move or change are in `tools.words`. Keys
are "section/case/column". Answers have the same bits for any number of threads, and from run to run; times taken are
left out. To compare two source trees, run the first command with each of them on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import importlib.util
import sys
import tempfile
import time
import traceback
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

import tangere as tg
from tools import words

__all__ = ["SECTIONS", "Book", "check", "compare", "digest", "load_record", "record", "take"]

RECORD = Path(__file__).resolve().parents[1] / "tests" / "data" / "digest.npz"
#: Values that differ by less than this, relative to themselves or to the largest of their column, are close.
CLOSE = 1e-12
#: The same, in the record, for columns that magnify rounding: bodies are a millionth of their size apart when they
#: touch, so that the direction between their nearest points has six digits less than the points.
MAGNIFIED = dict.fromkeys(("normal", "gap", "weights"), 1e-7)
MAGNIFYING = ("rigid", "mixed", "screws", "robots", "path_check")
#: Of a column longer than this, the record holds so many entries; of integers a checksum of all as well.
KEPT = {"floats": 96, "integers": 64}

Columns = dict[str, np.ndarray]
Section = Callable[["Book"], None]
SECTIONS: dict[str, Section] = {}


def section(function: Section) -> Section:
    """Makes a function that asks the questions of one section known by its name."""
    SECTIONS[function.__name__] = function
    return function


# --- Keeping answers --------------------------------------------------------------------------------------------------


class Book:
    """The answers of one section."""

    def __init__(self, name: str, quick: bool = False) -> None:
        self.name, self.quick = name, quick
        self.columns: Columns = {}
        self.failures: list[str] = []
        self.skipped = ""  #: why the section has no answers

    def size(self, full: int, quick: int) -> int:
        """How many, of the full digest or of the quick one."""
        return quick if self.quick else full

    def some(self, things: Iterable[Any], quick: int) -> list[Any]:
        """All of them, or the first few."""
        return list(things)[: quick if self.quick else None]

    def rng(self, case: str) -> np.random.Generator:
        """Random numbers of a case, whatever was asked before."""
        return np.random.default_rng(zlib.crc32(f"{self.name}/{case}".encode()))

    def ask(self, case: str, question: Callable[..., Any], *given: Any, **options: Any) -> Any:
        """Keep what a question is answered; None where it fails, which is told at the end."""
        try:
            answer = question(*given, **options)
            self.keep(case, answer)
            return answer
        except Exception:
            self.failures.append(f"{self.name}/{case}\n{traceback.format_exc()}")
            return None

    def keep(self, case: str, answer: Any) -> None:
        """Keep the columns of an answer."""
        for name, column in columns_of(answer).items():
            key = f"{self.name}/{case}/{name or 'value'}"
            if key in self.columns:
                raise ValueError(f"{key} is there twice")
            self.columns[key] = column


def columns_of(answer: Any) -> Columns:
    """The columns of an answer by name: of a record its fields, of a list of answers theirs one below the other."""
    if answer is None or isinstance(answer, str):
        return {}
    if isinstance(answer, wp.array):
        return columns_of(answer.numpy())
    if isinstance(answer, (bool, int, float, np.ndarray, np.generic)):
        array = np.array(answer)
        return {"": array} if array.dtype.kind in "biuf" else {}
    if isinstance(answer, Mapping):
        return _prefixed((str(name), value) for name, value in answer.items())
    if dataclasses.is_dataclass(answer):
        own = [(field.name, getattr(answer, field.name)) for field in dataclasses.fields(answer)]
        kept = ((name, value) for name, value in own if _is_column(name, value))
        return _prefixed((words.COLUMN_NAMES.get(name, name), value) for name, value in kept)
    if isinstance(answer, Sequence):
        return _stacked([columns_of(one) for one in answer])
    raise TypeError(f"{type(answer).__name__} has no columns")


def _is_column(name: str, value: Any) -> bool:
    if name in words.NOT_ANSWERS:
        return False
    plain = isinstance(value, (bool, int, float, np.ndarray, np.generic, wp.array))
    return plain or name in words.NESTED


def _prefixed(pairs: Iterable[tuple[str, Any]]) -> Columns:
    found: Columns = {}
    for name, value in pairs:
        for inner, column in columns_of(value).items():
            found[f"{name}.{inner}" if inner else name] = column
    return found


def _stacked(rows: list[Columns]) -> Columns:
    """Numbers become columns; columns of any lengths become one, with their lengths beside it."""
    found: Columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        parts = [row[name] for row in rows if name in row]
        if all(part.ndim == 0 for part in parts):
            found[name] = np.stack(parts)
        else:
            wide = [part.reshape(len(part), int(np.prod(part.shape[1:]))) if part.ndim > 1 else part for part in parts]
            found[name] = np.concatenate(wide)
            found[f"{name.rpartition('.')[0]}#"] = np.array([len(part) for part in parts])
    return found


# --- What is asked about ----------------------------------------------------------------------------------------------


def poses(rng: np.random.Generator, count: int, spread: float = 1.0, turn: float = 1.0) -> np.ndarray:
    """(count, 4, 4) random poses; sums, products and roots alone make them, so that every machine has the same."""
    q = np.concatenate([np.ones((count, 1)), turn * rng.uniform(-1, 1, (count, 3))], axis=1)
    w, x, y, z = (q / np.sqrt((q * q).sum(axis=1, keepdims=True))).T
    found = np.tile(np.eye(4), (count, 1, 1))
    found[:, :3, :3] = np.moveaxis(
        np.array(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
            ]
        ),
        2,
        0,
    )
    found[:, :3, 3] = spread * rng.uniform(-1, 1, (count, 3))
    return found


def place(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> np.ndarray:
    """A pose that shifts."""
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


def motions(kind: str, rng: np.random.Generator, count: int, away: float = 2.5) -> Any:
    """Motions from about a distance towards the origin, and past it."""
    turn = 0.4 if kind == "tan" else 1.0  # which goes round by less than 3 rad
    begin = poses(rng, count, 0.3, turn)
    begin[:, :3, 3] += away * np.sign(rng.uniform(-1, 1, (count, 3))) * rng.uniform(0.6, 1, (count, 3))
    aim = rng.uniform(-1, 1, (count, 3)) * np.where(np.arange(count) % 3, 0.6, 3.0)[:, None]  # each third passes by
    if kind == "rest":
        return tg.Rest(begin)
    if kind == "twist":
        return tg.Twist(begin, 1.2 * (aim - begin[:, :3, 3]), rng.uniform(-3, 3, (count, 3)))
    end = poses(rng, count, 0.0, turn)
    end[:, :3, 3] = aim
    make = {"screw": tg.Screw, "tan": words.TanScrew, "cosine": words.CosineScrew}[kind]
    return make(begin, end)


def shapes() -> dict[str, Any]:
    """Small meshes of many kinds."""
    make = words.generate
    return {
        "torus": make.torus(grid=(24, 12), bumps=0.2),
        "ball": make.icosphere(2, radius=0.8),
        "box": make.box((1.0, 0.7, 0.4)),
        "gear": make.gear(teeth=9),
        "comb": make.comb(4),
        "bumps": make.bumpy_sphere(320, seed=3),
    }


_SIDES = {
    "vertex_face": (1, 3),
    "edge_edge": (2, 2),
    "vertex_edge": (1, 2),
    "vertex_vertex": (1, 1),
    "triangle_triangle": (3, 3),
}


def _dyadic(rng: np.random.Generator, *shape: int, bits: int = 3, reach: int = 2) -> np.ndarray:
    """Short binary fractions: sums and products of a few are exact."""
    return rng.integers(-reach << bits, (reach << bits) + 1, shape) / float(1 << bits)


def _weights(rng: np.random.Generator, count: int, corners: int, border: bool) -> np.ndarray:
    """(count, corners) weights in eighths that sum up to 1; on the border of the feature some are 0."""
    cuts = np.sort(rng.integers(0 if border else 1, 9 if border else 8, (count, corners - 1)), axis=1)
    edges = np.concatenate([np.zeros((count, 1)), cuts, np.full((count, 1), 8)], axis=1)
    return np.diff(edges, axis=1) / 8.0


def _touching(rng: np.random.Generator, count: int, sides: tuple[int, int], border: bool) -> np.ndarray:
    """(count, points, 3) two features that have a point in common, exactly."""
    a, b = (_dyadic(rng, count, corners, 3) for corners in sides)
    meet = [np.einsum("nc,ncx->nx", _weights(rng, count, s, border), p) for s, p in zip(sides, (a, b), strict=True)]
    return np.concatenate([a + (meet[1] - meet[0])[:, None], b], axis=1)


def queries(kind: str, rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Families of `count` queries each, one after the other: random, planted, grazing and degenerate motions."""
    sides = _SIDES[kind]
    points, first = sum(sides), sides[0]
    families = []

    def family(x0: np.ndarray, x1: np.ndarray) -> None:
        families.append((x0, x1))

    def planted(touch: np.ndarray, velocity: np.ndarray) -> None:
        when = rng.integers(0, 17, (count, 1, 1)) / 16.0
        family(touch - when * velocity, touch + (1.0 - when) * velocity)

    family(*rng.random((2, count, points, 3)))
    start = rng.uniform(-1, 1, (count, points, 3))
    start[:, :first, 2] += 1.5
    end = start + rng.uniform(-0.3, 0.3, start.shape)
    end[:, :first, 2] -= rng.uniform(0.5, 3.0, (count, 1))
    family(start, end)  # towards each other
    family(start, start + 0.1 * (end - start))  # hardly moving
    family(np.round(4 * start) / 4, np.round(4 * end) / 4)  # many coincidences
    family(_dyadic(rng, count, points, 3, bits=0, reach=1), _dyadic(rng, count, points, 3, bits=0, reach=1))
    for border in (False, True):
        planted(_touching(rng, count, sides, border), _dyadic(rng, count, points, 3))
    rigid = np.concatenate([np.repeat(_dyadic(rng, count, 1, 3), corners, axis=1) for corners in sides], axis=1)
    planted(_touching(rng, count, sides, False), rigid)
    touch = _touching(rng, count, sides, True)
    along = (touch[:, -1:] - touch[:, first : first + 1]) * _dyadic(rng, count, 1, 1)
    planted(touch, np.concatenate([np.repeat(along, first, axis=1), np.zeros((count, sides[1], 3))], axis=1))  # grazing
    flat = _touching(rng, count, sides, False) * [1, 1, 0]
    planted(flat, _dyadic(rng, count, points, 3) * [1, 1, 0])  # in one plane
    collapsed = _touching(rng, count, sides, True)
    collapsed[:, -1] = collapsed[:, first]
    planted(collapsed, _dyadic(rng, count, points, 3))
    planted(_touching(rng, count, sides, False) + 2.0**20, _dyadic(rng, count, points, 3))  # far from the origin
    family(1e-9 * start, 1e-9 * end)
    family(start, start)  # at rest
    jittered = _touching(rng, count, sides, True)
    jittered += rng.uniform(-1e-9, 1e-9, jittered.shape)
    planted(jittered, _dyadic(rng, count, points, 3))
    x0, x1 = (np.ascontiguousarray(np.concatenate(both)) for both in zip(*families, strict=True))
    return x0, x1


# --- Moving triangles -------------------------------------------------------------------------------------------------


@section
def primitives(book: Book) -> None:
    """Batches of vertices, edges, faces and triangles, in every mode."""
    for kind in _SIDES:
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


def _crumpled(rng: np.random.Generator, triangles: int) -> tuple[Any, np.ndarray]:
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
        sheet, end = _crumpled(book.rng(f"cloth {number}"), book.size(1800, 450))
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
    book.ask("flat.brute", tg.first_contact, falling, all_shapes["box"], broad_phase="brute", device="cpu")
    book.ask("flat.published", words.first_contact_published, falling, all_shapes["box"])
    book.ask("candidates", tg.candidates, over, torus, device="cpu")
    apart = ball.moving(tg.Linear(ball.vertices + 0.1))
    book.ask("free", tg.first_contact, apart, torus.at(place(9.0)), device="cpu")


# --- Rigid parts ------------------------------------------------------------------------------------------------------


@section
def rigid(book: Book) -> None:
    """First contact of rigid meshes: batches, single motions, scenes."""
    all_shapes = shapes()
    pairs = [("torus", "torus"), ("ball", "gear"), ("box", "box"), ("comb", "bumps")]
    kinds = ("twist", "screw")
    for a, b in book.some(pairs, 2):
        one, other = all_shapes[a], all_shapes[b]
        for kind in kinds:
            case = f"{a}-{b}.{kind}"
            many = motions(kind, book.rng(case), book.size(100, 8))
            book.ask(f"{case}.batch", tg.first_contact, one.moving(many), other, device="cpu")
            if book.quick:
                continue
            book.ask(f"{case}.separation", tg.first_contact, one.moving(many), other, separation=0.1, device="cpu")
            book.ask(f"{case}.recession", tg.first_contact, one.moving(many), other, recession=True, device="cpu")
            rest = other.moving(tg.Rest(poses(book.rng(f"{case} rest"), len(many), 0.4)))
            book.ask(f"{case}.both", tg.first_contact, one.moving(many), rest, tolerance=1e-4, device="cpu")
            singles = [one.moving(many[k]) for k in range(10)]
            options = {"device": "cpu", "contacts": "all"}
            book.keep(f"{case}.alone", [tg.first_contact(each, other, **options) for each in singles])
            book.keep(
                f"{case}.trusted", [tg.first_contact(each, other, start="trusted", **options) for each in singles]
            )
    _rigid_alone(book, all_shapes)
    for number in range(book.size(4, 1)):
        rng = book.rng(f"scene {number}")
        names = list(all_shapes)
        bodies = [all_shapes[names[k % len(names)]] for k in range(book.size(18, 8))]
        begin = poses(rng, len(bodies), 0.3)
        begin[:, :3, 3] += 3.3 * np.stack(np.unravel_index(np.arange(len(bodies)), (3, 3, 2)), axis=1)
        many = tg.Twist(begin, 3.0 * rng.uniform(-1, 1, (len(bodies), 3)), rng.uniform(-2, 2, (len(bodies), 3)))
        scene = [mesh.moving(many[k]) if k % 4 else mesh.at(begin[k]) for k, mesh in enumerate(bodies)]
        book.ask(f"scene{number}.sweep", tg.first_contact_of_scene, scene, device="cpu")
        if not book.quick:
            for separation in (0.0, 0.2):
                options = {"broad_phase": "tree", "separation": separation, "ignored": [[0, 1], [2, 5]]}
                book.ask(f"scene{number}.tree{separation}", tg.first_contact_of_scene, scene, device="cpu", **options)


def _rigid_alone(book: Book, all_shapes: dict[str, Any]) -> None:
    """Paths, chains, bodies at rest, flat landings and what starts in contact."""
    box, torus, ball = (all_shapes[name] for name in ("box", "torus", "ball"))
    falling = tg.Twist(place(0.1, 0.05, 1.5), (0.0, 0.0, -2.0), (0.0, 0.0, 0.0))
    for recession in (False, True):
        options = {"contacts": "all", "recession": recession, "device": "cpu"}
        book.ask(f"flat.recession{int(recession)}", tg.first_contact, box.moving(falling), box, **options)
    way = poses(book.rng("path"), 7, 2.0, turn=0.8)
    way[0, :3, 3] = 3.0
    book.ask("path", tg.first_contact, torus.moving(tg.Path(way)), ball, contacts="all", device="cpu")
    book.ask("chain", tg.first_contact, box.moving(_arm().link(2)), ball.at(place(0.4, 2.1)), device="cpu")
    if book.quick:
        return
    uneven = tg.Path(way, [0.0, 0.05, 0.3, 0.4, 0.8, 0.9, 1.0])
    book.ask("path.times", tg.first_contact, torus.moving(uneven), ball.moving(tg.Path(way[::-1] + 0.0)), device="cpu")
    book.ask("path.recession", tg.first_contact, torus.moving(uneven), ball, recession=True, device="cpu")
    for number in range(3):
        moving = box.moving(_arm().link(number))
        book.ask(f"chain.link{number}", tg.first_contact, moving, torus.at(place(0.2, 2.5, 0.1)), device="cpu")
    book.ask("rest.start", tg.first_contact, torus.moving(tg.Rest(place(0.5))), torus, contacts="all", device="cpu")
    book.ask("rest.free", tg.first_contact, torus.moving(tg.Rest(place(5.0))), torus, device="cpu")
    away = tg.Twist(place(1.0), (1.0, 0.0, 0.0), (0.0, 0.0, 0.0))  # faces touch at the start, exactly
    for start in ("checked", "trusted"):
        for recession in (False, True):
            case = f"parting.{start}{int(recession)}"
            book.ask(case, tg.first_contact, box.moving(away), box, start=start, recession=recession, device="cpu")
    joined = words.Rigid.join([falling, away, tg.Rest(place(0.2)), motions("screw", book.rng("join"), 5)])
    book.ask("joined", tg.first_contact, box.moving(joined), box, device="cpu")
    parts = motions("twist", book.rng("parts"), 2)[1].part(np.linspace(0.0, 0.9, 10), np.linspace(0.1, 1.0, 10))
    book.ask("parts", tg.first_contact, torus.moving(parts), ball, device="cpu")
    spins = tg.Twist(place(3.2), (-3.0, 0.2, 0.1), np.array([[40.0, 3.0, 9.0], [0.0, 60.0, 0.0], [200.0, 0.0, 1.0]]))
    book.ask("spins", tg.first_contact, torus.moving(spins), torus, device="cpu")
    large = words.generate.bumpy_torus(88, 44)
    many = motions("twist", book.rng("large"), 12, away=2.0)
    book.ask("large.batch", tg.first_contact, large.moving(many), large, device="cpu")
    book.keep("large.alone", [tg.first_contact(large.moving(many[k]), large, device="cpu") for k in range(12)])


def _arm() -> Any:
    """Three links that turn and slide."""
    upper, hand = place(1.0), place(0.8, 0.1)
    joints = [
        tg.Twist(np.eye(4), (0, 0, 0), (0, 0, 1.3)),
        tg.Twist(upper, (0.2, 0, 0), (0, 0.4, 1.0)),
        tg.Screw(hand, poses(np.random.default_rng(5), 1, 0.3)[0] @ hand),
    ]
    return tg.Chain(joints)


@section
def mixed(book: Book) -> None:
    """A deforming mesh and a rigid one."""
    ball, box, torus = (shapes()[name] for name in ("ball", "box", "torus"))
    for kind in ("twist", "screw") if book.quick else ("twist", "screw", "tan", "cosine", "rest"):
        many = motions(kind, book.rng(kind), book.size(8, 2), away=1.6)
        found, swapped = [], []
        for k in range(len(many)):
            rng = book.rng(f"{kind} {k}")
            soft = ball.moving(tg.Linear(ball.vertices * (1.2, 0.9, 1.1) + 0.1 * rng.uniform(-1, 1, (1, 3))))
            stiff = box.moving(many[k])
            found.append(tg.first_contact(soft, stiff, device="cpu"))
            swapped.append(tg.first_contact(stiff, soft, device="cpu", tolerance=1e-4))
        book.keep(f"{kind}.linear_first", found)
        book.keep(f"{kind}.rigid_first", swapped)
    growing = ball.at(place(2.6, 1.2)).moving(tg.Linear(ball.vertices * 1.5 + (2.0, 1.2, 0.0)))
    book.ask("chain", tg.first_contact, growing, box.moving(_arm().link(2)), device="cpu")
    inside = torus.moving(tg.Linear(torus.vertices * 1.1))
    start = box.moving(tg.Twist(place(1.0), (0.1, 0, 0), (0, 0, 1.0)))
    book.ask("start", tg.first_contact, inside, start, device="cpu")
    if not book.quick:
        book.ask("start.trusted", tg.first_contact, inside, start, start="trusted", device="cpu")


@section
def screws(book: Book) -> None:
    """The screws of the thesis and its two engines."""
    all_shapes = shapes()
    torus, ball, box, gear = (all_shapes[name] for name in ("torus", "ball", "box", "gear"))
    count = book.size(30, 6)
    for kind in ("tan", "cosine"):
        many = motions(kind, book.rng(kind), count)
        book.ask(f"{kind}.poses", many.pose, np.linspace(0, 1, count))
        book.ask(
            f"{kind}.twists", lambda many=many: dict(zip("vw", many.twist(np.linspace(0.1, 1, count)), strict=True))
        )
        book.ask(f"{kind}.torus", tg.first_contact, torus.moving(many), gear, device="cpu")
        if not book.quick:
            book.ask(f"{kind}.batch", tg.first_contact, box.moving(many), ball, device="cpu")
    many = motions("tan", book.rng("printed"), book.size(12, 2))
    book.ask("intervals.batch", words.first_contact_published, box.moving(many), ball)
    points = book.rng("points").uniform(-1, 1, (len(many) * 40, 4, 3))
    screw = motions("tan", book.rng("features"), 1, away=0.8)[0]
    screw = words.TanScrew(screw.pose(0.0), screw.pose(1.0))
    book.ask("cubics.edge_edge", words.edge_edge_times, points, screw, device="cpu")
    if book.quick:
        return
    book.ask("cubics.vertex_face", words.vertex_face_times, points, screw, device="cpu")
    book.ask("cubics.face_vertex", words.face_vertex_times, points, screw, device="cpu")
    for name, switches in {
        "usual": {},
        "plain": {"label_table": False, "pair_tables": False, "vertex_cache": False, "prefilters": False},
    }.items():
        found = [
            words.search_by_cubics(mesh.moving(many[k]), other, switches=words.Switches(**switches))
            for k in range(len(many))
            for mesh, other in ((box, ball), (gear, torus))
        ]
        book.keep(f"cubics.meshes.{name}", found)
    for kind, options in {
        "printed": words.IntervalOptions.printed(),
        "usual": words.IntervalOptions(),
        "cones": words.IntervalOptions(recession="hierarchical", discrete_axes=6),
    }.items():
        ask = words.first_contacts_by_intervals
        book.ask(f"intervals.{kind}", ask, box.moving(many), ball, options, device="cpu", threads=1)
        book.ask(f"intervals.{kind}.gear", ask, gear.moving(many[:4]), torus, options, device="cpu", threads=1)
    few, rest = motions("twist", book.rng("pairs"), len(points), away=0.5), tg.Rest()
    book.ask("intervals.edge_edge", words.edge_edge_by_intervals, points, few, rest, device="cpu")
    book.ask("intervals.vertex_face", words.vertex_face_by_intervals, points, few, rest, device="cpu")
    _recession(book, box, gear, many)
    x, y = np.meshgrid(np.linspace(-1, 1, 4), np.linspace(-1, 1, 4), indexing="ij")
    bulge = words.BezierSurface(np.stack([x, y, (1 - x * x) * (1 - y * y)], axis=-1))
    grid = np.linspace(0, 1, 11)
    ring, on_patch = words.TorusSurface(1.0, 0.35), bulge.points(0, grid, grid[::-1])
    book.keep("surfaces", {"points": on_patch, "value": ring.value(on_patch), "distance": ring.distance(on_patch)})
    down = poses(book.rng("surface"), 1, 0.1)[0]
    down[2, 3] = 4.0
    motion = tg.Twist(down, (0.2, 0.0, -4.0), (0.7, 0.4, 1.0))
    for name, other in {"patch": bulge, "torus": ring}.items():
        ask = words.surfaces_first_contact
        book.ask(f"surfaces.{name}", ask, bulge, motion, other, rest, tolerance=0.02, device="cpu")


def _recession(book: Book, box: Any, gear: Any, many: Any) -> None:
    """Cones of what moves away, by both builders, and the tests that use them."""
    for name, mesh in {"box": box, "gear": gear}.items():
        tree = words.ObbTree.of(mesh, wp.get_device("cpu"))
        for builder in ("hull", "published"):
            for attach in ("top-down", "bottom-up"):
                cones = words.RecessionCones.build(mesh, tree, builder=builder, attach=attach)
                kept = {"first": cones.first, "vectors": cones.vectors}
                kept["receding"] = words.receding_nodes(tree, cones, many[0], begin=0.2, end=0.5)
                book.keep(f"recession.{name}.{builder}.{attach}", kept)
        receding = [words.receding_triangles(mesh, many[k], many[k + 1], time=0.3) for k in range(4)]
        book.keep(f"recession.{name}.triangles", receding)


@section
def path_check(book: Book) -> None:
    """Parts on their way out of assemblies, and past several obstacles."""
    make = words.generate
    tasks = {"peg": make.peg_hole(triangles=512), "combs": make.comb_plates(3)}
    if not book.quick:
        tasks |= {"pipe": make.pipe_nozzle(), "hoops": make.two_hoops(600), "lifter": make.window_lifter(8000)}
    for name, task in tasks.items():
        for way in ("free_path", "touching_path"):
            path = tg.Path(getattr(task, way))
            check = book.ask(f"{name}.{way}", tg.check_path, task.part, task.fixed, path, instants=2, device="cpu")
            if check is not None:
                book.keep(f"{name}.{way}.end", {"pose": check.pose, "certain": check.clearance.certain})
    if book.quick:
        return
    part, rng = shapes()["gear"], book.rng("obstacles")
    obstacles = [shapes()["ball"].moving(tg.Rest(pose)) for pose in poses(rng, 4, 4.0)] + [shapes()["box"]]
    path = tg.Path(poses(rng, 9, 4.0))
    book.ask("obstacles", tg.check_path, part, obstacles, path, separation=0.05, device="cpu")


# --- At one instant ---------------------------------------------------------------------------------------------------


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
        sheet, end = _crumpled(book.rng(f"self {number}"), book.size(800, 200))
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
    sheet, end = _crumpled(book.rng("sheet"), book.size(800, 200))
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


# --- Bodies on ground -------------------------------------------------------------------------------------------------


def _grounds(book: Book) -> dict[str, Any]:
    make, rng = words.generate.terrain, book.rng("ground")
    rough = rng.integers(-3, 4, (40, 36)) / 8.0
    holes = rng.random((39, 35)) < 0.05
    found = {
        "dunes": make.dunes(size=(14.0, 9.0), height=1.2, length=8.0),
        "kerbs": make.kerbs(size=(8.0, 6.0)),
        "rough": tg.Heightfield(rough, (0.5, 0.4), (-1.0, 2.0, 0.5), holes),
    }
    if not book.quick:
        found |= {
            "flat": make.flat(size=(8.0, 6.0)),
            "slope": make.slope(size=(8.0, 6.0), angle=0.3, heading=0.7),
            "fractal": make.fractal(size=(8.0, 6.0), seed=2),
            "stairs": make.stairs(size=(8.0, 4.0)),
            "city": make.city_blocks(size=(30.0, 30.0)),
        }
    return found


def _analytic() -> dict[str, Any]:
    return {
        "cylinder": tg.Cylinder(0.35, 0.5),
        "sphere": tg.Sphere(0.4),
        "capsule": tg.Capsule(0.3, 0.6),
        "box": tg.Box([0.4, 0.3, 0.2]),
        "cone": tg.Cone(0.4, 0.7),
        "hull": tg.ConvexMesh(words.generate.gear(teeth=7, radius=0.5, bore=0.1)),
    }


def _lowered(book: Book, ground: Any, case: str, count: int, low: float, high: float) -> np.ndarray:
    """Poses of any attitude, so far above the ground below them; some upright, some lying."""
    rng = book.rng(case)
    found = poses(rng, count, 0.0)
    found[::5, :3, :3] = np.eye(3)
    found[1::5, :3, :3] = [[1, 0, 0], [0, 0, -1], [0, 1, 0]]
    lower, upper = ground.bounds[0, :2] - 0.3, ground.bounds[1, :2] + 0.3
    found[:, :2, 3] = lower + (upper - lower) * rng.random((count, 2))
    height = ground.height_at(found[:, :3, 3])
    found[:, 2, 3] = np.where(np.isnan(height), 0.0, height) + rng.uniform(low, high, count)
    return found


@section
def terrain(book: Book) -> None:
    """Bodies of every kind on ground of every kind: manifolds, touching and first contact."""
    grounds, bodies = _grounds(book), _analytic()
    chosen = ("cylinder", "sphere", "box") if book.quick else tuple(bodies)
    for ground_name, ground in grounds.items():
        points = book.rng(ground_name).uniform(*(ground.bounds[:, :2] + [[-0.5], [0.5]]), (60, 2))
        book.keep(f"{ground_name}.ground", {"heights": ground.height_at(points), "elements": ground.elements})
        for name in chosen:
            body, case = bodies[name], f"{ground_name}.{name}"
            low = _lowered(book, ground, case, book.size(150, 20), -0.3, 0.6)
            book.ask(f"{case}.manifold", tg.manifold, body.at(low), ground, device="cpu")
            high = _lowered(book, ground, f"{case} above", book.size(80, 10), 0.0, 1.5)
            rng = book.rng(f"{case} way")
            way = rng.uniform(-1, 1, (len(high), 3)) * (2.0, 2.0, 0.5) - (0.0, 0.0, 1.0)
            thrown = tg.Twist(high, way, rng.uniform(-6, 6, (len(high), 3)))
            book.ask(f"{case}.first", tg.first_contact, body.moving(thrown), ground, device="cpu")
            if name == "cylinder":
                book.ask(f"{case}.touches", tg.touches, body.at(low), ground, device="cpu")
            if not book.quick:
                options = {"margin": 0.05, "device": "cpu"}
                book.keep(f"{case}.few", [tg.manifold(body.at(pose), ground, **options) for pose in low[:6]])
                options = {"separation": 0.05, "tolerance": 1e-4, "device": "cpu"}
                moved = body.moving(tg.Screw(high, high @ poses(rng, 1, 0.8)[0]))
                book.ask(f"{case}.screw", tg.first_contact, moved, ground, **options)
        if not book.quick:
            fine = tg.Twist(high, (0.2, 0.1, -1.5), (3.0, 1.0, 0.0))
            book.ask(f"{ground_name}.fine", tg.first_contact, body.moving(fine), ground, tolerance=1e-10, device="cpu")
            low = _lowered(book, ground, f"{ground_name} printed", 40, 0.0, 0.4)
            book.ask(f"{ground_name}.published", words.manifold_published, bodies["cylinder"].at(low), ground)
    _one_body_on_terrain(book, grounds["dunes"], bodies)
    _tiles(book, grounds, bodies)
    if book.quick:
        return
    many = [grounds[name] for name in ("dunes", "kerbs", "rough")]
    low = _lowered(book, many[1], "worlds", 90, -0.2, 0.4)
    world = np.arange(90) % 3
    book.ask("worlds", tg.manifold, bodies["cylinder"].at(low), many, world=world, device="cpu")
    for name, body in bodies.items():
        placed = body.at(poses(book.rng(f"plane {name}"), 60, 0.6))
        book.ask(f"plane.{name}", words.on_plane, placed, [0.0, 0.6, 0.8], 0.1, margin=0.05, device="cpu")
    stones = tg.Sphere(0.2).at(poses(book.rng("stones"), 60, 0.6))
    wheels = bodies["cylinder"].at(poses(book.rng("wheels"), 60, 0.4))
    book.ask("spheres", words.cylinder_sphere, wheels, stones, margin=0.1, device="cpu")
    sizes = tg.Cylinder(np.linspace(0.2, 0.5, 60), np.linspace(0.6, 0.1, 60))
    low = _lowered(book, many[0], "sizes", 60, -0.1, 0.3)
    book.ask("sizes", tg.manifold, sizes.at(low), many[0], device="cpu")
    dug = many[2].edit((3, 4), np.full((6, 5), -1.0), holes=np.ones((5, 4), bool))
    low = _lowered(book, dug, "edited", 60, -0.5, 0.3)
    book.ask("edited", tg.manifold, bodies["cylinder"].at(low), dug, device="cpu")


def _one_body_on_terrain(book: Book, ground: Any, bodies: dict[str, Any]) -> None:
    way = _lowered(book, ground, "path", 5, 0.0, 0.1)
    way[:, 2, 3] += (2.0, 1.6, 1.2, 0.3, -0.2)
    body = bodies["cylinder"]
    book.ask("path", tg.first_contact, body.moving(tg.Path(way)), ground, device="cpu")
    if not book.quick:
        raised = place(3.0, 3.0, 3.0)
        falling = [tg.Twist(raised, (0, 0, -3.0), (0, 1.0, 0)), tg.Twist(place(0.4), (0, 0, 0), (3.0, 0, 1.0))]
        book.ask("chain", tg.first_contact, body.moving(tg.Chain(falling).link(1)), ground, device="cpu")
        tangent = words.TanScrew(raised, way[2] @ place(0, 0, -3.0))
        book.ask("tangent", tg.first_contact, body.moving(tangent), ground, device="cpu")


def _tiles(book: Book, grounds: dict[str, Any], bodies: dict[str, Any]) -> None:
    rough, body = grounds["rough"], bodies["cylinder"]
    low = _lowered(book, rough, "tiles", book.size(150, 20), -0.3, 0.6)
    tiled = tg.TiledHeightfield(rough.heights, rough.spacing, rough.origin, rough.holes)
    book.ask("tiled.manifold", tg.manifold, body.at(low), tiled, device="cpu")
    book.ask("tiled.touches", tg.touches, body.at(low), tiled, device="cpu")
    falling = tg.Twist(low + place(0, 0, 1.0) - np.eye(4), (0.3, 0.1, -1.5), (0.0, 2.0, 0.0))
    book.ask("tiled.first", tg.first_contact, body.moving(falling), tiled, device="cpu")
    if book.quick:
        return
    dunes = grounds["dunes"]
    low = _lowered(book, dunes, "folder", 100, -0.2, 0.4)
    with tempfile.TemporaryDirectory() as folder:
        written = words.write_tiles(folder, dunes.heights, dunes.spacing, dunes.origin, tile=32)
        for name in ("cylinder", "capsule", "hull"):
            book.ask(f"folder.{name}", tg.manifold, bodies[name].at(low), written, device="cpu")
        dug = words.edit_tiles(folder, (20, 30), np.full((9, 7), -0.5))
        book.ask("folder.edited", tg.manifold, body.at(low), dug, device="cpu")


# --- Soft bodies ------------------------------------------------------------------------------------------------------


def _soft_state(book: Book, case: str, simulation: Any, bodies: int) -> None:
    """What a simulation has come to."""
    for body in range(bodies):
        for what in ("positions", "velocities"):
            book.keep(f"{case}.{what}{body}", words.soft_vectors(simulation, what, body))
    book.keep(f"{case}.contacts", simulation.contacts)
    state = {"energy": words.soft_energy(simulation), "momentum": words.soft_momentum(simulation)}
    book.keep(f"{case}.state", {**state, "held": dataclasses.asdict(simulation.held), "time": simulation.time})


def _ring_and_beam(**options: Any) -> Any:
    """A soft ring is thrown at a fixed beam."""
    make = words.generate
    solid, skin = words.solid_torus((16, 2), radius=0.5, tube=0.15), make.torus(grid=(32, 12), radius=0.5, tube=0.15)
    ring = words.soft_body(solid, surface=skin, stiffness=60.0, velocity=(0.1, 0.0, -1.5), name="ring")
    beam = make.plate(300, size=(1.6, 0.25, 0.1)).at(place(0.0, 0.0, -0.26))
    beam = words.soft_body(beam, fixed=True, name="beam")
    return tg.soft.Simulation([ring, beam], distance=0.02, friction=0.6, device="cpu", **options)


@section
def soft(book: Book) -> None:
    """Steps of solids and sheets that fall, touch, are driven and pulled."""
    ring = _ring_and_beam()
    words.soft_run(ring, book.size(12, 5))
    _soft_state(book, "ring", ring, 2)
    sheet = words.generate.sheet(book.size(800, 200), size=(1.0, 1.0)).at(place(0.0, 0.0, 0.315))
    cloth = words.soft_body(sheet, stiffness=1e5, poisson=0.3, density=300.0, thickness=1e-3, velocity=(0, 0, -0.5))
    ball = words.soft_body(words.generate.icosphere(2, radius=0.3), fixed=True)
    falling = tg.soft.Simulation([cloth, ball], distance=0.02, device="cpu")
    words.soft_run(falling, book.size(15, 4))
    _soft_state(book, "cloth", falling, 1)
    if book.quick:
        return
    book.keep("cloth.meshes", [mesh.vertices for mesh in words.soft_meshes(falling)])
    tool = _ring_and_beam()
    tool.drive(1, (0.0, 0.0, 0.8))
    words.soft_pull(tool, 0, 40, (0.6, 0.3, 0.4), stiffness=5.0)
    words.soft_run(tool, 8)
    tool.let_go()
    words.soft_run(tool, 4)
    _soft_state(book, "tool", tool, 2)
    for response in ("penalty", "none"):
        other = _ring_and_beam(response=response)
        words.soft_run(other, 10)
        _soft_state(book, response, other, 1)
    tori = words.soft_scene("tori", 3200, stiffness=1e4)
    tori.set_state(1, positions=words.soft_vectors(tori, "positions", 1) - (0.0, 0.0, 2.2))
    tori.set_state(1, velocities=np.broadcast_to((0.0, 0.0, -8.0), words.soft_vectors(tori, "positions", 1).shape))
    words.soft_run(tori, 20)
    _soft_state(book, "tori", tori, 2)
    knot = words.soft_scene("knot")
    words.soft_run(knot, 60)
    _soft_state(book, "knot", knot, 1)
    drape = words.soft_scene("cloth", 1250)
    words.soft_run(drape, 15)
    _soft_state(book, "drape", drape, 1)
    drop = words.soft_scene("drop")
    words.soft_run(drop, 20)
    _soft_state(book, "drop", drop, 4)
    pinned = words.soft_body(sheet, stiffness=3e4, damping=0.5, density=200.0, fixed=[0, 20], thickness=2e-3)
    flag = tg.soft.Simulation([pinned], gravity=(0.0, 2.0, -9.81), dt=0.01, sweeps=12, device="cpu")
    words.soft_run(flag, 20)
    _soft_state(book, "flag", flag, 1)


# --- Cells ------------------------------------------------------------------------------------------------------------


def _maps(book: Book) -> dict[str, Any]:
    made = {
        "quads": words.quad_grid(5, 4, jitter=0.2, device="cpu"),
        "hexes": words.hex_grid(3, 3, 2, jitter=0.15, device="cpu"),
        "triangles": words.triangle_grid(4, 4, jitter=0.1, device="cpu"),
        "tets": words.tet_grid(2, 2, 2, jitter=0.05, device="cpu"),
        "surface": words.map_of_mesh(words.generate.icosphere(2), device="cpu"),
    }
    return dict(book.some(made.items(), 2))


def _map_columns(cells: Any) -> Columns:
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
        book.keep(f"{name}.made", _map_columns(grid))
        book.keep(f"{name}.refined", _map_columns(_refined(grid, rng)))
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
        book.keep(f"sets.{name}", _map_columns(grid))
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
        book.keep(f"{case}.adapted", _map_columns(own))
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


# --- Crowds -----------------------------------------------------------------------------------------------------------


def _crowd_state(book: Book, case: str, simulation: Any) -> None:
    """Where everybody is, and in which cells."""
    found = {"positions": words.crowd_positions(simulation), "velocities": words.crowd_velocities(simulation)}
    found |= {"cells": simulation.cells, "arrived": simulation.arrived, "operations": np.array(simulation.operations)}
    found |= {"leaves": simulation.map.leaves, "levels": simulation.map.levels[simulation.map.leaves]}
    if len(simulation.bodies):
        found["particles"] = words.crowd_particles(simulation)
    book.keep(case, found)
    book.ask(f"{case}.observed", simulation.observe)


@section
def crowd(book: Book) -> None:
    """Steps of every scenario, with bodies, ORCA, obstacles and detours."""
    make = words.scenarios
    scenes = {
        "corridor": lambda: make.corridor(120, 6, length=60.0, width=24.0, device="cpu"),
        "planet": lambda: make.planet(80, 4, device="cpu"),
        "circle": lambda: make.circle(80, 8, size=80.0, device="cpu"),
        "snake": lambda: make.snake(150, 1, device="cpu"),
        "field": lambda: make.field(200, device="cpu"),
        "city": lambda: make.city(60, 2, blocks=2, device="cpu"),
        "knot": lambda: make.knot(80, 4, device="cpu"),
        "potatoid": lambda: make.potatoid(80, 4, device="cpu"),
        "swarm": lambda: make.swarm(120, device="cpu"),
    }
    for name, start in book.some(scenes.items(), 2):
        simulation = start()
        book.keep(f"{name}.start", {"positions": words.crowd_positions(simulation)})
        words.crowd_step(simulation, book.size(50, 8))
        _crowd_state(book, name, simulation)
    orca = make.field(book.size(200, 60), behaviour=tg.crowd.Orca(range=1.5), device="cpu")
    words.crowd_step(orca, book.size(50, 6))
    _crowd_state(book, "orca", orca)
    if book.quick:
        return
    _crowd_obstacles(book)
    start = make.corridor(60, 4, length=48.0, width=24.0, device="cpu", seed=3)
    run = words.crowd_run(start, 2.0, 0.5)
    names = ("times", "positions", "velocities", "particles", "bodies", "set_off", "arrived")
    book.keep("trajectories", {name: getattr(run, name) for name in names})
    book.keep("measures", run.measures)
    apart = make.field(
        150, separate=True, behaviour=tg.crowd.Bubbles(range=1.5, view=200.0, field="distance"), device="cpu"
    )
    words.crowd_step(apart, 40)
    _crowd_state(book, "separate", apart)


def _crowd_obstacles(book: Book) -> None:
    """Detours around obstacles that come and go; groups, chains and bodies that give way."""
    grid = words.quad_grid(6, 6, size=6.0, device="cpu")
    bubbles = tg.crowd.Bubbles(range=1.5, cohesion=0.5)
    simulation = tg.crowd.Simulation(grid, behaviour=bubbles, adaptive=words.Density(8, 4), adapt_every=5)
    across = np.stack(np.meshgrid(np.linspace(2, 34, 9), np.linspace(2, 34, 9)), axis=-1).reshape(-1, 2)
    simulation.add_points(across, goals=across[::-1].copy(), groups=np.arange(81) % 5)
    outline = np.array([[1.2, 0.0], [0.6, 0.5], [-0.6, 0.5], [-1.2, 0.0], [-0.6, -0.5], [0.6, -0.5]])
    soft_body = tg.crowd.deformable(outline, plastic_yield=0.05, plastic_creep=1.0, plastic_max=0.2)
    for body, start in ((soft_body, (6.0, 17.0)), (tg.crowd.chain(4, 2.0, 1.0), (30.0, 25.0))):
        simulation.add_bodies(body, [start], headings=[[1.0, 0.2]], goals=[[[18.0, 18.0], [3.0, 3.0]]], repeat=True)
    obstacle = tg.crowd.Obstacle(simulation, [18.0, 18.0], 4.0)
    for step, centre in enumerate(([18.0, 18.0], [20.0, 16.0], [24.0, 12.0])):
        obstacle.move(centre)
        words.crowd_step(simulation, 20)
        book.keep(f"obstacle{step}.cells", obstacle.cells)
        book.ask(f"obstacle{step}.rerouted", simulation.reroute)
        _crowd_state(book, f"obstacle{step}", simulation)
    simulation.retarget([3, 5, 8], across[:3])
    book.ask("plan", simulation.plan, across[:12], across[::-1][:12].copy(), clearance=0.5, penalty=0.2)
    obstacle.remove()
    words.crowd_step(simulation, 20)
    _crowd_state(book, "removed", simulation)
    wall = words.quad_grid(8, 8, size=4.0, device="cpu")
    centres = wall.numpy("centre")[wall.leaves]
    wall.block("cell", wall.leaves[(np.abs(centres[:, 0] - 14.0) < 1.0) & (centres[:, 1] < 24.0)])
    planned = tg.crowd.Planner(wall, clearance=0.4).routes([[2.0, 2.0], [9.0, 6.0]], [[30.0, 2.0], [20.0, 4.0]])
    book.keep("planner", planned)
    around = tg.crowd.Simulation(wall, behaviour=tg.crowd.Orca(range=1.5))
    starts = np.stack(np.meshgrid(np.linspace(2, 8, 5), np.linspace(2, 12, 6)), axis=-1).reshape(-1, 2)
    around.add_points(starts, goals=starts + (20.0, 0.0), radius=0.25)
    words.crowd_step(around, 60)
    _crowd_state(book, "around", around)
    wide = tg.crowd.Simulation(words.quad_grid(4, 4, size=12.0, device="cpu"), whole_edges=True, dt=0.05)
    wide.add_bodies(tg.crowd.box(4.0, 2.0), [[24.0, 24.0]], headings=[[1.0, 0.0]], goals=[[[40.0, 24.0]]])
    wide.add_points(starts + 20.0, goals=starts + 4.0)
    words.crowd_step(wide, 30)
    _crowd_state(book, "whole_edges", wide)
    cage = tg.crowd.Cage(outline, book.rng("cage").uniform(-0.4, 0.4, (30, 3)))
    book.ask("cage", cage.follow, outline * (1.2, 0.8))


# --- Shapes, motions and robots ---------------------------------------------------------------------------------------


@section
def generators(book: Book) -> None:
    """The vertices and triangles of every generator."""
    make = words.generate
    names = ["torus", "icosphere", "bumpy_sphere", "bumpy_torus", "trefoil_knot", "sheet", "plate", "box", "prism"]
    names += ["comb", "gear", "peg", "plate_with_hole", "pot", "bent_pipe", "nozzle", "steering_wheel", "thin_plate"]
    names += ["door_panel", "door_cavity", "lifter_motor", "body_frame", "pylon_frame", "bent_bracket"]
    for name in book.some(names, 12):
        _keep_mesh(book, name, getattr(make, name)())
    for name in book.some(
        ["peg_hole", "comb_plates", "two_hoops", "pipe_nozzle", "window_lifter", "door_on_body", "pylon_bay"], 1
    ):
        task = getattr(make, name)()
        _keep_mesh(book, f"{name}.part", task.part)
        _keep_mesh(book, f"{name}.fixed", task.fixed)
        book.keep(f"{name}.paths", {"free": task.free_path, "touching": task.touching_path})
    grounds = ["flat", "slope", "fractal", "dunes", "kerbs", "stairs", "city_blocks"]
    for name in book.some(grounds, 4):
        ground = getattr(make.terrain, name)()
        _keep_hashed(book, f"terrain.{name}", heights=ground.heights)
    if book.quick:
        return
    for name, options in {"barrels": {}, "robot_with_trailer": {}, "lowered_wheels": {"count": 500}}.items():
        scene = getattr(make, name)(**options)
        book.keep(f"{name}", {"poses": np.asarray(scene.bodies.poses), "heights": scene.terrain.heights[::4, ::4]})
    slope = make.barrel_on_slope(0.3, rolling=True)
    book.keep("barrel_on_slope", {"poses": np.asarray(slope.bodies.poses)})
    _keep_mesh(book, "pot.thick", make.pot(thickness=0.1))
    for name in ("solid_torus", "solid_knot", "solid_block"):
        solid = getattr(words, name)()
        book.keep(name, {"vertices": solid.vertices, "tets": solid.tets, "volumes": solid.volumes})
    book.ask("coulomb_sphere", words.scenarios.coulomb_sphere, 40)


def _keep_mesh(book: Book, case: str, mesh: Any) -> None:
    _keep_hashed(book, case, vertices=mesh.vertices, faces=mesh.faces, edges=mesh.edges)
    book.keep(
        f"{case}.facts", {"bounds": mesh.bounds, "area": mesh.face_areas.sum(), "closed": mesh.topology.is_closed}
    )
    if len(mesh.faces) < 10_000:
        book.keep(f"{case}.report", mesh.report)
    if mesh.topology.is_closed and mesh.topology.is_oriented:
        mass = mesh.mass_properties(2.0)
        book.keep(f"{case}.mass", {"mass": mass.mass, "volume": mass.volume, "inertia": mass.inertia})
        if not book.quick:  # what is at the origin but for rounding has no scale to compare with
            book.keep(f"{case}.mass", {"centre": mass.centre})


def _keep_hashed(book: Book, case: str, **arrays: np.ndarray) -> None:
    """Size, hash and some rows of arrays that are too long to keep."""
    for name, array in arrays.items():
        raw = np.frombuffer(hashlib.sha256(np.ascontiguousarray(array).tobytes()).digest(), np.uint8)
        rows = np.linspace(0, len(array) - 1, min(len(array), 40)).astype(int)
        book.keep(case, {f"{name}.count": len(array), f"{name}.sha": raw, f"{name}.rows": array[rows]})


@section
def motion(book: Book) -> None:
    """Poses, velocities and bounds of every kind of motion."""
    points = book.rng("points").uniform(-1, 1, (12, 3))
    times = np.linspace(0, 1, 9)
    for kind in ("twist", "screw") if book.quick else ("rest", "twist", "screw", "tan", "cosine"):
        many = motions(kind, book.rng(kind), 9)
        book.ask(f"{kind}.pose", many.pose, times)
        angular, linear = many.twist(np.maximum(times, 0.05))
        book.keep(f"{kind}.twist", {"angular": angular, "linear": linear})
        book.ask(f"{kind}.positions", many.positions, points, 0.37)
        part = many.part(0.2, 0.7)
        book.ask(f"{kind}.part", part.pose, times)
        if kind != "rest":
            path = words.split_motion(many[3], 0.01)
            book.keep(f"{kind}.split", {"poses": path.poses, "times": path.times})
        if not book.quick:
            _bounds(book, kind, many, points)
    path = tg.Path(poses(book.rng("path"), 6, 2.0))
    book.ask("path.pose", path.pose, np.linspace(0, 1, 23))
    book.keep("path.twist", dict(zip(("angular", "linear"), path.twist(np.linspace(0, 1, 23)), strict=True)))
    arm = _arm()
    for number in range(3):
        book.ask(f"chain.{number}", arm.link(number).pose, times)
    book.ask("deviation", words.deviation, poses(book.rng("from"), 8), poses(book.rng("to"), 8))
    linear = tg.Linear(points + 1.0)
    book.ask("linear", linear.positions, points, 0.3)


def _bounds(book: Book, kind: str, many: Any, points: np.ndarray) -> None:
    """Boxes around moving bodies during parts of the step, as broad phases use them."""
    meshes = [words.generate.box((1.0, 0.7, 0.4))] * len(many)
    each = [many[k] for k in range(len(many))]
    book.ask(f"{kind}.swept", words.swept_boxes, meshes, each, 0.01, device=wp.get_device("cpu"))
    chain = [tg.Chain([one, tg.Twist(np.eye(4), (0.1, 0.2, 0.0), (0.0, 1.0, 0.0))]).link(1) for one in each]
    if kind != "cosine":
        book.ask(f"{kind}.swept_links", words.swept_boxes, meshes, chain, device=wp.get_device("cpu"))
    lower, upper = _point_bounds(many, np.resize(points, (len(many), 3)))
    book.keep(f"{kind}.bounds", {"lower": lower, "upper": upper})


def _point_bounds(many: Any, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Boxes around a point of each body during a part of its motion, by the functions that kernels use."""
    begin = np.linspace(0.0, 0.6, len(many))
    kernel, record, box = words.bounding_kernel()
    out = wp.empty(len(many), dtype=box, device="cpu")
    inputs = [
        wp.array(np.ascontiguousarray(many.records()), dtype=record, device="cpu"),
        wp.array(np.stack([begin, begin + 0.3], axis=1), dtype=wp.vec2d, device="cpu"),
        wp.array(points, dtype=wp.vec3d, device="cpu"),
    ]
    wp.launch(kernel, len(many), inputs, [out], device="cpu")
    return out.numpy()["lower"], out.numpy()["upper"]


_ARM = """<robot name="arm">
  <link name="base"><collision><geometry><box size="0.4 0.4 0.1"/></geometry></collision></link>
  <link name="mast">
    <collision><origin xyz="0 0 0.5"/><geometry><cylinder radius="0.1" length="1.0"/></geometry></collision>
  </link>
  <link name="slide"><collision><geometry><box size="1.6 0.1 0.1"/></geometry></collision></link>
  <link name="hand">
    <collision><geometry><sphere radius="0.2"/></geometry></collision>
    <collision><origin xyz="0.3 0 0" rpy="0 1.0 0"/><geometry><box size="0.1 0.1 0.1"/></geometry></collision>
  </link>
  <joint name="turn" type="continuous">
    <parent link="base"/><child link="mast"/><origin xyz="0 0 0.05"/><axis xyz="0 0 1"/>
  </joint>
  <joint name="reach" type="prismatic">
    <parent link="mast"/><child link="slide"/><origin xyz="0 0 1.0" rpy="0.1 0.2 0.3"/><axis xyz="1 0 0"/>
    <limit lower="0" upper="1" effort="1" velocity="1"/>
  </joint>
  <joint name="wrist" type="revolute">
    <parent link="slide"/><child link="hand"/><origin xyz="0.9 0.1 0" rpy="0.3 0 0"/><axis xyz="0 1 1"/>
    <limit lower="-3" upper="3" effort="1" velocity="1"/>
  </joint>
</robot>
"""


@section
def robots(book: Book) -> None:
    """A small arm that is written, read and moved."""
    if importlib.util.find_spec("yourdfpy") is None:
        book.skipped = "reading URDF needs yourdfpy"
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "arm.urdf"
        file.write_text(_ARM)
        arm = tg.load_urdf(file)
    for shape, name in zip(arm.shapes, arm.links, strict=True):
        book.keep(f"shape.{name}", {"vertices": shape.vertices, "faces": shape.faces})
    wall = words.generate.box((0.2, 6.0, 4.0)).at(place(1.5))
    linked = arm.linked_pairs()
    for number, (start, end) in enumerate(book.some([([-2, 0, 0], [2, 0.6, 1]), ([0.1, 0.2, -1], [3, 0, 2])], 1)):
        chain = arm.chain(start, end)
        book.keep(f"chain{number}", [chain.link(k).pose(np.linspace(0, 1, 5)) for k in range(len(chain))])
        scene = [*arm.moving(start, end), wall]
        book.ask(f"contact{number}", tg.first_contact_of_scene, scene, ignored=linked, device="cpu")


# --- Files and pictures -----------------------------------------------------------------------------------------------


@section
def files(book: Book) -> None:
    """What is written is read back the same."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _shape_files(book, folder)
        _motion_files(book, folder)
        if not book.quick:
            _simulation_files(book, folder)


def _shape_files(book: Book, folder: Path) -> None:
    gear = shapes()["gear"]
    for suffix in book.some(("ply", "stl", "obj", "off", "glb"), 2):
        gear.save(folder / f"gear.{suffix}")
        mesh = tg.Mesh.load(folder / f"gear.{suffix}")
        book.keep(f"mesh.{suffix}", {"vertices": mesh.vertices, "faces": mesh.faces})
    grounds = _grounds(book)
    for suffix, ground in (("npy", grounds["kerbs"]), ("npz", grounds["rough"])):
        ground.save(folder / f"ground.{suffix}")
        read = tg.Heightfield.load(folder / f"ground.{suffix}")
        book.keep(f"ground.{suffix}", {"heights": read.heights, "holes": read.holes, "spacing": read.spacing})
    surface = ground.to_mesh()
    book.keep("ground.mesh", {"vertices": surface.vertices, "faces": surface.faces})
    book.keep("ground.planes", dict(zip(("normals", "offsets"), ground.planes(), strict=True)))
    part = words.save_part(folder / "gear.part", gear, density=2.0)
    again = words.load_part(folder / "gear.part")
    book.keep("part", {"first": again.cones.first, "vectors": again.cones.vectors, "mass": part.mass.mass})
    book.keep("part.tree", {field: again.tree.nodes.numpy()[field] for field in again.tree.nodes.numpy().dtype.names})


def _motion_files(book: Book, folder: Path) -> None:
    path = tg.Path(poses(book.rng("path"), 6, 2.0), [0.0, 0.1, 0.3, 0.4, 0.9, 1.0])
    words.save_path(path, folder / "path.csv", (2.0, 7.0))
    read, clock = words.load_path(folder / "path.csv")
    book.keep("path", {"poses": read.poses, "times": read.times, "clock": np.array(clock)})
    torus, ball = shapes()["torus"], shapes()["ball"]
    words.Trajectory(torus, ball, motions("twist", book.rng("actions"), book.size(30, 4))).save(folder / "actions.npz")
    actions = words.Trajectory.load(folder / "actions.npz")
    for recession in (False, True):
        done = words.replay(actions, recession=recession, device="cpu", threads=1)
        kept = {"time": done.time, "status": done.status, "features": done.features}
        book.keep(f"replay.recession{int(recession)}", {**kept, **done.counts})
    if not book.quick:
        done = words.replay(actions, words.IntervalOptions(), device="cpu", threads=1)
        book.keep("replay.intervals", {"time": done.time, "status": done.status, **done.counts})


def _simulation_files(book: Book, folder: Path) -> None:
    ring = _ring_and_beam()
    recorder = words.SoftRecorder(ring)
    for _ in range(4):
        recorder()
        words.soft_run(ring, 2)
    recorder.recording().save(folder / "ring.npz")
    read = words.SoftRecording.load(folder / "ring.npz")
    book.keep("soft", {"times": read.times, "points": read.points, "kinds": read.kinds, "first": read.first})
    book.keep("soft.frames", {str(k): frames for k, (_, _, frames) in enumerate(read.bodies)})
    crowd_ = words.scenarios.corridor(40, 2, length=48.0, width=24.0, device="cpu")
    words.crowd_run(crowd_, 1.0, 0.25).save(folder / "crowd.npz")
    run = tg.crowd.Trajectories.load(folder / "crowd.npz")
    book.keep("crowd", {"positions": run.positions, "particles": run.particles, **run.measures})
    (folder / "town.osm").write_text(_TOWN)
    town = tg.crowd.load_streets(folder / "town.osm", cell=2.0, device="cpu")
    book.keep("streets", {"cars": town.cars, "walkers": town.walkers, "buildings": town.buildings})
    book.keep("streets.map", _map_columns(town.map))


_TOWN = """<?xml version="1.0"?><osm version="0.6">
  <node id="1" lat="48.5800" lon="7.7500"/><node id="2" lat="48.5800" lon="7.7503"/>
  <node id="3" lat="48.5801" lon="7.7503"/><node id="4" lat="48.5801" lon="7.7500"/>
  <node id="5" lat="48.5798" lon="7.7497"/><node id="6" lat="48.5798" lon="7.7506"/>
  <node id="7" lat="48.5803" lon="7.7506"/>
  <way id="1"><nd ref="1"/><nd ref="2"/><nd ref="3"/><nd ref="4"/><nd ref="1"/><tag k="building" v="yes"/></way>
  <way id="2"><nd ref="5"/><nd ref="6"/><nd ref="7"/><tag k="highway" v="residential"/></way>
</osm>
"""


@section
def pictures(book: Book) -> None:
    """Pixels of the ray caster."""
    torus, ball = shapes()["torus"], shapes()["ball"]
    motion_ = tg.Twist(place(3.0), (-2.5, 0.3, 0.2), (1.0, 2.0, 0.5))
    moving = torus.moving(motion_)
    hit = tg.first_contact(moving, ball, device="cpu")
    scene = tg.Scene.of(moving, ball, contacts=hit.contacts)
    book.ask("meshes", tg.picture, scene, hit.time, size=(120, 80), device="cpu")
    if book.quick:
        return
    book.ask("glass", tg.picture, scene.with_glass(ball.name), 1.0, size=(120, 80), samples=1, device="cpu")
    barrels = words.generate.barrels()
    found = tg.manifold(barrels.bodies, barrels.terrain, device="cpu")
    ground = tg.Scene.of(barrels.bodies, barrels.terrain, contacts=found)
    book.ask("ground", tg.picture, ground, size=(120, 80), device="cpu")


# --- Digests ----------------------------------------------------------------------------------------------------------


def take(name: str, quick: bool = False) -> Book:
    """Ask the questions of one section."""
    book = Book(name, quick)
    try:
        SECTIONS[name](book)
    except Exception:
        book.failures.append(f"{name}\n{traceback.format_exc()}")
    return book


def hash_of(columns: Columns) -> str:
    """The hash of columns, by name: of their types, shapes and bits."""
    total = hashlib.sha256()
    for key in sorted(columns):
        column = np.ascontiguousarray(columns[key])
        total.update(f"{key} {column.dtype.str} {column.shape}".encode())
        total.update(column.tobytes())
    return total.hexdigest()


def digest(sections: Sequence[str], quick: bool) -> tuple[Columns, list[str]]:
    """All columns of the sections, and the questions that failed; prints a line for each section."""
    everything: Columns = {}
    failures: list[str] = []
    for name in sections:
        begin = time.perf_counter()
        book = take(name, quick)
        everything |= book.columns
        failures += book.failures
        numbers = sum(column.size for column in book.columns.values())
        told = f"{len(book.columns):5d} columns, {numbers:9d} numbers, {time.perf_counter() - begin:6.1f} s"
        print(f"{name:16s} {hash_of(book.columns)}  {told}  {book.skipped}".rstrip(), flush=True)
    print(f"{'all':16s} {hash_of(everything)}")
    for failure in failures:
        print(f"\nFAILED {failure}", file=sys.stderr)
    return everything, failures


def _difference(a: np.ndarray, b: np.ndarray) -> tuple[str, str]:
    """How two columns compare, "same", "close" or "different", and where they differ most."""
    if a.shape != b.shape:
        return "different", f"shape {a.shape} and {b.shape}"
    if a.dtype == b.dtype and a.tobytes() == b.tobytes():
        return "same", ""
    if a.size == 0:
        return "close", f"type {a.dtype} and {b.dtype}"
    if a.dtype.kind != "f" and b.dtype.kind != "f":
        wrong = np.flatnonzero((a != b).ravel())
        if not len(wrong):
            return "close", f"equal numbers of type {a.dtype} and {b.dtype}"
        at = np.unravel_index(wrong[0], a.shape)
        return "different", f"{len(wrong)} of {a.size} integers, first at {_index(at)}: {a[at]} and {b[at]}"
    off = deviation(a, b)
    at = np.unravel_index(int(np.argmax(off)), a.shape)
    told = f"worst at {_index(at)}: {a[at]!r} and {b[at]!r}, {off[at]:.1e} relative"
    return ("close" if off[at] <= CLOSE else "different"), told


def _index(at: Sequence[Any]) -> str:
    return "[" + ", ".join(str(int(k)) for k in at) + "]"


def deviation(a: np.ndarray, b: np.ndarray, scale: float | None = None) -> np.ndarray:
    """How far two columns are apart, relative to the values or to the largest of them; inf where one is no number."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    finite = np.isfinite(a) & np.isfinite(b)
    if scale is None:
        scale = float(np.abs(a[finite]).max(initial=0.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        off = np.abs(a - b) / np.maximum(np.maximum(np.abs(a), np.abs(b)), scale)
    return np.where(same, 0.0, np.where(finite, off, np.inf))


def compare(before: Mapping[str, np.ndarray], after: Mapping[str, np.ndarray]) -> bool:
    """Tell how the columns that both have differ, and which only one has; whether all that both have are the same."""
    verdicts: dict[str, dict[str, int]] = {}
    told = []
    for key in [key for key in before if key in after]:
        verdict, where = _difference(before[key], after[key])
        counts = verdicts.setdefault(key.partition("/")[0], dict.fromkeys(("same", "close", "different"), 0))
        counts[verdict] += 1
        if verdict != "same":
            told.append(f"{verdict:9s} {key}: {where}")
    print(f"{'section':16s} {'same bits':>10s} {'within 1e-12':>13s} {'different':>10s}")
    for name, counts in verdicts.items():
        print(f"{name:16s} {counts['same']:10d} {counts['close']:13d} {counts['different']:10d}")
    for line in told:
        print(line)
    for title, one, other in (("first", before, after), ("second", after, before)):
        alone = [key for key in one if key not in other]
        print(f"only in the {title}: {len(alone)} columns", *alone, sep="\n    ")
    return not told


# --- The record of the quick digest -----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Kept:
    """What the record holds of one column."""

    shape: tuple[int, ...]
    integers: bool
    at: np.ndarray  #: which entries, counted through the whole column
    values: np.ndarray
    total: float  #: of floats the largest size of a finite entry; of integers a checksum of all of them


def _chosen(size: int, most: int) -> np.ndarray:
    """The entries of a column that the record holds."""
    return np.arange(size) if size <= most else np.linspace(0, size - 1, most).astype(np.int64)


def _kept(column: np.ndarray) -> Kept:
    integers = column.dtype.kind != "f"
    at = _chosen(column.size, KEPT["integers" if integers else "floats"])
    flat = column.ravel().astype(np.int64 if integers else np.float64)
    return Kept(column.shape, integers, at, flat[at], _total(flat))


def _total(flat: np.ndarray) -> float:
    if flat.dtype.kind == "f":
        return float(np.abs(flat[np.isfinite(flat)]).max(initial=0.0))
    return float(zlib.crc32(flat.tobytes()))


def _is_recorded(key: str) -> bool:
    """Hashes are not: they tell no difference of rounding from another."""
    return not key.endswith(".sha")


def record(columns: Columns, file: Path = RECORD) -> None:
    """Write what the test compares with: some entries of every column, packed."""
    kept = {key: _kept(column) for key, column in columns.items() if _is_recorded(key)}
    ones = list(kept.values())
    np.savez_compressed(
        file,
        keys=np.frombuffer("\n".join(kept).encode(), np.uint8),
        shapes=np.frombuffer("\n".join(" ".join(map(str, one.shape)) for one in ones).encode(), np.uint8),
        most=np.array([KEPT["floats"], KEPT["integers"]]),
        integers=np.array([one.integers for one in ones]),
        totals=np.array([one.total for one in ones]),
        real=np.concatenate([one.values for one in ones if not one.integers]),
        whole=np.concatenate([one.values for one in ones if one.integers]),
    )


def load_record(file: Path = RECORD) -> dict[str, Kept]:
    """What `record` wrote."""
    found: dict[str, Kept] = {}
    with np.load(file, allow_pickle=False) as arrays:
        keys = arrays["keys"].tobytes().decode().split("\n")
        shapes = [tuple(map(int, line.split())) for line in arrays["shapes"].tobytes().decode().split("\n")]
        values, begin = (arrays["real"], arrays["whole"]), [0, 0]
        for key, shape, integers, total in zip(keys, shapes, arrays["integers"], arrays["totals"], strict=True):
            which = int(integers)
            at = _chosen(int(np.prod(shape, dtype=np.int64)), int(arrays["most"][which]))
            end = begin[which] + len(at)
            found[key] = Kept(shape, bool(integers), at, values[which][begin[which] : end], float(total))
            begin[which] = end
    return found


def _close(section: str, column: str) -> float:
    """How far a column may be from the record."""
    return MAGNIFIED.get(column.rpartition(".")[2], CLOSE) if section in MAGNIFYING else CLOSE


def check(columns: Columns, recorded: Mapping[str, Kept]) -> list[str]:
    """What of the columns differs from the record, each as a line with section, case, column and index."""
    told = []
    for key, before in recorded.items():
        section, case, column = key.split("/")
        name = f"section {section}, case {case}, column {column}"
        if key not in columns:
            told.append(f"{name}: not there any more")
            continue
        now = columns[key]
        if now.shape != before.shape or (now.dtype.kind != "f") != before.integers:
            told.append(f"{name}: {now.dtype} of shape {now.shape}, recorded {before.values.dtype} of {before.shape}")
            continue
        flat = now.ravel().astype(before.values.dtype)
        if before.integers:
            off = (flat[before.at] != before.values).astype(float)
        else:
            off = deviation(before.values, flat[before.at], before.total)
        if len(off) and off.max() > _close(section, column):
            worst = int(np.argmax(off))
            place = int(before.at[worst])
            at = _index(np.unravel_index(place, before.shape))
            told.append(f"{name}, index {at}: {flat[place]!r}, recorded {before.values[worst]!r}")
        elif before.integers and _total(flat) != before.total:
            told.append(f"{name}: an integer between the recorded ones differs")
    return told + [f"{key}: not in the record" for key in columns if _is_recorded(key) and key not in recorded]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.digest", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, help="write every answer column to this .npz file")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("A", "B"), help="tell how two such files differ")
    parser.add_argument("--sections", help=f"some of {','.join(SECTIONS)}")
    parser.add_argument("--quick", action="store_true", help="a part of the questions")
    parser.add_argument(
        "--record", action="store_true", help=f"write {RECORD.name} of the tests, from the quick digest"
    )
    given = parser.parse_args(arguments)
    if given.compare:
        before, after = (dict(np.load(file, allow_pickle=False)) for file in given.compare)
        return 0 if compare(before, after) else 1
    chosen = given.sections.split(",") if given.sections else list(SECTIONS)
    unknown = [name for name in chosen if name not in SECTIONS]
    if unknown:
        parser.error(f"there is no section {unknown[0]!r}: there are {', '.join(SECTIONS)}")
    if given.record and given.sections:
        parser.error("the record holds all sections")
    print(f"tangere in {Path(tg.__file__).parent}")
    columns, failures = digest(chosen, given.quick or given.record)
    if given.out:
        np.savez(given.out, **columns)
    if given.record and not failures:
        record(columns)
        print(f"{RECORD.name}: {RECORD.stat().st_size / 1e3:.0f} kB")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
