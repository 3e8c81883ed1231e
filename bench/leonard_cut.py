"""A soft block is cut: is it stable, does a cut cost detection anything, and what does a step with a cut take?

The experiment that the document did not get to work (Léonard 2021, sections 4.1.4, 4.6 and 5.2): the cut object
becomes unstable after a few steps, and hypothesis H3, that changes of topology add no step and no cost to detection,
stays open.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import numpy as np

from bench.harness import Report, count, seconds
from tangere.broad_phase.deforming import Step
from tangere.bvh.lbvh import LinearTree, vertex_boxes
from tangere.query.first_contact.deforming.initial_overlap import first_overlap
from tangere.shape import generate
from tangere.shape.mesh import Mesh
from tangere.shape.tets import solid_block
from tangere.soft import Body, Simulation
from tangere.soft.model.assembled_bodies import AssembledBodies
from tangere.soft.safe_step.patches import Patches
from tangere.soft.step import StepPipeline

FEATURES = ["F-L-86"]

SIZE = (2.0, 1.0, 1.0)
CUT_STEPS = 60


def run(report: Report, quick: bool = False) -> None:
    _stability(report, quick)
    sizes = ((10, 5, 5),) if quick else ((10, 5, 5), (20, 10, 10))
    _detection(report, sizes)
    _costs(report, sizes)
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


def _detection(report: Report, sizes: tuple[tuple[int, int, int], ...]) -> None:
    """Detection per triangle before, during and after the cut, in turns with a block that is not cut."""
    report.section("Detection during the cut (H3)")
    rows = []
    for cells in sizes:
        cut, whole = (_block(cells, 1e4, "both ends") for _ in range(2))
        ways = np.linspace(-0.75, 0.05, 25)
        for simulation in (cut, whole):
            simulation.run(steps=5)
        taken: dict[str, list[float]] = {"before": [], "during": [], "after": []}
        for phase, steps in (("before", 24), ("during", 24), ("after", 24)):
            for step in range(steps):
                if phase == "during":
                    cut.cut(0, _line(ways[step]), _line(ways[step + 1]))
                ratio = _detect(cut) / _detect(whole)
                taken[phase].append(ratio)
                cut.step()
                whole.step()
        middle = {phase: float(np.median(values)) for phase, values in taken.items()}
        triangles = sum(len(mesh.faces) for mesh in cut.meshes())
        change = middle["during"] / middle["before"] - 1.0
        later = middle["after"] / middle["before"] - 1.0
        rows.append(
            [count(len(whole.meshes()[0].faces)), count(triangles), f"{100 * change:+.1f} %", f"{100 * later:+.1f} %"]
            + ["yes" if change <= 0.05 else "no"]
        )
    report.table(["triangles", "after the cut", "per triangle during", "after", "within 5 %"], rows)
    report.note(
        "CPU time of `detect` (the nearest faces of all vertices and the nearest sharp edges) by triangle, as a ratio"
        " to a block that is not cut, measured in turns; the median of 24 steps each. H3: a cut adds no step"
        " to detection, but it is not without cost: walls touch, and are searched, where a whole block at rest has"
        " nothing to search, so detection per triangle takes more than 5 % longer."
    )


def _detect(simulation: Simulation) -> float:
    """Seconds of a detection by triangle: the least of five."""
    detection = simulation._pipeline.detection
    triangles = sum(len(mesh.faces) for mesh in simulation.meshes())
    return _least(detection.find_nearest, 5) / triangles


def _least(work: Callable[[], object], times: int) -> float:
    found = []
    for _ in range(times):
        begin = time.process_time()
        work()
        found.append(time.process_time() - begin)
    return min(found)


def _costs(report: Report, sizes: tuple[tuple[int, int, int], ...]) -> None:
    report.section("What a cut takes")
    rows = []
    for cells in sizes:
        simulation = _block(cells, 1e4, "both ends")
        simulation.run(steps=3)
        ways, spent = np.linspace(-0.6, 0.4, 11), []
        for begin, end in itertools.pairwise(ways):
            before = time.process_time()
            events = simulation.cut(0, _line(begin), _line(end))
            if events:
                spent.append(time.process_time() - before)
            simulation.step()
        pipeline = simulation._pipeline
        bodies = pipeline.assembly.bodies
        assert pipeline.cuts is not None
        own = pipeline.cuts.bodies[0]
        topology = _least(lambda own=own: own.state() and own.layout(1.0), 3)
        assembly = _least(lambda bodies=bodies, p=pipeline: AssembledBodies.of(bodies, p.assembly.device), 3)
        patches = _least(lambda p=pipeline: Patches(p.assembly), 3)
        buffers = _least(lambda p=pipeline: StepPipeline(p.assembly, p.options), 3)
        anew = _least(lambda cells=cells: _block(cells, 1e4, "both ends"), 2)
        rows.append(
            [count(len(bodies[0].shape.tets)), count(len(bodies[0].surface.faces)), seconds(float(np.median(spent)))]
            + [seconds(topology), seconds(assembly), seconds(patches), seconds(buffers - patches), seconds(anew)]
        )
    columns = ["tetrahedra", "triangles", "a cut that changes something", "of that: bodies of all parts", "assembly"]
    report.table([*columns, "patches", "other buffers", "the simulation made anew"], rows)
    report.note(
        "CPU time of one thread. Topology, surface and parts are kept up by what changed; the bodies, and the buffers"
        " of a step, are laid out anew after each cut that changes something."
    )


def _trees(report: Report, sizes: tuple[tuple[int, int, int], ...]) -> None:
    report.section("The tree under topology change")
    rows = []
    for cells in sizes:
        simulation = _block(cells, 1e4, "both ends")
        simulation.cut(0, _line(-0.75), _line(0.05))
        patches, surface = simulation._pipeline.patches, simulation._pipeline.assembly.surface
        tree, rest = patches.tree, surface.rest
        bounds = simulation._pipeline.assembly.rest_mesh.bounds
        rebuilt = _least(lambda p=patches, rest=rest, b=bounds: LinearTree.build(p.faces, rest, b), 5)
        boxes = vertex_boxes(rest, rest, 0.0, 0.0, patches.frame)
        refitted = _least(lambda tree=tree, boxes=boxes: tree.fit(boxes), 5)
        rows.append([count(len(patches.faces)), seconds(refitted), seconds(rebuilt), f"{rebuilt / refitted:.1f}"])
    report.table(["triangles", "refit", "build anew", "ratio"], rows)
    report.note("CPU time of one thread. A step refits; a cut that changes the triangles builds the tree anew.")
