"""Clashes of an assembly: a screw that bites into its plate, a washer lost inside it, and what comes out which way."""

import sys

import numpy as np

import tangere as tg


def at(x: float, y: float, z: float) -> tg.Rest:
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return tg.Rest(pose)


plate = tg.generate.box([0.1, 0.1, 0.02])  # or tg.Assembly.load("gearbox.step", tolerance=1e-5)
pin = tg.generate.prism(24, radius=0.006, height=0.03)
lid = tg.generate.box([0.03, 0.03, 0.004])
assembly = tg.Assembly(
    {
        "plate": plate,
        "pin on it": pin.moving(at(0.03, 0.03, 0.025)),
        "pin in it": pin.moving(at(-0.03, 0.03, 0.022)),
        "lost nut": tg.generate.prism(6, radius=0.004, height=0.003).moving(at(-0.03, -0.03, 0.0)),
        "lid": lid.moving(at(0.03, 0.03, 0.0425)),
        "lid again": lid.moving(at(0.03, 0.03, 0.0425)),
    }
)
found = assembly.clashes(clearance=1e-3)
for clash in found:
    print(clash)

ways = assembly.removal("pin on it")
print(ways, *ways, sep="\n  ")

if len(sys.argv) > 1:
    tg.picture(assembly.scene(found.of("hard")[0]), path=sys.argv[1])

assert found.counts == {"duplicate": 1, "inside": 1, "hard": 1, "touching": 1, "near": 2}, found.counts
assert len(ways.free) == 3
