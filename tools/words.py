"""Where is each name of the library, and how is it called: the one place that `tools.digest` and `tools.turns` ask.

Both run with source trees of different ages, so they take every name that has moved, or may, from here:
`words.TanScrew`, `words.generate.gear`. `NAMES` lists where to look, newest place first. What is not listed is looked
for on the face of the library, then in the source files by its definition, so that a file that moves needs no entry.
Calls whose arguments or results have other names in other versions are the functions below the table.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

__all__ = [
    "COLUMN_NAMES",
    "NAMES",
    "NESTED",
    "NOT_ANSWERS",
    "bounding_kernel",
    "crowd_positions",
    "crowd_run",
    "crowd_step",
    "crowd_velocities",
    "edit_tiles",
    "first_contact",
    "first_contact_of_scene",
    "first_contact_published",
    "generate",
    "load_part",
    "load_path",
    "load_robot",
    "load_streets",
    "orca",
    "published",
    "save_part",
    "save_path",
    "soft_body",
    "soft_energy",
    "soft_pull",
    "soft_run",
    "soft_scene",
    "soft_vectors",
    "write_tiles",
]

#: name here: "module:name", or a module, newest first.
NAMES: dict[str, tuple[str, ...]] = {
    # Reproductions of the documents.
    "CosineScrew": ("tangere.published:CosineScrew", "tangere:CosineScrew"),
    "Reading": ("tangere.published:Reading", "tangere.query:Reading"),
    "Settings": (
        "tangere.published:Settings",
        "tangere.published.leonard_grid.pipeline:Settings",
        "tangere.partition.pipeline:Settings",
    ),
    "Switches": ("tangere.published:Switches", "tangere.query.first_contact.screw_cubics:Switches"),
    "TanScrew": ("tangere.published:TanScrew", "tangere:TanScrew"),
    "detect": ("tangere.published:detect", "tangere:detect"),
    "search_by_cubics": (
        "tangere.published:search_by_cubics",
        "tangere.published.redon_cubics.engine:search",
        "tangere.query.first_contact.screw_cubics:search",
    ),
    # Motions.
    "Rigid": ("tangere:Rigid", "tangere.motion:Rigid"),
    "deviation": ("tangere:deviation", "tangere.motion:deviation"),
    "split_motion": ("tangere.motion:split",),
    # Recordings, which several rooms have.
    "SoftRecorder": ("tangere.soft:Recorder", "tangere.soft.recording:Recorder"),
    "SoftRecording": ("tangere.soft:Recording", "tangere.soft.recording:Recording"),
    # Maps of cells; their verbs are those of several rooms.
    "around_things": (
        "tangere.cells.registration:things_around",
        "tangere.cells:around",
        "tangere.cells.registration:around",
    ),
    "blind_cells": ("tangere.cells.maps:cells_not_star_shaped", "tangere.cells.maps:blind_cells"),
    "crossed": ("tangere.cells.tracking:crossed_cells", "tangere.cells.tracking:crossed"),
    "locate": ("tangere.cells.tracking.locate:locate",),
    "merge_cells": ("tangere.cells:merge", "tangere.cells.maps:merge"),
    "move_points": ("tangere.cells:move", "tangere.cells.tracking:move"),
    "orbits": ("tangere.cells:orbits", "tangere.cells.maps:orbits"),
    "ring_of_cells": ("tangere.cells:ring", "tangere.cells.maps:ring"),
    "split_cells": ("tangere.cells:split", "tangere.cells.maps:split"),
    # Questions that several rooms have a word for.
    "Detector": ("tangere:Detector",),
    "nearest_points": ("tangere.cells:nearest", "tangere.cells.registration:nearest"),
    "scenarios": ("tangere.crowd.scenarios",),
    "soft_scenes": ("tangere.soft.scenes",),
    "within_radius": (
        "tangere.cells.registration:pairs_within",
        "tangere.cells:within",
        "tangere.cells.registration:within",
    ),
}

#: Benchmarks, which have what the library does not offer any more.
BENCH = Path(__file__).resolve().parents[1] / "bench"

#: Generators of test shapes that are no part of the library any more, newest first.
SHAPES = ("bench.shapes", "bench.generate")

#: Columns of answers that have another name now: new name -> the name that digests keep.
COLUMN_NAMES: dict[str, str] = {}

#: Fields of answers that are answers themselves.
NESTED = ("contacts", "clearance", "counters", "counts", "contact")

#: Fields of answers that are times taken, not answers.
NOT_ANSWERS = ("seconds", "timings", "timers", "total")


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    return _found(name)


@cache
def _found(name: str) -> Any:
    """The thing that goes by this name here."""
    asked = NAMES.get(name, (f"tangere:{name}", f"tangere.published:{name}", f"tangere.query:{name}"))
    for place in asked:
        module, _, attribute = place.partition(":")
        try:
            home = import_module(module)
            return getattr(home, attribute) if attribute else home
        except (ImportError, AttributeError):
            continue
    own = asked[-1].partition(":")[2] or name  # as the library calls it
    return _defined(own)


def _defined(name: str) -> Any:
    """What a source file of the library, else of the benchmarks, defines at its top level by that name."""
    packages = {"tangere": Path(import_module("tangere").__path__[0]), "bench": BENCH}
    definition = re.compile(rf"^(?:def|class) {name}\b|^{name}\s*[:=]", re.MULTILINE)
    for package, folder in packages.items():
        files = [path for path in sorted(folder.rglob("*.py")) if definition.search(path.read_text(encoding="utf-8"))]
        modules = [".".join([package, *path.relative_to(folder).with_suffix("").parts]) for path in files]
        modules = [module.removesuffix(".__init__") for module in modules]
        if len(modules) > 1:
            raise AttributeError(f"{', '.join(modules)} define {name!r}: tools/words.py has to say which is meant")
        if modules:
            return getattr(import_module(modules[0]), name)
    raise AttributeError(f"no module defines {name!r}: tools/words.py has to say what it is called now")


class _Generators:
    """Generators of shapes by name, wherever they are; `terrain` holds those of ground."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        places = [import_module("tangere").generate]
        for module in SHAPES:
            try:
                places.append(import_module(module))
            except ImportError:
                continue
        for place in places:
            found = getattr(place, name, None)
            if found is not None and (name == "terrain" or not inspect.ismodule(found)):
                return found
        return _defined(name)


