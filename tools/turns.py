"""Is it slower than before? The same timings with two source trees, in turns, each in a fresh process.

    python -m tools.turns BASE_SRC NEW_SRC                      # everything, five rounds
    python -m tools.turns BASE_SRC NEW_SRC --rounds 3 meshes    # some of the benchmarks
    python -m tools.turns BASE_SRC NEW_SRC --shared             # where others use the machine as well

BASE_SRC and NEW_SRC are folders that hold the package, such as `src`. The scenes are those of the benchmarks of the
same names, ours only, asked through the face of the library (`tools.words` knows what names have changed). A process
warms up, then takes the least of several repeats; of steps that go on from each other, the median. A row is slower, or
faster, where the medians over the rounds differ by more than 5 % and by more than the spread, the larger interquartile
range of both trees. The exit code is 1 where a row is slower.

With --shared there is one thread, whose own CPU seconds count, and the least of all rounds is compared instead of the
median; the spread is how much more the second least is. Waiting does not count so, but caches are still shared.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["BENCHES", "main", "verdict"]

ROOT = Path(__file__).resolve().parents[1]
#: Repeats go on until they have taken this long together [s], and at least so often.
ENOUGH, LEAST = 0.15, 3
#: Short calls that are measured together last so long [s].
TOGETHER = 0.004
#: Differences below this count for nothing.
SAME = 0.05
#: Set for workers that measure CPU seconds of one thread.
SHARED = "TANGERE_TURNS_SHARED"

clock = time.thread_time if SHARED in os.environ else time.perf_counter

Timings = dict[str, float]
BENCHES: dict[str, Callable[[], Timings]] = {}


def bench(function: Callable[[], Timings]) -> Callable[[], Timings]:
    """Makes a function that measures known by its name."""
    BENCHES[function.__name__] = function
    return function


def least(ask: Callable[[], Any], enough: float = ENOUGH) -> float:
    """Seconds a call takes at least, after one that is not counted.

    CPU seconds of a thread may be counted in ticks: short calls are then taken together, so many as last some
    milliseconds.
    """
    ask()
    together, taken, lasted = 1, [], 0.0
    if SHARED in os.environ:
        begin = time.perf_counter()
        ask()
        together = max(1, int(TOGETHER / max(time.perf_counter() - begin, 1e-6)))
    while len(taken) < LEAST or (lasted < enough and len(taken) < 2000):
        begin = clock()
        for _ in range(together):
            ask()
        lasted += clock() - begin
        taken.append((clock() - begin) / together)
    return min(taken)


def cores() -> int:
    """How many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_counts() -> dict[str, int]:
    """One, and all cores, by what to call them."""
    many = {} if cores() == 1 or SHARED in os.environ else {f"{cores()} threads": cores()}
    return {"1 thread": 1, **many}


# --- What is measured -------------------------------------------------------------------------------------------------


