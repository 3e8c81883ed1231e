"""A soft block is cut: is it stable, does a cut cost detection anything, and what does a step with a cut take?

The experiment that the document did not get to work (Léonard 2021, sections 4.1.4, 4.6 and 5.2): the cut object
becomes unstable after a few steps, and hypothesis H3, that changes of topology add no step and no cost to detection,
stays open.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
import warp as wp

from bench.harness import Report, count, seconds
from tangere.broad_phase.deforming import Step
from tangere.bvh.lbvh import LinearTree, vertex_boxes
from tangere.query.first_contact.deforming.initial_overlap import first_overlap
from tangere.runtime import PreparedLaunch, using_threads
from tangere.shape import generate
from tangere.shape.mesh import Mesh
from tangere.shape.tets import TetMesh, solid_block
from tangere.soft import Body, Simulation
from tangere.soft.contact.detection import Detection
from tangere.soft.cutting import ConnectedParts, Cuts, CutSurface, SimplicialComplex
from tangere.soft.cutting.cut_body import CutBody
from tangere.soft.model.assembled_bodies import AssembledBodies
from tangere.soft.safe_step.patches import Patches
from tangere.soft.step import BodiesChange

FEATURES = ["F-L-73", "F-L-86"]

SIZE = (2.0, 1.0, 1.0)
CUT_STEPS = 60


def run(report: Report, quick: bool = False) -> None:
    _stability(report, quick)
    sizes = ((10, 5, 5),) if quick else ((10, 5, 5), (20, 10, 10))
    _detection(report, quick)
    _costs(report, quick)
    _parting(report, quick)
    _peer(report)
    _trees(report, sizes)


def _block(cells: tuple[int, int, int], stiffness: float, held: str) -> Simulation:
    solid = solid_block(cells, size=SIZE, name="block")
    x = solid.vertices[:, 0]
    fixed = (x < -0.999) | ((x > 0.999) & (held == "both ends"))
    body = Body(solid, cuttable=True, density=1.0, youngs_modulus=stiffness, fixed=fixed)
    sheet = generate.sheet(2, size=(6.0, 6.0))
    floor = Body(sheet.replace(vertices=sheet.vertices - [0.0, 0.0, 2.5]), fixed=True, name="floor")
    return Simulation([body, floor], device="cpu", threads=1)


def _line(y: float) -> np.ndarray:
    z = np.linspace(-0.9, 0.9, 8)
    return np.stack([0.03 + 0.05 * y + 0 * z, y + 0 * z, z], axis=1)


def _stability(report: Report, quick: bool) -> None:
    report.section("Stability (E4)")
    cells, steps, rows = (10, 5, 5), 150 if quick else 500, []
    for held, end in (("both ends", 0.05), ("one end", 0.75)):
        for stiffness in (1e3, 1e4, 1e5):
            simulation = _block(cells, stiffness, held)
            simulation.run(steps=30)
            start, ways = simulation.energy.total, np.linspace(-0.75, end, CUT_STEPS + 1)
            energies, moved, crossed, held_back = [], 0.0, 0, 0
            for step in range(steps):
                if step < CUT_STEPS:
                    simulation.cut(0, _line(ways[step]), _line(ways[step + 1]))
                before = simulation.positions
                simulation.step()
                if len(simulation) == 2:
                    moved = max(moved, float(np.abs(simulation.positions - before).max()))
                energies.append(simulation.energy.total)
                held_back += simulation.truncation.limited_vertices
                if step % 25 == 0:
                    crossed += first_overlap(Step.of([Mesh.join(simulation.meshes())], "cpu")) is not None
            lost = start - min(energies)
            gain = max(energies) - start
            allowed = 1e-3 if held == "both ends" else 0.01 * lost
            rows.append(
                [held, f"{stiffness:g}", "half" if end < 0.5 else "through", f"{max(gain, 0.0):.2g} J", f"{lost:.3g} J"]
                + [f"{moved / (SIZE[0] / cells[0]):.3f}", crossed, held_back, len(simulation) - 1]
                + ["yes" if gain <= allowed and not crossed else "no"]
            )
    columns = ["held at", "E [Pa]", "cut", "energy above the start", "energy lost", "largest move before it parts / h"]
    report.table([*columns, "states that cross", "vertices held", "parts", "stable"], rows)
    report.note(
        f"{count(steps)} steps of 20 ms after 30 in which the block sags; density 1 kg/m³, friction 0.3, contact"
        " distance 0.17 m, cut in the first 60 steps. Energy is kinetic, elastic and that of gravity. Stable: no state"
        " crosses by the exact test (seen every 25 steps), and it gains at most 1e-3 J (half) or 1 % of what it loses"
        " (through). With 1e5 Pa the solver has 40 sweeps where 174 are needed: the half that is cut off slides down"
        " slowly along the other instead of falling. The document's block exploded."
    )


def _detection(report: Report, quick: bool) -> None:
    """Detection per triangle before, during and after the cut, in turns with the same scene that is not cut."""
    report.section("Detection during the cut (H3)")
    cells = (40, 20, 4) if quick else (160, 80, 4)
    block, whole_plate = np.linspace(-0.75, 0.05, 25), np.arange(-0.53, 0.03, 3.0 / cells[1])[:17] * cells[1]
    scenes: dict[str, tuple[Callable[[], tuple[Simulation, Callable[[float], np.ndarray]]], np.ndarray]] = {
        "plate on a bed": (lambda: plate(cells, bed=True), whole_plate),
        "plate, nothing touches it": (lambda: plate(cells), whole_plate),
        "block, nothing touches it": (lambda: (_block((20, 10, 10), 1e4, "both ends"), _line), block),
    }
    rows = []
    for name, (scene, ways) in scenes.items():
        (cut, line), (whole, _) = scene(), scene()
        before = _triangles(cut)
        for simulation in (cut, whole):
            simulation.run(steps=3)
        taken: dict[str, list[float]] = {"before": [], "during": [], "after": []}
        work: list[float] = []
        beside: list[float] = []
        missed = 0
        for phase, steps in (("before", 8), ("during", len(ways) - 1), ("after", 8)):
            for step in range(steps):
                if phase == "during":
                    cut.cut(0, line(ways[step]), line(ways[step + 1]))
                taken[phase].append(_detect(cut) / _detect(whole))
                if phase == "during":
                    work.append(_work(cut) / _work(whole) - 1.0)
                    if step % 4 == 2:
                        ratio, fewer = _beside_anew(cut)
                        beside.append(ratio - 1.0)
                        missed += fewer
                cut.step()
                whole.step()
        middle = {phase: float(np.median(values)) for phase, values in taken.items()}
        change, later = (middle[phase] / middle["before"] - 1.0 for phase in ("during", "after"))
        contacts = (simulation._pipeline.detection.contact_points.count for simulation in (whole, cut))
        rows.append(
            [name, count(before), count(_triangles(cut)), " to ".join(map(count, contacts)), f"{100 * change:+.1f} %"]
            + [f"{100 * later:+.1f} %", f"{100 * float(np.median(work)):+.1f} %", "yes" if change <= 0.05 else "no"]
            + [f"{100 * float(np.median(beside)):+.1f} %", missed]
        )
    columns = ["", "triangles", "after the cut", "contacts", "per triangle during", "after", "work during"]
    report.table([*columns, "within 5 %", "beside a layout anew", "contacts missed"], rows)
    report.note(
        "CPU time of `detect` (the nearest faces of all vertices and the nearest sharp edges) by triangle, as a ratio"
        " to the same scene that is not cut, measured in turns; medians of all steps. Work: clusters that vertices are"
        " held against, and faces that they meet there. Beside a layout anew: detection of the same state, every fourth"
        " step, where all trees and lists are made anew from the bodies as they are: what the cut's own data structure"
        " costs; and contacts that it finds less, because of edges that meet just at their ends either may be told."
    )
    report.note(
        "What holds of H3 (F-L-9): a cut adds no step to detection; where bodies touch before it, a triangle takes as"
        " long during the cut within 5 %; what a cut takes itself is below. What does not: that of a body that touched"
        " nothing. There nearly nothing was to be searched, as all of it was certified to be clear of itself;"
        " now walls a kerf apart touch each other all over, and each of their vertices must be held against the faces"
        " around its counterpart. The column beside a layout anew tells what of it is due to the change."
    )


def _beside_anew(simulation: Simulation) -> tuple[float, int]:
    """How long a detection takes as a part of one where all is laid out anew, and how many contacts it finds less."""
    pipeline = simulation._pipeline
    pipeline.reset()
    assembly, detection = pipeline.assembly, pipeline.detection
    anew = AssembledBodies.of(assembly.bodies, assembly.device)
    rows = np.concatenate([assembly.vertex_rows(body) for body in range(len(assembly.current))])
    anew.surface.traits.assign(assembly.surface.traits.numpy()[rows])
    places = wp.array(detection.positions.numpy()[rows], dtype=wp.vec3d, device=assembly.device)
    other = Detection(anew, Patches(anew), places, pipeline.options.distance)
    with using_threads(1):
        taken = [(_least(detection.find_nearest, 1), _least(other.find_nearest, 1)) for _ in range(5)]
    ours, theirs = (min(column) for column in zip(*taken, strict=True))
    return ours / theirs, max(0, other.contact_points.count - detection.contact_points.count)


def _triangles(simulation: Simulation) -> int:
    return sum(len(mesh.faces) for mesh in simulation.meshes())


def _work(simulation: Simulation) -> float:
    """What a detection looks at, by triangle."""
    work = simulation._pipeline.detection.work
    assert work is not None
    return float(work.numpy().sum()) / _triangles(simulation)


def _detect(simulation: Simulation) -> float:
    """Seconds of a detection by triangle, on one thread: the least of five."""
    with using_threads(1):
        return _least(simulation._pipeline.detection.find_nearest, 5) / _triangles(simulation)


def _least(work: Callable[[], object], times: int) -> float:
    found = []
    for _ in range(times):
        begin = time.process_time()
        work()
        found.append(time.process_time() - begin)
    return min(found)


def _costs(report: Report, quick: bool) -> None:
    """A blade goes through a plate; what a cut takes in place, and laid out anew."""
    report.section("What a cut takes")
    rows = []
    for cells in ((40, 20, 4),) if quick else ((40, 20, 4), (160, 80, 4)):
        body = plate(cells)[0].bodies[0]
        made = _least(lambda cells=cells: plate(cells), 1)
        for advance in (1.0, 3.5):
            spent, touched = _cuts(cells, advance)
            between, _ = _cuts(cells, advance, stepping=True)
            rows.append(
                [count(len(body.shape.tets)), count(len(body.surface.faces)), f"{np.mean(touched):.0f}"]
                + [seconds(float(np.median(spent))), seconds(min(spent)), seconds(max(spent))]
                + [seconds(float(np.median(between))), seconds(made), f"{made / float(np.median(spent)):.0f}"]
            )
    columns = ["tetrahedra", "triangles", "touched", "a cut, median", "least", "most", "after a step, median"]
    report.table([*columns, "the simulation made anew", "ratio"], rows)
    report.note(
        "CPU time of one thread, of cuts that change something and are done in place: topology, dofs, materials, lanes,"
        " surface, tree, walls, sharp edges, parts, and the exact test of all that was put elsewhere. After a step: the"
        " same cuts with a step before each, which leaves none of what a cut reads in the caches. The first cut also"
        " makes tables beside the arrays, once for each layout; where room is used up, all is laid out anew."
    )


def _cuts(cells: tuple[int, int, int], advance: float, *, stepping: bool = False) -> tuple[list[float], list[int]]:
    """Seconds of cuts that go on so far, and triangles that they touch; `stepping`: with steps between."""
    simulation, line = plate(cells)
    anew = counted_layouts(simulation)
    simulation.step()
    spent, touched = [], []
    for begin, end in itertools.pairwise(np.arange(-0.53 * cells[1], 0.53 * cells[1], advance)[:26]):
        before = time.process_time()
        events = simulation.cut(0, line(begin), line(end))
        if events and not anew:
            spent.append(time.process_time() - before)
            touched.append(len(cut_body(simulation).looked_at()))
        anew.clear()
        if stepping:
            simulation.step()
    return spent[2:], touched[2:]


def _parting(report: Report, quick: bool) -> None:
    """A blade goes right through a plate; what looking for parts takes in each step, and the one that comes off."""
    report.section("A part comes off")
    rows = []
    for cells in ((40, 20, 4),) if quick else ((40, 20, 4), (160, 80, 4)):
        solid = solid_block(cells)
        runs = [_parted(*plate(cells), cells) for _ in range(2 if quick else 5)]
        shown = [seconds(value) for value in np.median(runs, axis=0)[:5]]
        steps = int(runs[0][5])
        anew = _parted_anew(*plate(cells), cells)
        rows.append(
            [count(len(solid.tets)), count(len(solid.surface.faces)), *shown[:3], steps, *shown[3:], seconds(anew)]
        )
    columns = ["tetrahedra", "triangles", "looking, median of all steps", "most", "the step that parts"]
    columns += ["steps after the last cut", "the next cut", "bodies asked for", "laid out anew instead"]
    report.table(columns, rows)
    report.note(
        "CPU time of one thread, medians of five runs (most: the median of what each took at most), of a blade that"
        " goes right through. Parts are looked for in slices, one in each cut and one in each step after it: floods,"
        " the list of what is in a part, what it weighs; the last labels it, and it is a body of its own. The next cut"
        " begins a stroke elsewhere, in what is left, in place. Bodies asked for: shapes and surfaces of both, when"
        " somebody first wants them. Laid out anew: the step that parts where nothing is done in place."
    )


def _sliced(simulation: Simulation, line: Callable[[float], np.ndarray], cells: tuple[int, int, int]) -> list[float]:
    """Cut a plate right through, and look for parts until one has come off; what looking took each time [s]."""
    pipeline, slices = simulation._pipeline, list[float]()
    cuts = pipeline.cuts
    assert isinstance(cuts, Cuts)
    plain = cuts._part_off

    def timed(*arguments: Any, **options: Any) -> None:
        begin = time.thread_time()
        plain(*arguments, **options)
        slices.append(time.thread_time() - begin)

    cuts._part_off = timed
    with using_threads(1):
        for begin, end in itertools.pairwise(np.arange(-0.53 * cells[1], 0.53 * cells[1] + 4.0, 3.5)):
            simulation.cut(0, line(begin), line(end))
            if len(simulation) == 2:
                break
        while len(simulation) == 1:
            pipeline.save(only_cut=True)
            cuts.separate()
            pipeline.end_change()
    return slices


def _parted(
    simulation: Simulation, line: Callable[[float], np.ndarray], cells: tuple[int, int, int]
) -> tuple[float, ...]:
    """Seconds: a slice of looking for parts, median and most, the one that parts, the next cut, asking for bodies; and
    how many slices came after the last cut."""
    slices = _sliced(simulation, line, cells).copy()  # the next cut looks for parts too
    cuts = len(np.arange(-0.53 * cells[1], 0.53 * cells[1] + 4.0, 3.5)) - 1
    z = line(0.0)[:, 2]
    start, end = (np.stack([x * cells[0] + 0 * z, 0.3 * cells[1] + 0 * z, z], axis=1) for x in (-0.55, -0.45))
    begin = time.thread_time()
    assert len(simulation.bodies) == 2
    asked = time.thread_time() - begin
    after = _timed_cut(simulation, start, end)
    return float(np.median(slices)), max(slices), slices[-1], after, asked, float(max(0, len(slices) - cuts))


def _parted_anew(simulation: Simulation, line: Callable[[float], np.ndarray], cells: tuple[int, int, int]) -> float:
    """Seconds of the slice that parts a plate where all is laid out anew."""
    cuts = simulation._pipeline.cuts
    assert isinstance(cuts, Cuts)
    cuts._label_in_place = lambda *_: False
    return _sliced(simulation, line, cells)[-1]


def _timed_cut(simulation: Simulation, start: np.ndarray, end: np.ndarray) -> float:
    """Seconds that a cut takes."""
    begin = time.thread_time()
    simulation.cut(0, start, end)
    return time.thread_time() - begin


def plate(
    cells: tuple[int, int, int], *, bed: bool = False, **options: Any
) -> tuple[Simulation, Callable[[float], np.ndarray]]:
    """A plate of irregular elements, one unit wide, and a curved way through it; `bed`: all of one side touches one.

    `options` of the simulation take the place of those that are usual here: no gravity, two sweeps, one thread.
    """
    rng, solid = np.random.default_rng(0), solid_block(cells, size=tuple(map(float, cells)))
    places = solid.vertices.copy()
    inner = np.abs(places) < np.array(cells) / 2 - 0.1
    places[inner] += rng.uniform(-0.12, 0.12, inner.sum())
    held = np.abs(places[:, 0]) > cells[0] / 2 - 0.01
    body = Body(TetMesh(places, solid.tets), cuttable=True, density=1.0, youngs_modulus=1e4, fixed=held)
    z = np.linspace(-0.7 * cells[2], 0.5 * cells[2] + 0.5, 7)

    def line(y: float) -> np.ndarray:
        return np.stack([0.37 + 3.0 * np.sin(6.0 * y / cells[1]) + 0 * z, y + 0 * z, z], axis=1)

    bodies = [body]
    if bed:
        sheet = generate.sheet(2 * cells[0] * cells[1], size=(float(cells[0]), float(cells[1])))
        sheet = sheet.replace(vertices=sheet.vertices + [0.07, 0.05, -0.5 * cells[2] - 0.4])
        bodies.append(Body(sheet, fixed=True, name="bed"))
    return Simulation(
        bodies, **{"gravity": (0.0, 0.0, 0.0), "device": "cpu", "threads": 1, "sweeps": 2} | options
    ), line


def cut_body(simulation: Simulation) -> CutBody:
    """What is cut in it."""
    cuts = simulation._pipeline.cuts
    assert isinstance(cuts, Cuts)
    return cuts.bodies[0]


def counted_layouts(simulation: Simulation) -> list[int]:
    """Gets longer whenever all is laid out anew."""
    found, plain = [], simulation._pipeline.change_bodies

    def counted(change: BodiesChange) -> None:
        found.append(1)
        plain(change)

    simulation._pipeline.change_bodies = counted
    return found


def _peer(report: Report) -> None:
    """One planar cut right through the same block and the same sheet, beside rapier3d's."""
    try:
        import rapier3d
    except ImportError:
        return
    report.section("One planar cut right through, beside rapier3d")
    block, sheet = solid_block((16, 16, 16), size=(1.0, 1.0, 1.0)), generate.sheet(19602, size=(1.0, 1.0))
    plane = ((0.013, -50.0, -50.0), (0.013, 50.0, -50.0), (0.013, 0.0, 80.0))

    def theirs(builder: Callable[[], Any]) -> float:
        taken = []
        for _ in range(5):
            bodies, colliders, soft = rapier3d.RigidBodySet(), rapier3d.ColliderSet(), rapier3d.SoftBodySet()
            handle = soft.insert(builder(), bodies, colliders)
            joints = rapier3d.ImpulseJointSet(), rapier3d.MultibodyJointSet()
            begin = time.process_time()
            soft.cut(handle, plane, rapier3d.IslandManager(), bodies, colliders, *joints)
            taken.append(time.process_time() - begin)
            assert len(soft.handles()) == 2
        return min(taken)

    sides = {
        f"block, {count(len(block.tets))} tetrahedra": (
            _least_whole_cut(block.vertices, block.tets),
            theirs(lambda: rapier3d.SoftBodyBuilder(block.vertices.tolist()).cells(block.tets.tolist())),
        ),
        f"sheet, {count(len(sheet.faces))} triangles": (
            _least_whole_cut(sheet.vertices, sheet.faces),
            theirs(lambda: rapier3d.SoftBody.cloth([-0.5, -0.5, 0.0], [1 / 99, 0, 0], [0, 1 / 99, 0], 100, 100)),
        ),
    }
    rows = [[name, seconds(ours), seconds(other), f"{other / ours:.1f}"] for name, (ours, other) in sides.items()]
    report.table(["", "tangere", "rapier3d", "ratio"], rows)
    report.note(
        f"CPU time, the least of five. Ours: topology, surface and parts (`soft.cutting`), without buffers of a step;"
        f" theirs: `SoftBodySet.cut` of rapier3d {version('rapier3d')}, which tears along elements: no new ones."
    )


