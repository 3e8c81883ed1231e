"""A hand that holds a needle: the same fast loop, and tissue in the place of the slow one.

Question: what does a hand feel that pushes a needle into tissue and draws it out, a thousand times a second?
Method:   the base of the needle is a part that can go along its direction and turn about it; across, the coupling is a
          guide. In every slow tick the tissue makes one step with the base where the fast loop has it then, and the
          force of the tissue is the load that pushes the base until the next. Forces that change at once, as when a
          membrane is punctured, come within `most_change`, and the base with them.
Sound:    what a device told before a slow tick is what that step of the tissue begins with: no frame is waited for.
Known as: multi-rate haptic needle insertion (DiMaio and Salcudean 2003); first-order hold is not used, because a line
          through the last forces is farther from the truth than the last force where friction reverses.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tangere.hand.coupling import ContactRowSet
from tangere.hand.devices.device import Device
from tangere.hand.stepped_hand import SteppedHand
from tangere.needle import Simulation as NeedleSimulation
from tangere.query.contacts import Contacts
from tangere.runtime import NonCopyable, check_kind

#: How far the base may go between two steps of the tissue [m].
MOST_WAY = 0.02
#: Along z and about it.
ALONG = (False, False, True, False, False, True)


class NeedleHand(SteppedHand):
    """A device that holds the base of a needle, and feels the tissue. Everything else is as with `Hand`.

    Args:
        simulation: needle and tissue; its step is that of the slow loop.
        device: what the hand holds.
        options: of the coupling and the fast loop, as with `Hand`: stiffness, damping, most_force, tank, …

    Example:
        >>> import numpy as np
        >>> from tangere.hand import NeedleHand, SimulatedDevice
        >>> from tangere.needle import Needle, Simulation, Tissue
        >>> from tangere.shape.tets import solid_block
        >>> from tangere.soft import Body
        >>> block = solid_block((4, 4, 4), size=(0.08, 0.08, 0.06), mirrored=True)
        >>> body = Body(block, youngs_modulus=1e4, damping=20.0, fixed=block.vertices[:, 2] < -0.029)
        >>> start = {"entry": [0.001, 0.001, 0.03], "direction": [0, 0, -1]}
        >>> simulation = Simulation(body, Needle(rigid=True), Tissue(), dt=0.01, device="cpu", **start)
        >>> def push(time):
        ...     pose = np.eye(4)
        ...     pose[2, 3] = -0.03 * time
        ...     return pose
        >>> hand = NeedleHand(simulation, SimulatedDevice(push))
        >>> hand.run(0.6)
        >>> bool(hand.simulation.inside), bool(hand.force[2] > 0.3)
        (True, True)
    """

    def __init__(self, simulation: NeedleSimulation, device: Device, **options: Any) -> None:
        check_kind(simulation, NeedleSimulation, "simulation")
        self.simulation = simulation
        super().__init__(
            NeedleSteps(simulation), device, simulation.soft.dt, ALONG, simulation.needle.radius, **options
        )

    def __repr__(self) -> str:
        device = type(self.device).__name__
        return f"NeedleHand({self.simulation!r} by {device}; {self.fast_rate:g} and {self.slow_rate:g} Hz)"

    @property
    def name(self) -> str:
        """Of what is held."""
        return "needle"

    @property
    def computes_on(self) -> str:
        """The device of the tissue: "cpu", "cuda:0", …"""
        return str(self.simulation.soft.device)


class NeedleSteps(NonCopyable):
    """Steps of needle and tissue as a slow loop, in a frame whose z axis is the needle's direction."""

    asked = stopped = 0  # nothing is walked: tissue yields

    def __init__(self, simulation: NeedleSimulation) -> None:
        self.simulation, self.grip = simulation, np.zeros(3)
        self.security = simulation.soft.distance
        nodes = simulation.nodes
        ahead = (nodes[-1] - nodes[0]) / np.linalg.norm(nodes[-1] - nodes[0])
        side = np.cross(ahead, np.eye(3)[np.argmin(np.abs(ahead))])
        side /= np.linalg.norm(side)
        self.frame = np.stack([side, np.cross(ahead, side), ahead], axis=1)  #: its axes as columns
        self._base = nodes[0]
        self.start = self.frame.T @ self._base  #: of the base, in the frame
        self._place, self._rotation, self._roll = self.start, np.eye(3), 0.0

    @property
    def pose(self) -> np.ndarray:
        """(4, 4) of the needle's base in the last step: z looks along the needle."""
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = self.frame @ self._rotation, self.frame @ self._place
        return pose

    @property
    def contacts(self) -> Contacts:
        """What is near the needle; see `tangere.needle`."""
        return self.simulation.contacts

    @property
    def clearance(self) -> float:
        """Gap to the nearest of these [m]."""
        gaps = self.contacts.gap
        return float(gaps.min()) if len(gaps) else np.inf

    def look(self, proxy: np.ndarray) -> ContactRowSet:
        """One step of the tissue with the base where the fast loop has it."""
        place, rotation = proxy[1:4].copy(), proxy[4:13].reshape(3, 3).copy()
        turned = rotation @ self._rotation.T
        roll = self._roll + float(np.arctan2(turned[1, 0] - turned[0, 1], turned[0, 0] + turned[1, 1]))
        base = self._base + (place[2] - self.start[2]) * self.frame[:, 2]
        self.simulation.move(base, roll=roll)
        self._place, self._rotation, self._roll = place, rotation, roll
        return self.rows()

    def rows(self) -> ContactRowSet:
        """No contact holds the base, the tissue pushes it."""
        load = np.zeros(6)
        load[2] = self.simulation.force @ self.frame[:, 2]
        return ContactRowSet(self._place, self._rotation, np.zeros((0, 6)), np.zeros(0), MOST_WAY, load=load)
