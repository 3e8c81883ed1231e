"""Who answers? One table from a question and what the two things are to the engine that answers it.

A new shape or motion adds a kind and rows; no caller changes. The table names engines and loads none of them:
`first_contact.engines` has a small function for each name. Shapes are known by the names of their classes, so that a
query about meshes does not load terrain.

Known as: a dispatch table of pairs (double dispatch), as in most collision libraries.
"""

from __future__ import annotations

from collections.abc import Iterable
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
_PLACED = (MESH, DEFORMING, RIGID, ALONG_PATH)
_ANALYTIC = (CYLINDER, BODY, MOVING_BODY)

#: Question, what a may be, what b may be, engine. The first row that fits answers.
TABLE = (
    Row("first_contact", _FLEXIBLE, (*_FLEXIBLE, ITSELF), "deforming"),
    Row("first_contact", _STIFF, _STIFF, "rigid"),
    Row("first_contact", (*_STIFF, ALONG_PATH), (*_STIFF, ALONG_PATH), "path"),
    Row("first_contact", (BODIES,), (ITSELF,), "scene"),
    Row("first_contact", (DEFORMING,), (RIGID,), "mixed"),
    Row("first_contact", (RIGID,), (DEFORMING,), "mixed"),
    Row("first_contact", _ANALYTIC, (TERRAIN,), "heightfield"),
    Row("first_contact", _PLACED, (TERRAIN,), "mesh_heightfield"),
    Row("first_contact", _ANALYTIC, (*_ANALYTIC, *_STIFF, ALONG_PATH), "convex"),
    Row("first_contact", (*_STIFF, ALONG_PATH), _ANALYTIC, "convex"),
    Row("all_contacts", _FLEXIBLE, (*_FLEXIBLE, ITSELF), "all_contacts"),
    Row("candidates", _FLEXIBLE, (*_FLEXIBLE, ITSELF), "candidates"),
    Row("least_clearance", _STIFF, _STIFF, "least_clearance"),
    Row("largest_step", _FLEXIBLE, (*_FLEXIBLE, ITSELF), "largest_step"),
    Row("largest_step", _STIFF, _STIFF, "largest_step"),
    Row("distance", _PLACED, _PLACED, "distance"),
    Row("distance", (*_PLACED, *_ANALYTIC), (TERRAIN,), "distance"),
    Row("distance", _ANALYTIC, (*_ANALYTIC, *_PLACED), "distance"),
    Row("distance", _PLACED, _ANALYTIC, "distance"),
    Row("intersects", _PLACED, (*_PLACED, ITSELF), "intersects"),
    Row("intersects", (*_PLACED, *_ANALYTIC), (TERRAIN,), "intersects"),
    Row("intersects", _ANALYTIC, (*_ANALYTIC, *_PLACED), "intersects"),
    Row("intersects", _PLACED, _ANALYTIC, "intersects"),
    Row("intersecting_pairs", _PLACED, _PLACED, "intersecting_pairs"),
    Row("touches", (CYLINDER,), (TERRAIN,), "touches"),
    Row("proximity", (MESH,), (MESH, ITSELF), "proximity"),
    Row("proximity", (BODIES,), (ITSELF,), "proximity"),
    Row("manifold", (CYLINDER, BODY), (TERRAIN, TERRAINS), "manifold"),
    Row("manifold", _ANALYTIC, (*_ANALYTIC, *_PLACED, TERRAIN), "manifold"),
    Row("manifold", _PLACED, (*_ANALYTIC, *_PLACED, TERRAIN), "manifold"),
    Row("signed_distance", (POINTS,), (MESH,), "signed_distance"),
)


def supported(question: str | None = None) -> tuple[Row, ...]:
    """What can be asked about which things: the rows of the table, of one question or of all."""
    return tuple(row for row in TABLE if question in (None, row.question))


def engine_for(question: str, a: Any, b: Any = None) -> str:
    """The name of the engine that answers the question about a and b; raises where there is none."""
    kinds = kind_of(a), ITSELF if b is None else kind_of(b)
    for row in TABLE:
        if row.question == question and kinds[0] in row.a and kinds[1] in row.b:
            return row.engine
    refuse_unsupported(question, a, b)


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
    known = "; ".join(dict.fromkeys(f"{_either(row.a)} with {_either(row.b)}" for row in rows))
    cure = "; vertices become a body by tg.Mesh(vertices, faces), and where they go is mesh.moving(tg.Linear(array))"
    arrays = POINTS in (first, second) and not any(POINTS in row.a for row in rows)
    raise UnsupportedError(f"{words} of {what} is not known; known: {known}{cure if arrays else ''}")


def kind_of(thing: Any) -> str:
    """What a thing is, in the words of the table; of something else the name of its class."""
    if isinstance(thing, Mesh):
        return MESH
    if isinstance(thing, Moving):
        return _kind_of_moving(thing)
    classes = {base.__name__ for base in type(thing).__mro__}
    if classes & _SHAPES_OF_GROUND:
        return TERRAIN
    if "Analytic" in classes:
        return CYLINDER if "Cylinder" in classes else BODY
    if hasattr(thing, "dtype"):  # an array of NumPy, Warp, Torch or JAX
        return POINTS
    if isinstance(thing, Iterable) and not isinstance(thing, (str, bytes, dict)):
        return _kind_of_list(thing)
    return type(thing).__name__


def is_analytic(thing: Any) -> bool:
    """Whether these are analytic bodies, at rest or moving."""
    shape = thing.shape if isinstance(thing, Moving) else thing
    return any(base.__name__ == "Analytic" for base in type(shape).__mro__)


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
    if question == "first_contact" and {first, second} == {ALONG_PATH, DEFORMING}:
        name = "a" if first == ALONG_PATH else "b"
        return f"{name} moves by Path: against a mesh in Linear motion ask about its segments"
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