def _half_colliding(kind: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Unit-sized primitives facing each other, moving together and wobbling: about half of them touch."""
    rng = np.random.default_rng(1)
    if kind == "vertex_face":
        face = rng.uniform(-1, 1, (count, 3, 3))
        normal = _unit(np.cross(face[:, 1] - face[:, 0], face[:, 2] - face[:, 0]))
        below = np.einsum("ij,ijk->ik", rng.dirichlet([1, 1, 1], count), face)
        vertex = below + normal * rng.uniform(0.05, 1, (count, 1))
        moved = vertex - normal * rng.uniform(0, 2, (count, 1)) + rng.normal(0, 0.2, (count, 3))
        end = np.concatenate([moved[:, None], face + rng.normal(0, 0.2, (count, 3, 3))], axis=1)
        return np.concatenate([vertex[:, None], face], axis=1), end
    edge_a, edge_b, centre = rng.uniform(-1, 1, (3, count, 3))
    normal = _unit(np.cross(edge_a, edge_b))
    s, w = rng.uniform(0, 1, (2, count, 1))
    above = centre + normal * rng.uniform(0.05, 1, (count, 1))
    ends = [above - edge_a * s, above + edge_a * (1 - s), centre - edge_b * w, centre + edge_b * (1 - w)]
    start = np.stack(ends, axis=1)
    end = start + rng.normal(0, 0.2, (count, 4, 3))
    end[:, :2] += (rng.normal(0, 0.2, (count, 3)) - normal * rng.uniform(0, 2, (count, 1)))[:, None]
    return start, end


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@bench
def queries_random() -> Timings:
    import tangere as tg

    found: Timings = {}
    for kind in ("vertex_face", "edge_edge"):
        x0, x1 = _half_colliding(kind, 200_000)
        ask = partial(getattr(tg.query, kind), device="cpu")
        for told, threads in thread_counts().items():
            found[f"{kind}, 200k, {told}"] = least(partial(ask, x0, x1, details=False, threads=threads))
        found[f"{kind}, 200k, with details"] = least(partial(ask, x0, x1, threads=1))
        found[f"{kind}, 1k"] = least(partial(ask, x0[:1000], x1[:1000], details=False, threads=1))
        found[f"{kind}, alone"] = least(partial(ask, x0[:1], x1[:1], details=False, threads=1), 0.1)
    return found


def _two_tori(apart: float, aside: tuple[float, float] = (0.0, 0.0)) -> Any:
    """Two bumpy tori of 20,480 triangles each as one mesh, the second turned by 90 degrees about x."""
    import tangere as tg
    from tools import words

    torus = words.generate.torus(grid=(128, 80), bumps=0.1)
    x, y, z = torus.vertices.T
    turned = torus.replace(vertices=np.stack([x + apart, aside[0] - z, aside[1] + y], axis=1))
    return tg.Mesh.join([torus, turned])


def _cloth() -> tuple[Any, np.ndarray] | None:
    """A cloth draped over a ball at frame 92, and its vertices at frame 93; None without the data."""
    import tangere as tg

    folder = Path(os.environ.get("TANGERE_DATA", "")) / "meshes"
    if not (folder / "cloth_ball92.ply").is_file():
        return None
    start, end = (tg.Mesh.load(folder / f"cloth_ball{frame}.ply", weld=False) for frame in (92, 93))
    return start, end.vertices


@bench
def meshes() -> Timings:
    import tangere as tg

    found: Timings = {}
    mesh = _two_tori(1.05)
    half, faces = len(mesh.vertices) // 2, len(mesh.faces) // 2
    one, other = (tg.Mesh(mesh.vertices[part], mesh.faces[:faces]) for part in (slice(half), slice(half, None)))
    for distance in (0.4, 0.8):
        end = mesh.vertices.copy()
        end[half:, 0] += distance
        moving = mesh.moving(tg.Linear(end))
        parted = other.moving(tg.Linear(end[half:]))
        for told, threads in thread_counts().items():
            options = {"start": "trusted", "threads": threads, "device": "cpu"}
            name = f"tori {distance:g}, {told}"
            found[f"{name}: first"] = least(partial(tg.first_contact, moving, **options))
            found[f"{name}: two bodies, checked"] = least(
                partial(tg.first_contact, one, parted, threads=threads, device="cpu")
            )
        found[f"tori {distance:g}: all"] = least(partial(tg.all_contacts, moving, **options))
    if (cloth := _cloth()) is not None:
        moving = cloth[0].moving(tg.Linear(cloth[1]))
        found["cloth: first"] = least(partial(tg.first_contact, moving, **options))
        found["cloth: all"] = least(partial(tg.all_contacts, moving, **options))
    return found


#: Motions of a torus turned by 90 degrees about x: where it starts, velocity and rotation.
_MOTIONS = {
    "translation": ((1.05, 0.0, 0.0), (0.4, 0.0, 0.0), (0.0, 0.0, 0.0)),
    "turn about z": ((1.05, 0.0, 0.0), (0.3, 0.0, 0.0), (0.0, 0.0, 1.0)),
    "turn about y": ((1.05, 0.0, 0.0), (0.0, 0.2, 0.0), (0.0, 0.5 * np.pi, 0.0)),
    "approach, 2.3 rad": ((0.0, 5.0, 0.0), (0.0, -4.5, 0.0), (1.0, 2.0, 0.5)),
    "approach, 20 rad": ((0.0, 5.0, 0.0), (0.0, -4.5, 0.0), (3.0, 20.0, 1.5)),
    "far apart": ((0.0, 5.0, 0.0), (0.0, -1.0, 0.0), (1.0, 2.0, 0.5)),
}


@bench
def rigid_peers() -> Timings:
    import tangere as tg
    from tools import words

    found: Timings = {}
    torus = words.generate.bumpy_torus()
    begin = np.array([[1.0, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
    for name, (at, velocity, rotation) in _MOTIONS.items():
        begin[:3, 3] = at
        moving = torus.moving(tg.Twist(begin.copy(), velocity, rotation))
        found[name] = least(partial(tg.first_contact, moving, torus, device="cpu", threads=1))
    begin[:3, 3] = 1.05, 0.0, 0.0
    apart = torus.moving(tg.Rest(begin.copy()))
    begin[:3, 3] = 1.45, 0.0, 0.0
    deep = torus.moving(tg.Rest(begin.copy()))
    found["distance"] = least(partial(tg.distance, apart, torus, device="cpu"))
    found["intersecting pairs"] = least(partial(tg.intersecting_pairs, deep, torus, device="cpu"))
    for name, task in {"lifter": words.generate.window_lifter(), "doors": words.generate.door_on_body()}.items():
        path = tg.Path(task.touching_path)
        found[f"{name}: path"] = least(partial(tg.check_path, task.part, task.fixed, path, device="cpu"))
        steps = [path.segments[k].part(t, t + 0.25) for k in range(len(path)) for t in (0.0, 0.25, 0.5, 0.75)]
        moving = [task.part.moving(step) for step in steps[:40]]
        for recession in (False, True):
            options = {"recession": recession, "device": "cpu", "threads": 1}
            found[f"{name}: steps, recession {recession}"] = least(partial(_each, moving, task.fixed, options))
    return found


def _each(moving: Sequence[Any], fixed: Any, options: dict[str, Any]) -> None:
    from tools import words

    for one in moving:
        words.first_contact(one, fixed, **options)


@bench
def leonard_proximity_peers() -> Timings:
    import tangere as tg

    found: Timings = {}
    before, after = (_two_tori(apart, (0.013, 0.007)) for apart in (1.35, 1.3))
    frames = {"tori": (before, after.vertices)}
    if (cloth := _cloth()) is not None:
        frames["cloth"] = cloth
    for name, (rest, vertices) in frames.items():
        mesh = rest.replace(vertices=vertices)
        edge = float(np.linalg.norm(vertices[mesh.edges[:, 0]] - vertices[mesh.edges[:, 1]], axis=1).mean())
        for part in (0.05, 0.2) if name == "tori" else (0.2,):
            for told, threads in thread_counts().items():
                options = {"distance": part * edge, "device": "cpu", "threads": threads}
                detector = tg.Detector(rest, **options)
                found[f"{name} {part:g}, {told}: detector"] = least(partial(detector.find, vertices))
            for phase in ("tree", "grid", "levels") if name == "tori" else ("tree",):
                ask = partial(tg.proximity, mesh, broad_phase=phase, **options)
                found[f"{name} {part:g}: proximity, {phase}"] = least(ask)
    return found


@bench
def soft_tori() -> Timings:
    """The median of whole steps while the upper torus falls on the lower one and slides."""
    from tools import words

    found: Timings = {}
    for triangles, stiffness, steps in ((3_200, 1e4, 150), (12_800, 1e4, 120), (51_200, 1e4, 60), (51_200, 1e6, 30)):
        simulation = words.soft_scene("tori", triangles, stiffness=stiffness)
        start = words.soft_vectors(simulation, "positions", 1)
        words.soft_set_state(simulation, 1, positions=start - (0.0, 0.0, 2.2))
        words.soft_set_state(simulation, 1, velocities=np.broadcast_to((0.0, 0.0, -8.0), start.shape))
        simulation.step()
        taken = np.empty(steps)
        for k in range(steps):
            begin = clock()
            simulation.step()
            taken[k] = clock() - begin
        found[f"{triangles} triangles, {stiffness:g} Pa: step"] = float(np.median(taken))
    return found


_SIZE, _RADIUS, _HEIGHT = 20.0, 0.5, 1.2


def _ground(name: str, cells: int) -> Any:
    """Flat, rough or kerbed ground of 20 m by 20 m."""
    import tangere as tg

    x = np.linspace(0.0, _SIZE, cells + 1)
    heights = np.zeros((cells + 1, cells + 1))
    if name == "kerbs":
        heights = np.where(np.add.outer(np.floor(x / 4.0), np.floor(x / 3.0)) % 2 == 0, 0.15, 0.0)
    elif name == "rough":
        rng = np.random.default_rng(3)
        for wave in 2.0 ** np.arange(0, 6):
            for phase, turn in rng.uniform(0.0, 2.0 * np.pi, (2, 6)).T:
                heights += 0.15 / wave * np.sin(wave * np.add.outer(np.sin(turn) * x, np.cos(turn) * x) + phase)
    return tg.Heightfield(heights, _SIZE / cells)


def _lowered(field: Any, tilt: float, count: int) -> np.ndarray:
    """Poses of cylinders that must be lifted by five millimetres to be free."""
    import tangere as tg

    rng = np.random.default_rng(4)
    heading = rng.uniform(0.0, 2.0 * np.pi, count)
    c, s, ch, sh = np.cos(tilt), np.sin(tilt), np.cos(heading), np.sin(heading)
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, 0] = np.stack([ch * c, sh * c, np.full(count, -s)], axis=1)
    poses[:, :3, 1] = np.stack([-sh, ch, 0.0 * ch], axis=1)
    poses[:, :3, 2] = np.stack([ch * s, sh * s, np.full(count, c)], axis=1)
    poses[:, :2, 3] = rng.uniform(2.0, _SIZE - 2.0, (count, 2))
    low, high = np.full(count, field.bounds[0, 2] - 1.0), np.full(count, field.bounds[1, 2] + 3.0)
    for _ in range(40):
        poses[:, 2, 3] = 0.5 * (low + high)
        hit = tg.touches(tg.Cylinder(_RADIUS, _HEIGHT).at(poses), field, device="cpu").hit
        low, high = np.where(hit, poses[:, 2, 3], low), np.where(hit, high, poses[:, 2, 3])
    poses[:, 2, 3] = high - 0.005
    return poses


@bench
def strashnov_peers() -> Timings:
    import tangere as tg
    from tools import words

    found: Timings = {}
    tilts = {"upright": 0.0, "lying": 0.5 * np.pi, "tilted": 0.6}
    for cells in (100, 1000):
        for name in ("flat", "rough", "kerbs"):
            field = _ground(name, cells)
            for tilt, angle in tilts.items():
                poses = _lowered(field, angle, 2000)
                bodies = tg.Cylinder(_RADIUS, _HEIGHT).at(poses)
                ask = partial(tg.manifold, bodies, field, device="cpu", threads=1)
                found[f"{name} {cells}, {tilt}: 2,000"] = least(partial(ask, **words.gaps_up_to(0.0)), 0.1)
            if cells == 100:
                one = tg.Cylinder(_RADIUS, _HEIGHT).at(poses[:1])
                found[f"{name}: one call"] = least(partial(tg.manifold, one, field, device="cpu"), 0.1)
                found[f"{name}: touches"] = least(partial(tg.touches, bodies, field, device="cpu", threads=1), 0.1)
                above = poses.copy()
                above[:, 2, 3] += 1.0
                falling = tg.Twist(above, (0.5, 0.0, -2.0), (0.0, 1.5, 0.0))
                moving = tg.Cylinder(_RADIUS, _HEIGHT).moving(falling)
                found[f"{name}: first contact"] = least(partial(tg.first_contact, moving, field, device="cpu"), 0.1)
    return found


@bench
def pitiot_crowd_peers() -> Timings:
    """Steps of an open field, by number of agents and behaviour; each repeat goes on from the one before."""
    import tangere as tg
    from tools import words

    found: Timings = {}
    rules = {"bubbles": tg.crowd.Bubbles(range=1.5), "ORCA": words.orca(range=1.5, max_speed_factor=1.3)}
    for number, repeats in ((1_000, 200), (10_000, 50), (100_000, 6)):
        for name, rule in rules.items():
            for told, threads in thread_counts().items():
                simulation = words.scenarios.field(number, cell=1.5, behaviour=rule, device="cpu")
                with words.using_threads(threads):
                    words.crowd_step(simulation, 2)
                    taken = []
                    for _ in range(repeats):
                        begin = clock()
                        words.crowd_step(simulation, 1)
                        taken.append(clock() - begin)
                found[f"{number:,} agents, {name}, {told}"] = float(np.median(taken))
    return found


# --- In turns ---------------------------------------------------------------------------------------------------------


def measured(name: str, source: Path, shared: bool) -> Timings:
    """The timings of one benchmark in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1"}
    if shared:
        environment |= {SHARED: "1", "TANGERE_THREADS": "1"}
    command = [sys.executable, "-m", "tools.turns", "--worker", name, str(source)]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name} failed with the sources in {source}")
    return json.loads(done.stdout.splitlines()[-1])


