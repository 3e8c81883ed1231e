"""A thousand boxes fall into a bin and settle, beside MuJoCo, PyBullet and rapier3d: how fast, and who overlaps?

The pile of 1,000 of the benchmark of all scenes, for three seconds of simulated time: the highest boxes arrive after
two and a half. As there: the same boxes, friction and steps of 10 ms in every engine, one thread each, processor time
of a step, the mean over the last third of the run, when most boxes lie on each other; the deepest overlap of ten
states.
"""

from __future__ import annotations

from functools import partial

from bench.dynamics_peers import Case, compare
from bench.harness import Report, SkippedError
from bench.peers.rigid_worlds import ENGINES
from tangere.dynamics import scenes

FEATURES: list[str] = []


def run(report: Report, quick: bool = False) -> None:
    try:
        import mujoco  # noqa: F401
        import pybullet  # noqa: F401
        import rapier3d  # noqa: F401
    except ImportError as error:
        raise SkippedError(str(error)) from error
    report.packages += [engine.package for engine in ENGINES]
    boxes = 27 if quick else 1000
    make = partial(scenes.pile, boxes, device="cpu", threads=1)
    compare(report, Case(f"pile of {boxes:,} boxes, settling", make, 300, False, (4,)), quick)
