"""The edge of a blade in a simulation: it pushes what it has reached, and what will not yield is cut.

Question: where does the edge press, how hard, and how far has it cut when the step ends?
Method:   points along the edge hold on to the material where they meet it. A step has a row for each (a guide of
          `contact.rows`): a spring along the way of the blade that only pushes, with a force of at most the toughness
          times the length of edge that the point stands for. Where a row gives all it can, the point slips through the
          material; by as much the blade has cut. The body is opened along the way of the points, and some way ahead.
Sound:    the load of the edge never exceeds the toughness, on entry or inside, and its work is the toughness times the
          area that the edge has swept: less than what is opened, as long as that is ahead of the edge.
Known as: Griffith's energy of fracture; a plastic slider in series with a spring; Huber's loss.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
import warp as wp

from tangere.runtime import SOUND, launch
from tangere.soft.blade import Blade
from tangere.soft.contact.row_entries import RowArrays
from tangere.soft.cutting.cut_body import CutBody
from tangere.soft.cutting.rest_map import locate, simplices_near, to_rest
from tangere.soft.step import StepPipeline

wp.set_module_options(SOUND)

#: Points of the edge are at most this many edges of the body's elements apart.
_SPACING = 0.5
#: A point slips when its spring is strained by this part of an edge; and springs are at most so many times as stiff as
#: the body.
_STRAIN, _STIFFEST = 0.05, 10.0
#: How far behind the edge a stroke begins, and how far ahead the body opens, in edges.
_BEHIND, _AHEAD = 2.0, 2.0
#: Elements further than this from the edge, and than its lead, are not asked, in edges.
_NEAR = 6.0
#: A point of the edge is in a body if its weights in an element are not more negative than this.
_INSIDE = 0.05


@dataclass(frozen=True, eq=False)
class Hold:
    """What an edge of m points holds on to in one body, at rest."""

    anchors: np.ndarray  #: (m, 3) where each point holds the material, at rest [m]
    held: np.ndarray  #: (m,) bool: whether it does
    opened: np.ndarray | None = None  #: (m, 3) how far the body is opened, at rest [m]; None: not at all yet


class BladeEdge:
    """The edge of one blade, and all that it holds on to."""

    def __init__(self, pipeline: StepPipeline, number: int, blade: Blade, edge: float) -> None:
        """`number` of the blade among the bodies; `edge` of the elements that it cuts, median [m]."""
        self._pipeline, self.number, self.blade = pipeline, number, blade
        self._start = _divided(blade.edge_points, _SPACING * edge)  # (m, 3) at the start
        self._lengths = _shares(self._start)
        self._rest = pipeline.assembly.bodies[number].shape.vertices
        self._forward = blade.forward
        self._driven = self._written = np.zeros_like(self._rest)  # velocities as given, and as they are used [m/s]
        self._holds: dict[tuple[int, int], Hold] = {}  # by the number of the cut body, and the part of it
        self.force = np.zeros(3)  #: of the edge on the blade in the last step, against what it cuts [N]

    # -- phases ------------------------------------------------------------------------------------------------------

    def advance(self, bodies: list[CutBody]) -> list[tuple[CutBody, int, np.ndarray, np.ndarray]]:
        """Let go, slip and hold on where everything is now; what is to be cut: bodies, parts, two polylines at rest."""
        self._straighten()
        points, velocity = self._points(0.0), self._driven.mean(axis=0)
        speed = float(np.linalg.norm(velocity))
        if speed > 0.0:
            self._forward = velocity / speed
        self.force = np.zeros(3)
        wanted, free = [], np.ones(len(points), bool)  # a point holds on to one part only
        for index, own in enumerate(bodies):
            x = self._places(own)
            for part in own.numbers:
                hold, lines = self._held_on(own, part, self._holds.get((index, part)), points, free, x)
                if hold is not None:
                    self._holds[index, part] = hold
                    free &= ~hold.held
                else:
                    self._holds.pop((index, part), None)
                if lines is not None:
                    wanted.append((own, part, *lines))
        return wanted

    def rows(self, bodies: list[CutBody]) -> None:
        """Rows for all that it holds on to, in this step."""
        pipeline, assembly = self._pipeline, self._pipeline.assembly
        aims = self._points(pipeline.dt)
        for (index, part), hold in self._holds.items():
            own, number = bodies[index], bodies[index].numbers[part]
            pipeline.pull.anchor(number, on=bool(hold.held.any()))
            if not hold.held.any():
                continue
            near = self._near(own, part, self._points(0.0), self._places(own))
            corners, weights = self._carriers(own, part, hold, near)
            dofs = own.dofs.rows(assembly.dof_base)[corners]
            stiffness, most = self._law(own)
            guide = np.stack([0 * stiffness + 1e-12, stiffness, most, np.ones(len(most))], axis=1)[hold.held]
            columns = [
                wp.array(np.ascontiguousarray(values), dtype=kind, device=assembly.device)
                for values, kind in (
                    (dofs, wp.vec4i),
                    (weights, wp.vec4d),
                    (aims[hold.held], wp.vec3d),
                    (guide, wp.vec4d),
                )
            ]
            count, device = len(dofs), assembly.device

            def write(rows: RowArrays, first: int, columns=columns, number=number, count=count, device=device) -> None:
                inputs = [first, number, wp.vec3d(*self._forward), assembly.dofs.free, *columns, rows]
                launch(_write, count, inputs, device=device)

            pipeline.rows.append(count, write)

    def part_off(self, own: CutBody, index: int, part: int, of: int) -> None:
        """A part has come off another one: each point goes on to hold on to what has its anchor."""
        hold = self._holds.get((index, of))
        if hold is None:
            return
        anchors, rest, inside = hold.anchors[hold.held], own.complex.rest, []
        for mine in (own.simplices_of(part), own.simplices_of(of)):
            if len(anchors):
                reach = own.complex.edge
                near = mine[simplices_near(anchors.min(axis=0) - reach, anchors.max(axis=0) + reach, rest, mine)]
                found, weights = (
                    locate(anchors, rest, near, _INSIDE) if len(near) else (-np.ones(len(anchors)), anchors)
                )
                inside.append(np.where(found >= 0, weights.min(axis=1), -np.inf))
        ours, theirs = hold.held.copy(), hold.held.copy()
        if inside:
            ours[hold.held], theirs[hold.held] = inside[0] > inside[1], inside[0] <= inside[1]
        self._holds[index, part] = replace(hold, held=ours)
        self._holds[index, of] = replace(hold, held=theirs)

    def holds(self, index: int) -> bool:
        """Whether it holds on to a body that is cut, or a part of it."""
        return any(own == index for own, _ in self._holds)

    def state(self) -> tuple[dict[tuple[int, int], Hold], tuple[np.ndarray, ...]]:
        """All that later steps depend on."""
        return self._holds.copy(), (self._forward, self.force, self._driven, self._written)

    def restore(self, state: tuple[dict[tuple[int, int], Hold], tuple[np.ndarray, ...]]) -> None:
        """As it was."""
        self._holds, (self._forward, self.force, self._driven, self._written) = state[0].copy(), state[1]

    # -- inside ------------------------------------------------------------------------------------------------------

    def _places(self, own: CutBody) -> np.ndarray:
        """(v, 3) where the vertices of a body are now [m]."""
        assembly = self._pipeline.assembly
        return assembly.dofs.x.numpy()[own.dofs.rows(assembly.dof_base)]

    def _points(self, dt: float) -> np.ndarray:
        """(m, 3) where the edge is, or will be after so long [m]: it goes with the blade as a whole."""
        dofs, base = self._pipeline.assembly.dofs, self._pipeline.assembly.dof_base
        begin, end = base[self.number : self.number + 2]
        now = dofs.x.numpy()[begin:end] + dt * dofs.v.numpy()[begin:end]
        turn, move = _rigid(self._rest, now)
        return self._start @ turn.T + move

    def _straighten(self) -> None:
        """A blade is stiff: vertices that were held back by what they met go faster, until it is straight again."""
        dofs, base, dt = self._pipeline.assembly.dofs, self._pipeline.assembly.dof_base, self._pipeline.dt
        begin, end = base[self.number : self.number + 2]
        x, v = dofs.x.numpy()[begin:end], dofs.v.numpy()[begin:end]
        if not np.array_equal(v, self._written):  # somebody has driven it anew
            self._driven = v.copy()
        turn, move = _rigid(self._rest, x)
        self._written = self._driven + (0.5 / dt) * (self._rest @ turn.T + move - x)
        rows = wp.array(self._written, dtype=wp.vec3d, device=dofs.v.device)
        wp.copy(dofs.v, rows, dest_offset=int(begin), count=len(rows))

    def _law(self, own: CutBody) -> tuple[np.ndarray, np.ndarray]:
        """(m,) stiffness of each point [N/m], and its largest force [N]."""
        most = self.blade.toughness * self._lengths
        if own.complex.size == 3:
            most = self.blade.toughness * own.given.thickness * np.ones(len(self._lengths))
        stiffest = _STIFFEST * own.given.youngs_modulus * self._lengths
        return np.minimum(most / (_STRAIN * own.complex.edge), stiffest), most

    def _held_on(
        self, own: CutBody, part: int, hold: Hold | None, points: np.ndarray, free: np.ndarray, x: np.ndarray
    ) -> tuple[Hold | None, tuple[np.ndarray, np.ndarray] | None]:
        """What the edge holds on to now, and, where it has slipped, which way it has cut: two polylines at rest."""
        mine = self._near(own, part, points, x)
        if not len(mine):
            return None, None
        shapes = x, own.complex.rest, mine
        inside = free & (locate(points, x, mine, _INSIDE)[0] >= 0)
        if hold is None and not inside.any():
            return None, None
        if hold is None:
            hold = Hold(np.zeros_like(points), np.zeros(len(points), bool))
        anchors, held = hold.anchors.copy(), hold.held & inside
        slipped = np.zeros(len(points), bool)
        if hold.held.any():  # also what has left the body by now has pushed in the last step
            corners, weights = self._carriers(own, part, hold, mine)
            at = np.einsum("ij,ijk->ik", weights, x[corners])
            behind = (points[hold.held] - at) @ self._forward
            stiffness, most = (values[hold.held] for values in self._law(own))
            self.force -= np.clip(stiffness * behind, 0.0, most).sum() * self._forward
            slips = (behind > most / stiffness) & held[hold.held]
            slipped[np.flatnonzero(hold.held)[slips]] = True
            if slips.any():
                aim = points[slipped] - (most / stiffness)[slips][:, None] * self._forward
                anchors[slipped] = to_rest(aim, *shapes)
        new = inside & ~held
        if new.any():
            anchors[new] = to_rest(points[new], *shapes)
        opened, lines = hold.opened, None
        if slipped.any():
            edge = own.complex.edge
            lead = self._lead(own)
            if opened is None:
                opened = to_rest(points - _BEHIND * edge * self._forward, *shapes)
            moving = slipped | ~inside
            reached = opened.copy()
            reached[moving] = to_rest(points[moving] + lead * self._forward, *shapes)
            lines = opened, reached
            opened = reached
        if not inside.any():  # it has left
            return None, lines
        return Hold(anchors, inside, opened), lines

    def _lead(self, own: CutBody) -> float:
        """How far ahead of the edge a body opens [m]."""
        return _AHEAD * own.complex.edge if self.blade.lead is None else self.blade.lead

    def _near(self, own: CutBody, part: int, points: np.ndarray, x: np.ndarray) -> np.ndarray:
        """(k, 3 or 4) the elements of a part that are near the edge where everything is now."""
        mine, reach = own.simplices_of(part), _NEAR * own.complex.edge + self._lead(own)
        return mine[simplices_near(points.min(axis=0) - reach, points.max(axis=0) + reach, x, mine)]

    def _carriers(self, own: CutBody, part: int, hold: Hold, near: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Corners (h, 4) of the elements that have the anchors held, of those near or of all, and weights (h, 4)."""
        anchors, mine = hold.anchors[hold.held], near
        found, weights = locate(anchors, own.complex.rest, mine, _INSIDE)
        if (found < 0).any():
            mine = own.simplices_of(part)
            found, weights = locate(anchors, own.complex.rest, mine, np.inf)
        corners = mine[found]
        if corners.shape[1] == 3:
            corners = np.column_stack([corners, corners[:, 0]])
            weights = np.column_stack([weights, np.zeros(len(weights))])
        return corners, weights


