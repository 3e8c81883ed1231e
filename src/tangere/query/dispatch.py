"""Who answers? One table from a question and what the two things are to the engine that answers it.

A new shape or motion adds a kind and rows; no caller changes. The table names engines and loads none of them: the room
registers a small function for each name (`query.engines`, `first_contact.engines`), which loads its engine when it is
first asked. Shapes are known by the names of their classes, so that a query about meshes does not load terrain.

Known as: a dispatch table of pairs (double dispatch), as in most collision libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple, NoReturn

from tangere.motion import Linear, Path, Rigid
from tangere.runtime import UnsupportedError, described
from tangere.shape import Moving
from tangere.shape.mesh import Mesh

MESH = "Mesh at rest"
DEFORMING = "Mesh in Linear motion"
RIGID = "Mesh in rigid motion"
ALONG_PATH = "Mesh along a Path"
CYLINDER = "Cylinder at rest"
BODY = "analytic body at rest"
MOVING_BODY = "moving analytic body"
TERRAIN = "Heightfield"
BODIES = "list of bodies"
TERRAINS = "list of Heightfields"
POINTS = "points"
ITSELF = None  #: there is no second thing

_SHAPES_OF_GROUND = {"Heightfield", "TiledHeightfield"}


class Row(NamedTuple):
    """One row of the table: what a and b may be, and the name of the engine that answers."""

    question: str
    a: tuple[str, ...]
    b: tuple[str | None, ...]
    engine: str


_FLEXIBLE = (MESH, DEFORMING)
_STIFF = (MESH, RIGID)
_PARTS = (*_STIFF, ALONG_PATH)
_PLACED = (MESH, DEFORMING, RIGID, ALONG_PATH)
_ANALYTIC = (CYLINDER, BODY, MOVING_BODY)
_THINGS = (*_PLACED, *_ANALYTIC)

#: Question, what a may be, what b may be, engine. The first row that fits answers.
TABLE = (
    Row("first_contact", _FLEXIBLE, (*_FLEXIBLE, ITSELF), "deforming"),
    Row("first_contact", _STIFF, _STIFF, "rigid"),
    Row("first_contact", _PARTS, _PARTS, "path"),
    Row("first_contact", (DEFORMING,), (RIGID,), "mixed"),
    Row("first_contact", (RIGID,), (DEFORMING,), "mixed"),
    Row("first_contact", (DEFORMING,), (ALONG_PATH,), "stretches"),
    Row("first_contact", (ALONG_PATH,), (DEFORMING,), "stretches"),
    Row("first_contact", _ANALYTIC, (TERRAIN,), "heightfield"),
    Row("first_contact", _PLACED, (TERRAIN,), "mesh_heightfield"),
    Row("first_contact", _ANALYTIC, (*_ANALYTIC, *_PARTS), "convex"),
    Row("first_contact", _PARTS, _ANALYTIC, "convex"),
    Row("first_contact", _ANALYTIC, (DEFORMING,), "deforming_convex"),
    Row("first_contact", (DEFORMING,), _ANALYTIC, "deforming_convex"),
    Row("first_contact", (BODIES,), (ITSELF,), "scene"),
    Row("first_contact", (BODIES,), (BODIES, TERRAINS, *_THINGS, TERRAIN), "lists"),
    Row("first_contact", (*_THINGS,), (BODIES, TERRAINS), "lists"),
    Row("all_contacts", _FLEXIBLE, (*_FLEXIBLE, ITSELF), "all_contacts"),
    Row("candidates", _FLEXIBLE, (*_FLEXIBLE, ITSELF), "candidates"),
    Row("least_clearance", _STIFF, _STIFF, "meshes"),
    Row("least_clearance", _ANALYTIC, (*_ANALYTIC, *_PARTS, TERRAIN), "bodies"),
    Row("least_clearance", _PARTS, (*_ANALYTIC, *_PARTS, TERRAIN), "bodies"),
    Row("largest_step", _FLEXIBLE, (*_FLEXIBLE, ITSELF), "largest_step"),
    Row("largest_step", _STIFF, _STIFF, "largest_step"),
    Row("distance", _PLACED, _PLACED, "meshes"),
    Row("distance", _THINGS, (TERRAIN,), "heightfield"),
    Row("distance", _ANALYTIC, (*_ANALYTIC, *_PLACED), "convex"),
    Row("distance", _PLACED, _ANALYTIC, "convex"),
    Row("distance", (BODIES,), (ITSELF, BODIES, TERRAINS, *_THINGS, TERRAIN), "lists"),
    Row("distance", _THINGS, (BODIES, TERRAINS), "lists"),
    Row("intersects", _PLACED, (*_PLACED, ITSELF), "meshes"),
    Row("intersects", _THINGS, (TERRAIN,), "heightfield"),
    Row("intersects", _ANALYTIC, (*_ANALYTIC, *_PLACED), "convex"),
    Row("intersects", _PLACED, _ANALYTIC, "convex"),
    Row("intersects", (BODIES,), (ITSELF, BODIES, TERRAINS, *_THINGS, TERRAIN), "lists"),
    Row("intersects", _THINGS, (BODIES, TERRAINS), "lists"),
    Row("intersecting_pairs", _PLACED, _PLACED, "intersecting_pairs"),
    Row("touches", (CYLINDER,), (TERRAIN,), "touches"),
    Row("proximity", (MESH,), (MESH, ITSELF), "meshes"),
    Row("proximity", _THINGS, (*_THINGS, TERRAIN), "bodies"),
    Row("proximity", (BODIES,), (ITSELF, BODIES, TERRAINS, *_THINGS, TERRAIN), "lists"),
    Row("proximity", _THINGS, (BODIES, TERRAINS), "lists"),
    Row("manifold", (CYLINDER, BODY), (TERRAIN, TERRAINS), "manifold"),
    Row("manifold", _ANALYTIC, (*_ANALYTIC, *_PLACED, TERRAIN), "manifold"),
    Row("manifold", _PLACED, (*_ANALYTIC, *_PLACED, TERRAIN), "manifold"),
    Row("manifold", (BODIES,), (ITSELF, BODIES, TERRAINS, *_THINGS, TERRAIN), "lists"),
    Row("manifold", _THINGS, (BODIES,), "lists"),
    Row("signed_distance", (POINTS,), (MESH,), "signed_distance"),
)


#: By question and name in the table; questions that have one engine only answer themselves.
_ENGINES: dict[tuple[str, str], Callable[..., Any]] = {}


def register(question: str, engines: Mapping[str, Callable[..., Any]]) -> None:
    """Make functions known as the engines of a question, by their names in the table."""
    _ENGINES.update({(question, name): engine for name, engine in engines.items()})


def registered(question: str) -> dict[str, Callable[..., Any]]:
    """The engines of a question by their names."""
    return {name: engine for (asked, name), engine in _ENGINES.items() if asked == question}


def answer(question: str, a: Any, b: Any = None, **options: Any) -> Any:
    """What the engine for the question and the two things answers."""
    return _ENGINES[question, engine_for(question, a, b)](a, b, **options)


def supported(question: str | None = None) -> tuple[Row, ...]:
    """What can be asked about which things: the rows of the table, of one question or of all."""
    return tuple(row for row in TABLE if question in (None, row.question))


def engine_for(question: str, a: Any, b: Any = None) -> str:
    """The name of the engine that answers the question about a and b; raises where there is none."""
    engine = _engine_of_kinds(question, kind_of(a), ITSELF if b is None else kind_of(b))
    return engine or refuse_unsupported(question, a, b)


@cache
def _engine_of_kinds(question: str, a: str, b: str | None) -> str | None:
    """The engine of the first row that fits."""
    return next((row.engine for row in TABLE if row.question == question and a in row.a and b in row.b), None)


def refuse_unsupported(question: str, a: Any, b: Any = None) -> NoReturn:
    """Raise `UnsupportedError` with one sentence: what the things are, and what the question is known for."""
    rows, words = supported(question), question.replace("_", " ")
    itself = b is None and any(ITSELF in row.b for row in rows)
    first, second = kind_of(a), ITSELF if itself else kind_of(b)
    if any(second in row.a and first in row.b for row in rows):
        raise UnsupportedError(f"{words} of a {first} with a {second}: ask with the {second} first")
    if advice := _advice(question, first, second):
        raise UnsupportedError(advice)
    names = [described(thing) if kind == POINTS else _a(str(kind)) for thing, kind in ((a, first), (b, second))]
    what = f"{names[0]} with itself" if itself else f"{names[0]} and {names[1]}"
    cure = "; vertices become a body by tg.Mesh(vertices, faces), and where they go is mesh.moving(tg.Linear(array))"
    arrays = POINTS in (first, second) and not any(POINTS in row.a for row in rows)
    raise UnsupportedError(f"{words} of {what} is not known; {_known(question)}{cure if arrays else ''}")


def _known(question: str) -> str:
    """What a question is known for, in words."""
    return "known: " + "; ".join(
        dict.fromkeys(f"{_either(row.a)} with {_either(row.b)}" for row in supported(question))
    )


def kind_of(thing: Any) -> str:
    """What a thing is, in the words of the table; of something else the name of its class."""
    if isinstance(thing, Mesh):
        return MESH
    if isinstance(thing, Moving):
        return _kind_of_moving(thing)
    if known := _kind_of_class(type(thing)):
        return known
    if hasattr(thing, "dtype"):  # an array of NumPy, Warp, Torch or JAX
        return POINTS
    if isinstance(thing, Iterable) and not isinstance(thing, (str, bytes, dict)):
        return _kind_of_list(thing)
    return type(thing).__name__


def is_analytic(thing: Any) -> bool:
    """Whether these are analytic bodies, at rest or moving."""
    return _kind_of_class(type(thing.shape if isinstance(thing, Moving) else thing)) in (CYLINDER, BODY)


@cache
def _kind_of_class(shape: type) -> str | None:
    """What things of a class are, if they are ground or analytic bodies."""
    classes = {base.__name__ for base in shape.__mro__}
    if classes & _SHAPES_OF_GROUND:
        return TERRAIN
    if "Analytic" in classes:
        return CYLINDER if "Cylinder" in classes else BODY
    return None


def _kind_of_moving(thing: Moving) -> str:
    motion = thing.motion
    if not isinstance(thing.shape, Mesh):
        return MOVING_BODY if is_analytic(thing) else f"moving {type(thing.shape).__name__}"
    if isinstance(motion, Linear):
        return DEFORMING
    if isinstance(motion, Path):
        return ALONG_PATH
    if isinstance(motion, Rigid):
        return RIGID
    return f"Mesh in {type(motion).__name__} motion"


def _kind_of_list(things: Iterable[Any]) -> str:
    """Bodies, unless all items are terrains or none is a body but rows of numbers."""
    items = list(things) if isinstance(things, (list, tuple)) else []
    if items and all(kind_of(item) == TERRAIN for item in items):
        return TERRAINS
    rows = items and all(isinstance(item, (int, float, list, tuple)) or kind_of(item) == POINTS for item in items)
    return POINTS if rows else BODIES


def _advice(question: str, first: str, second: str | None) -> str | None:
    """What to ask instead, where there is something."""
    if {first, second} <= {TERRAIN, TERRAINS} and question not in ("signed_distance", "touches"):
        return (
            f"{question.replace('_', ' ')} of ground and ground is not known: ground does not move; {_known(question)}"
        )
    if question == "all_contacts" and {RIGID, ALONG_PATH} & {first, second}:
        return (
            "all contacts within a step are known of meshes at rest or in Linear motion, not in rigid motion;"
            ' first_contact(a, b, options=RigidOptions(contacts="all")) finds all that touches at the first instant'
        )
    return None


def _either(kinds: tuple[str | None, ...]) -> str:
    """The kinds as words: one, or one of several."""
    names = ["itself" if kind is ITSELF else kind if kind == POINTS else _a(kind) for kind in kinds]
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _a(kind: str) -> str:
    """With its article."""
    return f"an {kind}" if kind[0] in "aeio" else f"a {kind}"