generate = _Generators()


def _takes(function: Callable[..., Any], *names: str) -> str:
    """The first of the names that is a parameter of the function."""
    known = inspect.signature(function).parameters
    for name in names:
        if name in known:
            return name
    raise TypeError(f"{function.__name__} takes none of {', '.join(names)}: tools/words.py has to say how it is called")


# --- Methods as printed -----------------------------------------------------------------------------------------------


def published(kind: str, x0: np.ndarray, x1: np.ndarray, reading: Any = None) -> Any:
    """Batches of `vertex_face`, `edge_edge`, `vertex_edge` or `triangle_triangle` as the course prints them."""
    import tangere as tg

    ask = getattr(tg.query, kind)
    if "reading" in inspect.signature(ask).parameters:
        return ask(x0, x1, mode="published", reading=reading, device="cpu")
    return ask(x0, x1, mode=reading or "published", device="cpu")  # a reading is a mode


def first_contact(
    a: Any,
    b: Any = None,
    *,
    broad_phase: str | None = None,
    contacts: str | None = None,
    recession: bool | None = None,
    **options: Any,
) -> Any:
    """First contact of two meshes, with what only one engine takes."""
    import tangere as tg

    deforming = {} if broad_phase is None else {"broad_phase": broad_phase}
    rigid = {name: value for name, value in (("contacts", contacts), ("recession", recession)) if value is not None}
    if "options" not in inspect.signature(tg.first_contact).parameters:
        return tg.first_contact(a, b, **deforming, **rigid, **options)
    own = tg.DeformingOptions(**deforming) if deforming else tg.RigidOptions(**rigid) if rigid else None
    return tg.first_contact(a, b, options=own, **options)


def orca(range: float, max_speed_factor: float) -> Any:
    """The ORCA rule of crowds; the factor was called `faster`."""
    import tangere as tg

    known = "max_speed_factor" in inspect.signature(tg.crowd.Orca).parameters
    return tg.crowd.Orca(range=range, **{"max_speed_factor" if known else "faster": max_speed_factor})


def first_contact_of_scene(
    bodies: Sequence[Any], *, allowed: Any = None, broad_phase: str | None = None, **options: Any
) -> Any:
    """First contact of any two of many rigid bodies."""
    import tangere as tg

    phase = {} if broad_phase is None else {"broad_phase": broad_phase}
    if "allowed" not in inspect.signature(tg.first_contact).parameters:
        return tg.first_contact_of_scene(bodies, ignored=allowed, **phase, **options)
    return tg.first_contact(bodies, allowed=allowed, options=tg.SceneOptions(**phase), **options)


