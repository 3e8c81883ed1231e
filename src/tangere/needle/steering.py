"""Where to turn and how much to bend so that a bevel tip gets to a target, round what is in the way.

Question: which arcs lead from where the tip is, and looks, to a target, with some clearance to vessels?
Method:   an arc from the tip through a point: its plane is found by rolling, its curvature is 2 l / d^2, with l the
          distance of the point from the line ahead and d that from the tip. What is less than the needle's own is made
          by duty cycle. Where the direct arc comes too near to something, arcs to start with are tried, a fan of rolls,
          curvatures and lengths, each followed by the arc to the target; of those that are clear the shortest is taken.
Sound:    clearance is that of points along the path, a part of the clearance asked for apart: nothing is nearer than
          the clearance minus that spacing.
Known as: inverse kinematics of bevel-tip steering with duty-cycled spinning (Webster et al. 2006; Minhas et al. 2007);
          planned again and again on the way, as a receding horizon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tangere.needle.anatomy import Vessel
from tangere.needle.kinematic import KinematicSimulation
from tangere.needle.tip_frame import TipFrame
from tangere.runtime import InputError, not_negative, positive, three_numbers

#: The fan of first arcs: rolls, parts of the curvature, and lengths as parts of the way to the target.
_ROLLS, _BENDS, _LENGTHS = 24, (0.0, 0.5, 1.0), (0.15, 0.3, 0.45, 0.6)
#: Points of a path lie so much of the clearance apart, but at most this many are looked at.
_SPACING, _MOST = 0.25, 400


@dataclass(frozen=True)
class Arc:
    """One piece of a plan: roll, then go."""

    roll: float  #: about the needle, before it goes on [rad]
    curvature: float  #: [1/m]
    length: float  #: [m]


@dataclass(frozen=True)
class SteeringPlan:
    """Arcs one after the other."""

    arcs: tuple[Arc, ...]
    clearance: float  #: the least distance of its points to a surface in the way [m]

    @property
    def length(self) -> float:
        """[m]"""
        return sum(arc.length for arc in self.arcs)

    def points(self, frame: TipFrame, spacing: float) -> np.ndarray:
        """(n, 3) along the path from a frame [m]."""
        found = [frame.position[None]]
        for arc in self.arcs:
            turned = frame.advanced(0.0, spin=arc.roll)
            count = max(1, int(np.ceil(arc.length / spacing)))
            parts = arc.length * np.arange(1, count + 1) / count
            found.append(np.stack([turned.advanced(part, curvature=arc.curvature).position for part in parts]))
            frame = turned.advanced(arc.length, curvature=arc.curvature)
        return np.concatenate(found)


def arc_to(frame: TipFrame, target: Any) -> Arc:
    """The arc from the tip to a target [m]."""
    ahead = frame.rotation.T @ (three_numbers(target, "target") - frame.position)
    square, aside = float(ahead @ ahead), float(np.hypot(ahead[0], ahead[1]))
    if square == 0.0:
        return Arc(0.0, 0.0, 0.0)
    if ahead[2] <= 0.0:
        raise InputError(f"target: {np.asarray(target).tolist()} is behind the tip")
    # The tip bends from its z towards its -y axis.
    roll = float(np.arctan2(ahead[0], -ahead[1])) if aside > 1e-12 * np.sqrt(square) else 0.0
    curvature = 2.0 * aside / square
    angle = 2.0 * np.arctan2(aside, ahead[2])
    return Arc(roll, curvature, float(angle / curvature) if angle > 1e-9 else float(np.sqrt(square)))


def plan_steering(
    frame: TipFrame,
    target: Any,
    *,
    curvature: float,
    obstacles: Sequence[Vessel] = (),
    clearance: float = 2e-3,
) -> SteeringPlan:
    """Arcs from a frame to a target that stay clear of vessels.

    Args:
        curvature: the most that the needle can bend [1/m].
        clearance: to the surfaces of the vessels [m].

    Example:
        >>> from tangere.needle import TipFrame, Vessel, plan_steering
        >>> frame = TipFrame.looking([0, 0, 0], [0, 0, 1])
        >>> vessel = Vessel([[-0.02, 0, 0.05], [0.02, 0, 0.05]], radius=2e-3)
        >>> direct = plan_steering(frame, [0, 0, 0.1], curvature=15.0)
        >>> round_it = plan_steering(frame, [0, 0, 0.1], curvature=15.0, obstacles=[vessel], clearance=3e-3)
        >>> len(direct.arcs), len(round_it.arcs), round_it.clearance > 3e-3
        (1, 2, True)
    """
    most, margin = positive(curvature, "curvature"), not_negative(clearance, "clearance")
    target = three_numbers(target, "target")
    far = float(np.linalg.norm(target - frame.position))
    spacing = max(_SPACING * margin, 2.0 * far / _MOST, 1e-12)
    lines = [(vessel.points[:-1], vessel.points[1:], vessel.radius) for vessel in obstacles]
    best: SteeringPlan | None = None
    starts = [None, *((r, b, s) for s in _LENGTHS for b in _BENDS for r in range(_ROLLS if b > 0.0 else 1))]
    for start in starts:
        arcs, there = [], frame
        if start is not None:
            roll, bend, part = start
            arcs.append(Arc(2.0 * np.pi * roll / _ROLLS, bend * most, part * far))
            there = frame.advanced(0.0, spin=arcs[0].roll).advanced(arcs[0].length, curvature=arcs[0].curvature)
        try:
            arcs.append(arc_to(there, target))
        except InputError:
            continue
        if arcs[-1].curvature > most * (1.0 + 1e-9):
            continue
        plan = SteeringPlan(tuple(arcs), np.inf)
        gap = _gap(plan.points(frame, spacing), lines)
        if gap >= margin and (best is None or plan.length < best.length):
            best = SteeringPlan(plan.arcs, gap)
            if start is None:
                return best
    if best is None:
        raise InputError(
            f"target: {target.tolist()} cannot be reached with a curvature of {most:g} /m, {margin:g} m off the vessels"
        )
    return best


def follow_plan(simulation: KinematicSimulation, plan: SteeringPlan, length: float, *, cycle: float = 1e-3) -> float:
    """Drive a kinematic needle along a plan for a length [m], or to its end; returns how far it went [m].

    Args:
        cycle: length of one cycle of spinning and not [m].
    """
    left, most = positive(length, "length"), simulation.needle.curvature
    gone = 0.0
    for arc in plan.arcs:
        if left <= 0.0 or simulation.stopped:
            break
        way = min(arc.length, left)
        simulation.advance(0.0, spin=arc.roll)
        duty = float(np.clip(1.0 - arc.curvature / most, 0.0, 1.0)) if most > 0.0 else 0.0
        cycles = max(1, int(np.ceil(way / cycle)))
        for _ in range(cycles):
            simulation.step_duty_cycled(way / cycles, duty)
        left -= way
        gone += way
    return gone


def _gap(points: np.ndarray, lines: list[tuple[np.ndarray, np.ndarray, float]]) -> float:
    """The least distance of points to the surfaces of lines with a radius."""
    best = np.inf
    for a, b, radius in lines:
        way = b - a
        square = np.maximum((way * way).sum(axis=1), 1e-300)
        offset = points[:, None] - a
        part = np.clip((offset * way).sum(axis=2) / square, 0.0, 1.0)
        best = min(best, float(np.linalg.norm(offset - part[..., None] * way, axis=2).min()) - radius)
    return best