def _work(name: str, source: Path) -> None:
    import tangere as tg

    if not Path(tg.__file__).resolve().is_relative_to(source):
        raise SystemExit(f"tangere is {tg.__file__}, which is not in {source}")
    print(json.dumps(BENCHES[name]()))


def verdict(base: Sequence[float], new: Sequence[float], shared: bool = False) -> tuple[float, float, str]:
    """The ratio of the medians, new to base; the spread; and whether the new one is slower, faster or the same.

    Where the machine is shared, of the least, whose spread is how much more the second least is.
    """
    if shared:
        ratio = min(new) / min(base)
        spread = max(sorted(one)[min(1, len(one) - 1)] / min(one) - 1.0 for one in (base, new))
    else:
        ratio = float(np.median(new) / np.median(base))
        spread = max(float(np.subtract(*np.quantile(one, [0.75, 0.25])) / np.median(one)) for one in (base, new))
    limit = 1.0 + max(SAME, spread)
    if min(len(base), len(new)) < 3:
        return ratio, spread, "too few rounds"
    return ratio, spread, "slower" if ratio > limit else "faster" if ratio < 1.0 / limit else "same"


def _seconds(value: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale or unit == "us":
            return f"{value / scale:.3g} {unit}"
    return ""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.turns", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("base", type=Path, help="folder that holds the package to compare with")
    parser.add_argument("new", type=Path, help="folder that holds the package that is asked about")
    parser.add_argument("names", nargs="*", help=f"some of {', '.join(BENCHES)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shared", action="store_true", help="CPU seconds of one thread, the least of all rounds")
    given = parser.parse_intermixed_args(arguments)  # names may follow options
    unknown = [name for name in given.names if name not in BENCHES]
    if unknown:
        parser.error(f"there is no {unknown[0]!r}: there are {', '.join(BENCHES)}")
    trees = {"base": given.base.resolve(), "new": given.new.resolve()}
    failed = slower = 0
    print("| name | base | new | new / base | spread | verdict |\n|---|---|---|---|---|---|", flush=True)
    for name in given.names or BENCHES:
        rounds: dict[str, list[Timings]] = {"base": [], "new": []}
        try:
            for turn in range(given.rounds):
                for tree in ("base", "new") if turn % 2 == 0 else ("new", "base"):
                    rounds[tree].append(measured(name, trees[tree], given.shared))
        except RuntimeError as error:
            print(f"| {name} | | | | | {error} |", flush=True)
            failed += 1
            continue
        for row in rounds["base"][0]:
            base, new = ([one[row] for one in rounds[tree] if row in one] for tree in ("base", "new"))
            if not new:
                continue
            ratio, spread, told = verdict(base, new, given.shared)
            slower += told == "slower"
            typical = " | ".join(_seconds(min(one) if given.shared else float(np.median(one))) for one in (base, new))
            print(f"| {name}: {row} | {typical} | {ratio:.3f} | {spread:.1%} | {told} |", flush=True)
    return 2 if failed else 1 if slower else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        _work(sys.argv[2], Path(sys.argv[3]))
    else:
        sys.exit(main())