def _divided(line: np.ndarray, spacing: float) -> np.ndarray:
    """A polyline with points at most so far apart [m]."""
    parts = []
    for a, b in itertools.pairwise(line):
        n = max(1, int(np.ceil(np.linalg.norm(b - a) / spacing)))
        parts.append(a + np.arange(n)[:, None] / n * (b - a))
    return np.concatenate([*parts, line[-1:]])


def _shares(line: np.ndarray) -> np.ndarray:
    """(m,) half of the segments at each point [m]."""
    half = 0.5 * np.linalg.norm(np.diff(line, axis=0), axis=1)
    return np.concatenate([half, [0.0]]) + np.concatenate([[0.0], half])


def _rigid(rest: np.ndarray, now: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rotation and the move that bring points nearest to others (Kabsch 1976)."""
    middle, centre = rest.mean(axis=0), now.mean(axis=0)
    u, _, v = np.linalg.svd((now - centre).T @ (rest - middle))
    turn = u @ np.diag([1.0, 1.0, np.sign(np.linalg.det(u @ v))]) @ v
    return turn, centre - turn @ middle


@wp.kernel
def _write(
    first: int,
    begin: int,
    body: int,
    along: wp.vec3d,
    free: wp.array[int],
    dofs: wp.array[wp.vec4i],
    weights: wp.array[wp.vec4d],
    aims: wp.array[wp.vec3d],
    guides: wp.array[wp.vec4d],
    rows: RowArrays,
):
    i = first + wp.tid()
    r = begin + i
    names = rows.dofs[r]
    values = rows.weights[r]
    bound = wp.float64(0.0)
    for k in range(16):
        names[k] = 0
        values[k] = wp.float64(0.0)
    for k in range(4):
        names[k] = dofs[i][k]
        values[k] = weights[i][k]
        if free[names[k]] == 1:
            bound += wp.abs(values[k])
    rows.dofs[r] = names
    rows.weights[r] = values
    rows.sizes[r] = 4
    rows.bound[r] = bound
    rows.bodies[r] = wp.vec2i(body, body)
    rows.place[r] = -1
    rows.strain[r] = wp.vec3d()
    rows.law[r] = wp.vec2d()
    rows.normal[r] = along
    rows.aim[r] = aims[i]
    rows.guide[r] = guides[i]
