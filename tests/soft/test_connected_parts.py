"""Parts are looked for in slices while the blade goes on: what is found in the end, what it takes, and when."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from oracles.cut_bodies import parts_of
from oracles.helpers.cut_strokes import block, random_stroke, torus
from tangere.shape.tets import solid_block
from tangere.soft.cutting import ConnectedParts, CutSurface, SimplicialComplex, connected_parts
from tangere.soft.cutting.connected_parts import FLOODS, LEFT, FoundPart


def check(body: SimplicialComplex, parts: ConnectedParts) -> None:
    """Numbers of parts are those of the connected components, one to one."""
    count, component = parts_of(body.neighbours)
    given = body.arrays.part.numpy()[: len(component)]
    assert len(np.unique(np.stack([given, component], axis=1), axis=0)) == len(np.unique(given)) == count
    assert parts.parts == count


@pytest.mark.feature("F-L-54")
def test_parts_are_the_connected_components_however_the_blade_and_the_slices_meet(effort, monkeypatch) -> None:
    """Slices of any size, some left out, cuts that are undone, room for floods that is soon used up."""
    told = 0
    for case in range(effort(24, least=6)):
        rng = np.random.default_rng(case)
        monkeypatch.setattr(connected_parts, "_LEAST_FLOODS", (1 << 14, 16, 300)[case % 3])
        body = SimplicialComplex(*(block(), torus())[case % 2])
        surface = CutSurface(body)
        parts = ConnectedParts(body, surface)
        for _ in range(3):
            stroke = random_stroke(rng, body.edge)
            body.begin_stroke()
            for start, stop in [*itertools.pairwise(stroke.lines), (None, None)]:
                before, last = parts.state(), body.begin_history()
                surface.begin_history()
                change = body.end_stroke() if start is None else body.cut(start, stop)
                if change:
                    surface.follow()
                parts.note(change)
                for _ in range(rng.integers(0, 3)):
                    told += len(parts.advance(budget=int(rng.choice([5, 60, 600]))))
                if rng.random() < 0.1 and start is not None:
                    if parts.parts == before[1]:  # nothing was told of: as if the blade had not gone on
                        body.undo_history(last)
                        surface.undo_history()
                        parts.restore(before)
                        break
        while not parts.finished:
            found = parts.advance(budget=int(rng.choice([5, 60, 600])))
            check_told(body, found)
            told += len(found)
        check(body, parts)
    assert told > 3


def check_told(body: SimplicialComplex, found: list[FoundPart]) -> None:
    """A part is told with all vertices of what has its number."""
    for new in found:
        mine = body.arrays.part.numpy()[: body.counts[0]] == new.part
        assert np.array_equal(np.sort(new.vertices), np.unique(body.corners[mine]))


@pytest.mark.feature("F-L-54")
def test_a_part_comes_off_while_the_blade_goes_on_elsewhere() -> None:
    """In at most twice as many slices as if the blade had stopped; and none takes more than what it may."""
    solid = solid_block((24, 8, 4), size=(24.0, 8.0, 4.0))
    slices = {}
    for goes_on in (False, True):
        body = SimplicialComplex(solid.vertices, solid.tets)
        surface = CutSurface(body)
        parts = ConnectedParts(body, surface)

        def cut(x: float, y: float, advance: float, body=body, surface=surface, parts=parts) -> None:
            z = np.linspace(-3.0, 3.0, 7)
            line = np.stack([x + 0.03 * z, y + 0 * z, z], axis=1)
            change = body.cut(line, line + [0.0, advance, 0.0])
            if change:
                surface.follow()
            parts.note(change)

        body.begin_stroke()
        cut(-5.4, -5.0, 10.0)
        assert parts_of(body.neighbours)[0] == 2
        body.end_stroke()
        body.begin_stroke()
        found, count, y = [], 0, -4.6
        while not found and count < 200:
            found = parts.advance(budget=100)
            least = -150 - int(parts._numbers[FLOODS])  # a layer of a flood is gone through as a whole
            assert parts._numbers[LEFT] > least
            count += 1
            if goes_on and y < 3.0:
                cut(6.3, y, 0.1)
                y += 0.1
        assert len(found) == 1
        check_told(body, found)
        slices[goes_on] = count
        while not parts.finished:
            parts.advance()
        check(body, parts)
    assert 5 < slices[False] <= slices[True] <= 2 * slices[False], slices


@pytest.mark.feature("F-L-54")
def test_slices_do_not_take_longer_the_more_facets_wait() -> None:
    """Strokes one after the other, with slices far too small for what comes off: floods do not pile up."""
    solid = solid_block((40, 12, 3), size=(40.0, 12.0, 3.0))
    body = SimplicialComplex(solid.vertices, solid.tets)
    surface = CutSurface(body)
    parts = ConnectedParts(body, surface)
    z = np.linspace(-2.0, 2.0, 5)
    floods = []
    for x in np.linspace(-15.3, 15.4, 9):
        body.begin_stroke()
        for y in np.arange(-6.6, 6.6, 1.1):
            line = np.stack([x + 0.02 * z, y + 0 * z, z], axis=1)
            change = body.cut(line, line + [0.0, 1.1, 0.0])
            if change:
                surface.follow()
            parts.note(change)
            parts.advance(budget=1500)
            floods.append(int((parts._arrays.alive.numpy()[: parts._numbers[FLOODS]] == 1).sum()))
        parts.note(body.end_stroke())
        surface.follow()
    assert max(floods) <= 60, max(floods)
    while not parts.finished:
        parts.advance()
    check(body, parts)
