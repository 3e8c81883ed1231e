"""Two simulations that are cut alike: one in place and one laid out anew, or one with cuts that are undone."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from tangere.runtime import TangereError
from tangere.soft import Simulation
from tangere.soft.cutting import Cuts
from tangere.soft.incremental import InPlaceUpdate
from tangere.soft.model import assembled_bodies
from tangere.soft.solver.cpu.dof_lanes import dof_lanes


class CountedUpdates:
    """How often bodies were updated in place, and how often not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, never: bool = False) -> None:
        self.found, plain = Counter(), Cuts._update_in_place

        def counted(cuts: Cuts, *arguments) -> bool:
            done = not never and plain(cuts, *arguments)
            self.found[done] += 1
            return done

        monkeypatch.setattr(Cuts, "_update_in_place", counted)


def in_turn(simulation: Simulation, twin: Simulation, monkeypatch, start, end) -> None:
    """Cut both; the twin is laid out anew, with the colours that the first one has."""
    simulation.cut(0, start, end)
    assembly = simulation._pipeline.assembly
    colour = np.full(len(assembly.dofs.x), -1)
    for name, (begin, stop) in enumerate(dof_lanes(assembly).colours.numpy()):
        colour[np.unique(dof_lanes(assembly).dofs.numpy()[begin:stop])] = name
    colour = colour[assembly.dof_rows]

    def same_colours(_ranges, _neighbours, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        order = np.flatnonzero(free)
        own = colour[: order[-1] + 1][order]
        order = order[np.argsort(own, kind="stable")]
        return order, np.concatenate([[0], np.cumsum(np.bincount(own))]).astype(np.int32)

    with monkeypatch.context() as patched:
        patched.setattr(assembled_bodies, "_by_colour", same_colours)
        patched.setattr(InPlaceUpdate, "apply", lambda *_: False)
        twin.cut(0, start, end)


def cut_in_vain(simulation: Simulation, *lines: np.ndarray) -> None:
    """Cut from line to line within a step that fails then: all of it is undone."""
    solve = simulation.phases["solve"]

    def cut_and_fail(_pipeline) -> None:
        for start, end in itertools.pairwise(lines):
            simulation.cut(0, start, end)
        raise TangereError("on purpose")

    simulation.phases["solve"] = cut_and_fail
    with pytest.raises(TangereError, match="on purpose"):
        simulation.step()
    simulation.phases["solve"] = solve