def _least_whole_cut(vertices: np.ndarray, simplices: np.ndarray) -> float:
    taken = []
    for _ in range(5):
        body = SimplicialComplex(vertices, simplices)
        surface = CutSurface(body) if simplices.shape[1] == 4 else None
        parts = ConnectedParts(body)
        z = np.linspace(-0.7, 0.7, 20)
        start = np.stack([0.013 + 0 * z, -0.7 + 0 * z, z], axis=1)
        body.begin_stroke()
        begin = time.process_time()
        for step in (lambda body=body, a=start: body.cut(a, a + [0.0, 1.4, 0.0]), body.end_stroke):
            change = step()
            if change and surface is not None:
                surface.follow()
            parts.note(change)
        while not parts.finished:
            parts.advance()
        taken.append(time.process_time() - begin)
        assert parts.parts == 2
    return min(taken)


def _trees(report: Report, sizes: tuple[tuple[int, int, int], ...]) -> None:
    """What a cut does to the one tree, beside building it anew."""
    report.section("The tree under topology change")
    rows = []
    for cells in sizes:
        simulation = _block(cells, 1e4, "both ends")
        anew, patches = counted_layouts(simulation), simulation._pipeline.patches
        taken: list[float] = []
        updates, touched = [], []
        for begin, end in itertools.pairwise(np.linspace(-0.6, 0.3, 13)):
            taken.clear()
            if simulation.cut(0, _line(begin), _line(end)) and taken and not anew:
                updates.append(taken[-1])
                touched.append(len(cut_body(simulation).looked_at()))
            _time_faces(simulation, taken)
            anew.clear()
        assembly, surface = simulation._pipeline.assembly, simulation.bodies[0].surface
        faces, points = (
            wp.array(a, dtype=kind, device="cpu")
            for a, kind in ((surface.faces, wp.int32), (surface.vertices, wp.vec3d))
        )
        rebuilt = _least(lambda f=faces, p=points, b=surface.bounds: LinearTree.build(f, p, b), 5)
        boxes = vertex_boxes(assembly.surface.rest, assembly.surface.rest, 0.0, 0.0, patches.frame)
        refitted = _least(lambda tree=patches.tree, boxes=boxes: tree.fit(boxes), 5)
        rows.append(
            [
                count(len(surface.faces)),
                f"{np.mean(touched):.0f}",
                seconds(float(np.median(updates))),
                seconds(refitted),
            ]
            + [seconds(rebuilt), f"{rebuilt / float(np.median(updates)):.1f}"]
        )
    report.table(["triangles", "touched", "update in place", "refit", "build anew", "anew / update"], rows)
    report.note(
        "CPU time of one thread. An update takes triangles out of the tree, puts new ones into its empty subtree, and"
        " brings up to date who owns which edge and vertex; a step refits."
    )


def _time_faces(simulation: Simulation, taken: list[float]) -> None:
    """From now on note how long updates of faces, tree and owners take [s]."""
    cuts = simulation._pipeline.cuts
    assert isinstance(cuts, Cuts)
    if cuts.in_place is None:
        return
    for _, launches in cuts.in_place._bodies.values():
        launch = launches[1][0][0]

        def timed(launch: PreparedLaunch = launch) -> None:
            begin = time.process_time()
            PreparedLaunch.run(launch)
            taken.append(time.process_time() - begin)

        launch.run = timed