def first_contact_published(a: Any, b: Any = None, **options: Any) -> Any:
    """First contact of meshes, deforming or rigid, as the documents print it."""
    import tangere as tg

    return tg.first_contact(a, b, mode="published", device="cpu", **options)


def manifold_published(bodies: Any, terrain: Any) -> Any:
    """The manifold as the article prints it."""
    import tangere as tg

    return tg.manifold(bodies, terrain, mode="published", device="cpu")


# --- Bounds of motions ------------------------------------------------------------------------------------------------


@cache
def bounding_kernel() -> tuple[wp.Kernel, Any, Any]:
    """A kernel that bounds moving points, and the types of its motions and of its boxes."""
    span_of, point_bounds = _found("span_of"), _found("point_bounds")
    record, box = _annotated(span_of, 0), _annotated(point_bounds, -1)

    def bounding(motions, times, p, out):
        i = wp.tid()
        out[i] = point_bounds(span_of(motions[i], times[i][0], times[i][1]), p[i])

    types = [wp.array(dtype=dtype) for dtype in (record, wp.vec2d, wp.vec3d, box)]
    bounding.__annotations__ = dict(zip(("motions", "times", "p", "out"), types, strict=True))
    module = wp.Module("tools_digest_bounds", None)
    module.options |= {"enable_backward": False, "fuse_fp": False, "fast_math": False}
    return wp.Kernel(bounding, key="bounding", module=module), record, box


def _annotated(function: wp.Function, place: int) -> Any:
    """The type of an argument of a function of kernels; the last one is what it returns."""
    plain: Any = function.func
    name = list(plain.__annotations__.values())[place]
    return plain.__globals__[name] if isinstance(name, str) else name


# --- Files ------------------------------------------------------------------------------------------------------------


def load_robot(file: Any) -> Any:
    """The robot in a URDF file."""
    import tangere as tg

    return tg.Robot.load(file) if hasattr(tg, "Robot") else tg.load_urdf(file)


def load_path(file: Any) -> tuple[Any, tuple[float, float]]:
    """The path in a CSV file, and its first and last time there."""
    import tangere as tg

    if not hasattr(tg.Path, "load"):
        return _found("load_path")(file)
    path = tg.Path.load(file)
    return path, path.clock


def save_path(path: Any, file: Any, clock: tuple[float, float]) -> None:
    """Write a path, its times between those of the clock."""
    import tangere as tg

    if not hasattr(path, "save"):
        _found("save_path")(path, file, clock)
    else:
        tg.Path(path.poses, path.times, clock=clock).save(file)


def save_part(file: Any, mesh: Any, **options: Any) -> Any:
    """Prepare a part, write it and read it again."""
    part = _found("PreparedPart")
    if not hasattr(part, "load"):
        return _found("save_part")(file, mesh, **options)
    part(mesh, **options).save(file)
    return part.load(file)


def load_part(file: Any) -> Any:
    """A prepared part."""
    part = _found("PreparedPart")
    return part.load(file) if hasattr(part, "load") else _found("load_part")(file)


def write_tiles(folder: Any, heights: Any, *given: Any, **options: Any) -> Any:
    """A terrain in a folder of tiles."""
    import tangere as tg

    if hasattr(tg.TiledHeightfield, "create"):
        return tg.TiledHeightfield.create(folder, heights, *given, **options)
    return _found("write_tiles")(folder, heights, *given, **options)


def edit_tiles(folder: Any, first: tuple[int, int], heights: Any = None, **options: Any) -> Any:
    """A terrain in tiles with a window changed."""
    import tangere as tg

    if hasattr(tg.TiledHeightfield, "edit"):
        return tg.TiledHeightfield.load(folder).edit(first, heights, **options)
    return _found("edit_tiles")(folder, first, heights, **options)


# --- Soft bodies ------------------------------------------------------------------------------------------------------


def soft_body(shape: Any, *, stiffness: float | None = None, density: float = 1.0, **options: Any) -> Any:
    """A soft body; `stiffness` is Young's modulus [Pa], and the density what was once the default [kg/m^3]."""
    import tangere as tg

    options["density"] = density
    if stiffness is not None:
        options[_takes(tg.soft.Body, "youngs_modulus", "stiffness")] = stiffness
    return tg.soft.Body(shape, **options)


