"""Which links of a Panda touch: its 54 pairs, by samples and by proof, and 100,000 samples against what was proved.

`robot.touching(prove=True)` samples first, then proves of pairs that no sample saw touching that none ever does: one
joint is swept over its range as one motion, the others are cut into cells. What was proved is then looked at in other
random configurations. The robot is that of the wheel example-robot-data. Times are those of the process, on one core.
"""

from __future__ import annotations

import time

from bench.harness import Report, seconds
from bench.robots import load

FEATURES: list[str] = []

SAMPLES, AGAIN, CELLS = 2000, 100_000, 4000


def run(report: Report, quick: bool = False) -> None:
    robot = load("Panda")
    samples, again, cells = (50, 200, 20) if quick else (SAMPLES, AGAIN, CELLS)
    begin = time.process_time()
    table = robot.touching(samples, prove=True, cells=cells, device="cpu", threads=1)
    taken = time.process_time() - begin
    proved = [row.pair for row in table if row.verdict == "never"]
    begin = time.process_time()
    seen = robot.touching(again, seed=1, device="cpu", threads=1)
    wrong = sum(seen[pair].count > 0 for pair in proved)
    report.section("Verdicts")
    report.table(["pairs", *table.counts(), "time"], [[len(table), *table.counts().values(), seconds(taken)]])
    report.section("Proved pairs in other samples")
    report.table(
        ["samples", "proved pairs", "of these touch", "time"],
        [[again, len(proved), wrong, seconds(time.process_time() - begin)]],
    )
    assert wrong == 0
