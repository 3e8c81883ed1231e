"""Deforming bodies and a rigid tool: which contacts does every kind of pair make, and does a step stay below 50 ms?

The general objective of the document, without cutting: two soft bodies, of which one falls on the other, while a rigid
ball, the tool, is driven to and fro against it; contacts between soft bodies and with the tool are reported in the same
step.
"""

from __future__ import annotations

import time

import numpy as np

from bench.harness import Report, seconds
from tangere.shape import generate
from tangere.soft import Body, Simulation, scenes

FEATURES = ["F-L-1"]

LIMIT = 0.05


def run(report: Report, quick: bool = False) -> None:
    rows = []
    for triangles in (3_200,) if quick else (3_200, 12_800):
        ball = generate.icosphere(subdivisions=3)
        tool = Body(ball.replace(vertices=ball.vertices + [6.5, 0.6, 6.8]), fixed=True, name="tool")
        simulation = Simulation([*scenes.tori(triangles).bodies, tool], distance=0.15)
        simulation.run(steps=3)
        took, soft, with_tool = [], 0, 0
        for step in range(60 if quick else 150):
            simulation[2].drive((0.0, 0.0, 1.5 * np.cos(0.1 * step)))  # 30 cm up and down
            begin = time.perf_counter()
            simulation.step()
            took.append(time.perf_counter() - begin)
            contacts = simulation.contacts
            pairs = np.sort(np.stack([contacts.body_a, contacts.body_b], axis=1), axis=1)
            soft = max(soft, int((pairs == [0, 1]).all(axis=1).sum()))
            with_tool = max(with_tool, int((pairs[:, 1] == 2).sum()))
        p99 = float(np.percentile(took, 99))
        rows.append(
            [f"{triangles} + {len(ball.faces)}", soft, with_tool, seconds(float(np.mean(took))), seconds(p99)]
            + ["yes" if soft > 0 and with_tool > 0 and p99 <= LIMIT else "no"]
        )
    report.section("Contacts and steps")
    columns = ["triangles", "contacts between soft bodies (most)", "with the tool (most)", "mean step", "p99"]
    report.table([*columns, "both kinds, within 50 ms"], rows)