def soft_scene(name: str, *sizes: Any, stiffness: float | None = None, **options: Any) -> Any:
    """A ready scene of soft bodies, on the CPU; `stiffness` is Young's modulus [Pa]."""
    scene = getattr(_found("soft_scenes"), name)
    if stiffness is not None:
        options[_takes(scene, "youngs_modulus", "stiffness")] = stiffness
    return scene(*sizes, device="cpu", **options)


def soft_run(simulation: Any, steps: int) -> None:
    """So many steps."""
    simulation.run(**{_takes(simulation.run, "steps"): steps})


def soft_vectors(simulation: Any, what: str, body: int) -> np.ndarray:
    """(n, 3) "positions" or "velocities" of the vertices of one body."""
    given = getattr(simulation, what)
    return given(body) if callable(given) else getattr(simulation[body], what)


def soft_set_state(simulation: Any, body: int, **state: Any) -> None:
    """Put a body somewhere, or give it velocities."""
    if hasattr(simulation, "set_state"):
        simulation.set_state(body, **state)
    else:
        simulation[body].set_state(**state)


def soft_drive(simulation: Any, body: int, velocity: Sequence[float]) -> None:
    """Move what is fixed of a body."""
    if hasattr(simulation, "drive"):
        simulation.drive(body, velocity)
    else:
        simulation[body].drive(velocity)


def soft_truncation(simulation: Any) -> dict[str, float]:
    """What the truncation of the last step did, by the names it had first."""
    names = {"iterations": "rounds", "limited_vertices": "vertices", "lost_motion": "lost", "impact_substep": "pace"}
    report = simulation.truncation if hasattr(type(simulation), "truncation") else simulation.held
    return {names.get(name, name): value for name, value in dataclasses.asdict(report).items()}


def soft_energy(simulation: Any) -> tuple[float, float, float]:
    """Kinetic, elastic and gravitational energy [J]."""
    energy = simulation.energy() if callable(simulation.energy) else simulation.energy
    return energy.kinetic, energy.elastic, energy.gravity


def soft_momentum(simulation: Any) -> np.ndarray:
    """(3,) [kg m/s]."""
    return simulation.momentum() if callable(simulation.momentum) else simulation.momentum


def soft_meshes(simulation: Any) -> Sequence[Any]:
    """The surface of each body."""
    return simulation.meshes() if callable(simulation.meshes) else simulation.meshes


def soft_pull(simulation: Any, body: int, vertex: int, to: Sequence[float], stiffness: float | None = None) -> None:
    """Pull a vertex of a surface towards a point; `stiffness` is that of the spring [N/m]."""
    options = {} if stiffness is None else {"stiffness": stiffness}
    if hasattr(simulation, "pull"):
        simulation.pull(body, vertex, to, **options)
    else:
        simulation[body].pull(vertex, to, **options)


# --- Crowds -----------------------------------------------------------------------------------------------------------


def crowd_step(simulation: Any, steps: int) -> None:
    """So many steps."""
    if "count" in inspect.signature(simulation.step).parameters:
        simulation.step(count=steps)
        return
    for _ in range(steps):
        simulation.step()


def crowd_run(simulation: Any, seconds: float, record: float) -> Any:
    """Go on for so long [s]; trajectories noted every `record` [s]."""
    name = _takes(simulation.run, "seconds", "duration")
    return simulation.run(**{name: seconds}, record=record)


def crowd_positions(simulation: Any) -> np.ndarray:
    """(n, 3) of points [m]."""
    return simulation.positions() if callable(simulation.positions) else simulation.positions


def crowd_velocities(simulation: Any) -> np.ndarray:
    """(n, 3) of points [m/s]."""
    return simulation.velocities() if callable(simulation.velocities) else simulation.velocities


def crowd_particles(simulation: Any) -> np.ndarray:
    """(p, 3) of the particles of all bodies [m]."""
    bodies = simulation.bodies
    return bodies.positions if hasattr(bodies, "positions") else bodies.position


def load_streets(path: Path, cell: float, device: str) -> Any:
    """A town from a file of OpenStreetMap."""
    import tangere as tg

    load = tg.crowd.StreetMap.load if hasattr(tg.crowd, "StreetMap") else tg.crowd.load_streets
    return load(path, cell=cell, device=device)


def gaps_up_to(length: float) -> dict[str, float]:
    """The option of manifolds that says which gaps count."""
    import tangere as tg

    return {"distance" if "distance" in inspect.signature(tg.manifold).parameters else "margin": length}
