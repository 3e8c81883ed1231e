"""A hand that holds a tool or a blade among soft bodies: it pushes them, cuts them, and feels both.

Question: what does a hand feel a thousand times a second of bodies that make a hundred steps in it?
Method:   in every slow tick the bodies make one step in which the tool goes to where the fast loop has it. The force of
          its contacts, and of its edge if it is a blade, is the load at the place that it has reached. Until the next
          step that load is a spring: its stiffness, axis by axis, is what the last steps have shown, the change of the
          force by the way of the tool (a diagonal secant). What an edge cuts pushes with no more than its toughness
          times its length, whatever the spring says.
Sound:    where the tool is shown, the bodies have let it: it passes through nothing that can yield. A step that fails
          is as if it had not been, and the tool waits for the next (`why_stopped`).
Known as: a local model renewed at each step (Cavusoglu and Tendick 2000); the weak secant of diagonal quasi-Newton
          methods (Zhu, Nazareth and Wolkowicz 1999).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tangere.hand.coupling import ContactRowSet
from tangere.hand.devices.device import ALL_AXES, Device, checked_axes
from tangere.hand.devices.handle_motion import rigid_motion, vector_of_turn
from tangere.hand.stepped_hand import SteppedHand
from tangere.query.contacts import Contacts
from tangere.runtime import InputError, NonCopyable, TangereError, check_kind, positive, three_numbers
from tangere.soft import Blade
from tangere.soft import Simulation as SoftSimulation

#: Of the size of the tool: how far it may go between two steps.
MOST_WAY = 0.1
#: Of the contact distance: the way of a step that tells something about stiffness; radians are ways at the radius.
TELLING = 1e-3
#: What is left at least, after a step, of a stiffness that was seen: what seemed soft for once may be stiff again.
KEPT_STIFFNESS = 0.7
#: Times the stiffness of the coupling: what is called stiffness at most.
STIFFEST = 50.0


class ToolHand(SteppedHand):
    """A device that holds a tool of a `soft.Simulation`, and feels what it pushes and cuts. Else as with `Hand`.

    A tool is a body that is fixed as a whole, or a `Blade`. The hand drives it: whatever drove it before does so no
    more.

    Args:
        simulation: bodies and tool; its step is that of the slow loop.
        tool: the body, by number or name; a blade itself, or its force turns the hand as if it acted at the grip.
        device: what the hand holds.
        grip: the point of the tool that follows the device, (3,) where it is at the start [m]; None means its middle.
        most_way: how far the tool may go in a step [m]; None means a tenth of its size.
        free_axes: six truth values, x y z and the turns about them: the others are a guide's, which the hand feels.
        most_change: how fast the force may change where the tool's own motion changes it [N/s].
        options: of the coupling and the fast loop, as with `Hand`: damping, most_force, tank, …

    Example:
        >>> import numpy as np, tangere as tg
        >>> from tangere.shape.tets import solid_block
        >>> from tangere.soft import Body, Simulation
        >>> block = solid_block((4, 4, 4), size=(0.1, 0.1, 0.1))
        >>> held = block.vertices[:, 2] < -0.049
        >>> ball = tg.generate.icosphere(subdivisions=2)
        >>> ball = ball.replace(vertices=0.02 * ball.vertices + [0.0, 0.0, 0.08])
        >>> bodies = [Body(block, youngs_modulus=1e4, fixed=held), Body(ball, fixed=True, name="ball")]
        >>> simulation = Simulation(bodies, dt=0.01, gravity=(0, 0, 0), device="cpu")
        >>> def press(time):
        ...     pose = np.eye(4)
        ...     pose[2, 3] = -0.04 * min(time, 0.5)
        ...     return pose
        >>> hand = tg.hand.ToolHand(simulation, "ball", tg.hand.SimulatedDevice(press))
        >>> hand.run(0.6)
        >>> bool(hand.force[2] > 0.5), hand.report.passive
        (True, True)
    """

    def __init__(
        self,
        simulation: SoftSimulation,
        tool: int | str | Blade,
        device: Device,
        *,
        grip: Any = None,
        most_way: float | None = None,
        free_axes: Sequence[bool] = ALL_AXES,
        stiffness: float = 2000.0,
        most_change: float = 250.0,
        **options: Any,
    ) -> None:
        check_kind(simulation, SoftSimulation, "simulation")
        self.simulation = simulation
        blade = tool if isinstance(tool, Blade) else None
        held = simulation[str(tool.name) if isinstance(tool, Blade) else tool]
        if not held.body.is_obstacle:
            raise InputError(f"body {held.number} ({held.name!r}) deforms: a hand holds tools, bodies that are fixed")
        self.body = held.number  #: the tool, by number
        points = held.positions
        middle = 0.5 * (points.min(axis=0) + points.max(axis=0)) if grip is None else three_numbers(grip, "grip")
        size = float(np.ptp(points, axis=0).max())
        way = MOST_WAY * size if most_way is None else positive(most_way, "most_way")
        steps = ToolSteps(
            simulation, self.body, np.asarray(middle, float), blade, way, positive(stiffness, "stiffness")
        )
        super().__init__(
            steps, device, simulation.dt, checked_axes(free_axes), steps.radius, stiffness=stiffness,
            most_change=most_change, **options,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"ToolHand({self.name!r} by {type(self.device).__name__}; {self.fast_rate:g} and {self.slow_rate:g} Hz)"

    @property
    def name(self) -> str:
        """Of what is held."""
        return self.simulation[self.body].name

    @property
    def computes_on(self) -> str:
        """The device of the bodies: "cpu", "cuda:0", …"""
        return str(self.simulation.device)

    @property
    def load(self) -> np.ndarray:
        """(6,) what the bodies do to the tool at its grip, by the last step [N], [N m]."""
        return self._slow.load.copy()

    @property
    def load_stiffness(self) -> np.ndarray:
        """(6,) how much less that is for each way from there [N/m], [N m/rad]."""
        return self._slow.stiffness.copy()

    @property
    def why_stopped(self) -> str | None:
        """Why the last step was not made; None if it was."""
        return self._slow.why_stopped


class ToolSteps(NonCopyable):
    """Steps of soft bodies as a slow loop of the tool among them.

    Args:
        number: of the tool.
        grip: (3,) where it is held, at the start [m].
        blade: what the tool is, where it cuts.
        most_way: of the tool in a step [m].
        coupling: stiffness of the coupling [N/m].
    """

    asked = 0

    def __init__(
        self,
        simulation: SoftSimulation,
        number: int,
        grip: np.ndarray,
        blade: Blade | None,
        most_way: float,
        coupling: float,
    ) -> None:
        self.simulation, self.number, self.grip, self._blade = simulation, number, grip, blade
        self.frame, self.start, self.security = np.eye(3), grip, simulation.distance
        self._rest = simulation[number].positions
        self.radius = max(float(np.linalg.norm(self._rest - grip, axis=1).max()), 1e-9)
        self._most_way, self._stiffest = most_way, STIFFEST * coupling
        self._pose = np.eye(4)
        self.load, self.stiffness, self._most_load = np.zeros(6), np.zeros(6), np.inf
        self.stopped, self.why_stopped = 0, None

    @property
    def pose(self) -> np.ndarray:
        """(4, 4) of the tool, from where it was at the start."""
        return self._pose.copy()

    @property
    def contacts(self) -> Contacts:
        """Of the tool with the bodies, in the last step; the tool is the first or the second body of each."""
        found = self.simulation.contacts
        return found[(found.body_a == self.number) | (found.body_b == self.number)]

    @property
    def clearance(self) -> float:
        """Gap to the nearest of these [m]."""
        gaps = self.contacts.gap
        return float(gaps.min()) if len(gaps) else np.inf

    def look(self, proxy: np.ndarray) -> ContactRowSet:
        """One step of the bodies in which the tool goes to where the fast loop has it."""
        simulation, tool = self.simulation, self.simulation[self.number]
        goal = np.eye(4)
        goal[:3, :3] = proxy[4:13].reshape(3, 3)
        goal[:3, 3] = proxy[1:4] - goal[:3, :3] @ self.grip
        wanted = self._rest @ goal[:3, :3].T + goal[:3, 3]
        tool.drive((wanted - tool.positions) / simulation.dt)
        try:
            simulation.step()
        except TangereError as error:
            self.stopped, self.why_stopped = self.stopped + 1, str(error)
            return self.rows()
        self.why_stopped = None
        now = tool.positions
        if np.abs(now - wanted).max() > TELLING * self.security:
            self.stopped += 1
            turn, move = rigid_motion(self._rest, now)
            goal[:3, :3], goal[:3, 3] = turn, move
        self._learn(goal)
        return self.rows()

    def rows(self) -> ContactRowSet:
        """No contact holds the tool, the bodies push it."""
        pose = self._pose
        grip = pose[:3, :3] @ self.grip + pose[:3, 3]
        return ContactRowSet(
            grip, pose[:3, :3].copy(), np.zeros((0, 6)), np.zeros(0), self._most_way,
            load=self.load.copy(), load_stiffness=self.stiffness.copy(), most_load=self._most_load,
        )  # fmt: skip

    def _learn(self, goal: np.ndarray) -> None:
        """The tool is there now: what pushes it, and how stiff is that?"""
        before, load = self._pose, self.load
        self._pose = goal
        self.load, self._most_load = self._felt()
        middle = [pose[:3, :3] @ self.grip + pose[:3, 3] for pose in (before, goal)]
        way = np.concatenate([middle[1] - middle[0], vector_of_turn(goal[:3, :3] @ before[:3, :3].T)])
        for part, lever in ((slice(0, 3), 1.0), (slice(3, 6), self.radius)):
            if not self.load[part].any():
                self.stiffness[part] = 0.0
            elif lever * np.linalg.norm(way[part]) > TELLING * self.security:
                known = KEPT_STIFFNESS * self.stiffness[part]
                seen = secant(self.stiffness[part], way[part], load[part] - self.load[part])
                self.stiffness[part] = np.clip(np.maximum(seen, known), 0.0, self._stiffest * lever**2)

    def _felt(self) -> tuple[np.ndarray, float]:
        """(6,) what the bodies do to the tool, about its grip; and the most that it can be, for a blade [N]."""
        simulation, number = self.simulation, self.number
        found, forces = simulation.contacts, simulation.contact_forces
        sign = (found.body_a == number).astype(float) - (found.body_b == number)
        mine = np.flatnonzero(sign)
        force = sign[mine, None] * forces[mine]
        points = np.where(sign[mine, None] > 0.0, found.point_a[mine], found.point_b[mine])
        grip = self._pose[:3, :3] @ self.grip + self._pose[:3, 3]
        load = np.zeros(6)
        load[:3], load[3:] = force.sum(axis=0), np.cross(points - grip, force).sum(axis=0)
        if self._blade is None:
            load[:3] = simulation[number].force
            return load, np.inf
        flanks = float(np.linalg.norm(load[:3]))
        edge = simulation[number].force - load[:3]
        middle = self._pose[:3, :3] @ self._blade.edge_points.mean(axis=0) + self._pose[:3, 3]
        load[:3] += edge
        load[3:] += np.cross(middle - grip, edge)
        return load, flanks + self._blade.toughness * self._blade.length


def secant(stiffness: np.ndarray, way: np.ndarray, less: np.ndarray) -> np.ndarray:
    """The diagonal (n,) nearest to one that is known by which a way (n,) makes a force less, along it, as it did."""
    square = way * way
    return stiffness + (way @ less - stiffness @ square) / float(square @ square) * square
