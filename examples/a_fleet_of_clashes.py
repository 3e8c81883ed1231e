"""A fleet of clashes: where may a ball stand beside a ring? Hundreds of jobs, in a folder that can be resumed."""

import sys
import tempfile
from pathlib import Path

import numpy as np

import tangere as tg

with tempfile.TemporaryDirectory() as here:
    folder = Path(here)
    tg.generate.torus(800, bumps=0.15).save(folder / "ring.ply")
    tg.generate.icosphere(2, radius=0.15).save(folder / "ball.ply")
    grid = np.linspace(-2.0, 2.0, 12)
    places = np.array([(x, y, 0.0) for y in grid for x in grid])
    rows = [{"a": "ring.ply", "b": "ball.ply", "pose_b": [*place, 1.0, 0.0, 0.0, 0.0]} for place in places]
    jobs = tg.fleet.Jobs("clash", rows, base=folder, clearance=0.1, depth=False)
    print(jobs)

    # Here, one after the other. executor=8 means eight processes, executor="ray" all machines of a Ray cluster.
    report = tg.fleet.run(jobs, folder / "out")
    print(report)
    status = report.table()["status"].to_pylist()
    for row in np.reshape([word[0] for word in status], (12, 12)):
        print(" ".join(row))  # f: free, h: hard, n: near, t: touching, i: inside

    again = tg.fleet.run(jobs, folder / "out")  # what is in the folder is not done twice
    print(f"second run: {again.done} jobs done")

    if len(sys.argv) > 1:
        ring, ball = (tg.Mesh.load(folder / name) for name in ("ring.ply", "ball.ply"))
        free = [ball.replace(vertices=ball.vertices + p) for p, s in zip(places, status, strict=True) if s == "free"]
        tg.picture(tg.Scene.of(ring, *free), path=sys.argv[1])

assert len(status) == 144
assert report.failed == 0
assert {"free", "hard"} <= set(status)
assert (again.done, again.kept) == (0, 144)
