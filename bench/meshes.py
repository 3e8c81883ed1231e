"""Deforming meshes over one step: when is the first contact, and which are all contacts?

A cloth that wraps a ball, against itself (46,598 vertices, 92,230 triangles; public data), and two bumpy tori of 20,480
triangles that approach each other along a line. The peer finds the earliest time: candidates from its LBVH, then one of
its two narrow phases.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

import tangere as tg
from bench import machine
from bench.data import cloth_ball
from bench.harness import Report, SkippedError, count, measure, ratio
from bench.peers import ipctk
from bench.plots import Plot
from tangere.shape import generate
from tangere.shape.mesh import Mesh

FEATURES: list[str] = []


@dataclass(frozen=True)
class Step:
    """A mesh and where its vertices go; two bodies are one mesh in two pieces, as the peer wants it."""

    name: str
    mesh: Mesh
    end: np.ndarray


def run(report: Report, quick: bool = False) -> None:
    report.packages.append("ipctk")
    steps = [_tori(0.4, quick), _tori(0.8, quick)]
    if not quick:
        try:
            steps.insert(0, Step("cloth over a ball", *cloth_ball()))
        except SkippedError as reason:
            report.note(f"Without the cloth: {reason}.")
    threads = sorted({1, machine.cores()})
    report.section("First contact")
    bars: dict[str, list[float | None]] = {}
    rows, found = [], []
    for step in steps:
        peer = ipctk.MeshStep(step.mesh.vertices, step.end, step.mesh.faces)
        for n in threads:
            contenders = {"tangere": partial(_first, step, n), "tangere, all contacts": partial(_all, step, n)}
            contenders |= {f"ipctk LBVH + {m}": partial(peer.earliest, m, n) for m in ipctk.METHODS}
            timings = measure(contenders, rounds=5, at_most=20.0)
            ours = timings["tangere"].median
            rows += [[step.name, n, name, t, ratio(t.median, ours)] for name, t in timings.items()]
            if n == 1:
                for name, timing in timings.items():
                    bars.setdefault(name, []).append(timing.median)
                found.append(_times(step, timings, peer))
    report.table(["step", "threads", "method", "time", "against ours"], rows)
    report.plot("first-contact", Plot("Time for one step, one thread", "", "seconds", [s.name for s in steps], bars))
    _two_bodies(report, quick)
    report.section("What was found")
    report.table(
        ["step", "first contact", "contacts in the step", *(f"ipctk {m}" for m in ipctk.METHODS), "peer's candidates"],
        found,
    )
    report.note(
        """Both libraries use the earliest time found so far to spare later tests, so an early contact makes a step
        cheap for both; "all contacts" is the work without that. The peer's time is earlier than ours by its tolerance,
        or by the share of the distance it leaves."""
    )


def _tori(distance: float, quick: bool) -> Step:
    torus = generate.torus(grid=(32, 20) if quick else (128, 80), bumps=0.1)
    x, y, z = torus.vertices.T
    turned = np.stack([x + 1.05, -z, y], axis=1)  # 90 degrees about x, then beside the first
    mesh = Mesh.join([torus, torus.replace(vertices=turned)])
    end = mesh.vertices.copy()
    end[len(torus.vertices) :, 0] += distance
    return Step(f"two tori, {distance:g} along x", mesh, end)


def _two_bodies(report: Report, quick: bool) -> None:
    """The tori as two bodies: what a user asks who has two parts."""
    report.section("The tori as two bodies")
    rows = []
    for distance in (0.4, 0.8):
        step = _tori(distance, quick)
        half, faces = len(step.mesh.vertices) // 2, len(step.mesh.faces) // 2
        bodies = [Mesh(step.mesh.vertices[part], step.mesh.faces[:faces]) for part in (slice(half), slice(half, None))]
        moving = bodies[1].moving(tg.Linear(step.end[half:]))
        for start in ("trusted", "checked"):
            ask = partial(tg.first_contact, bodies[0], moving, start=start, device="cpu")
            timings = measure({str(n): partial(ask, threads=n) for n in (1, machine.cores())}, rounds=7)
            found = timings["1"].result
            rows.append([step.name, start, *timings.values(), f"{found.time:.9g}"])
    report.table(["step", "start", "1 thread", f"{machine.cores()} threads", "first contact"], rows)
    report.note("The peer has no way to leave out pairs within one body from Python, so it has no row here.")


def _first(step: Step, threads: int) -> tg.FirstContact:
    return tg.first_contact(step.mesh.moving(tg.Linear(step.end)), start="trusted", threads=threads, device="cpu")


def _all(step: Step, threads: int) -> tg.Contacts:
    return tg.all_contacts(step.mesh.moving(tg.Linear(step.end)), start="trusted", threads=threads, device="cpu")


def _times(step: Step, timings: dict, peer: ipctk.MeshStep) -> list[str]:
    return [
        step.name,
        f"{timings['tangere'].result.time:.9g}",
        count(len(timings["tangere, all contacts"].result)),
        *(f"{timings[f'ipctk LBVH + {m}'].result:.9g}" for m in ipctk.METHODS),
        count(peer.candidate_count()),
    ]
