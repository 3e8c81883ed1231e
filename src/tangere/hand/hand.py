"""A hand that holds a part: a fast loop that feels, a slow loop that knows.

    fast   1 kHz        device -> coupling -> projection on the contacts -> force              (`coupling`)
    slow   50 to 300 Hz certified walk to where the fast loop has the part -> contacts there   (`slow_loop`)

Both are functions of a time that is given to them: in lockstep on a virtual clock every run is the same to the last
bit; a pacer calls them when it is time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from tangere.dynamics import World
from tangere.hand.coupling import FADING, TANK, ContactRowSet, FastLoop, ForceLaw, Metaphor, coupling_settings
from tangere.hand.coupling.fast_tick import CLUTCHED, HOLDING
from tangere.hand.devices.device import Device, check_device
from tangere.hand.report import HandReport
from tangere.hand.slow_loop import SlowLoop
from tangere.motion import as_poses
from tangere.query.contacts import Contacts
from tangere.runtime import InputError, NonCopyable, check_kind, not_negative, positive, three_numbers, whole

#: Security distances within which contacts become rows, and sizes of the part at most.
REACH, MOST_REACH = 10.0, 0.05


class Pacer(Protocol):
    """What calls a hand's ticks in real time."""

    late: int  #: ticks that came too late, so far
    lateness: float  #: the largest [s]

    def run(
        self,
        fast: Callable[[float], object],
        slow: Callable[[float], object],
        seconds: float,
        *,
        fast_rate: float,
        slow_rate: float,
    ) -> None:
        """Call `fast(time)` and `slow(time)` at their rates [1/s] for so long."""
        ...


class Hand(NonCopyable, instead="make another one of another world"):
    """A device that holds a rigid part of a world, and feels what it touches.

    All other bodies stand where they are. The part never passes through them: `pose`, which is what pictures show and
    where the world has it, was reached by a certified motion. It slides without friction.

    Args:
        world: where the part is.
        body: the part, by number or name.
        device: what the hand holds; see `tangere.hand.devices`.
        stiffness: of the coupling [N/m].
        damping: of the coupling [N s/m]; None means 2 ms times the stiffness.
        turn_stiffness: against turning [N m/rad]; None means the stiffness times 0.001 m^2.
        turn_damping: [N m s/rad]; None means 2 ms times the stiffness against turning.
        mass: of the part as the coupling sees it [kg]; 0 is a world without inertia, where the part goes where the
            coupling pulls it and no farther.
        metaphor: "spring", the part is tied to the device; "incremental", it makes the device's motions.
        law: of the force: "coupling", a spring and a damper between device and part (6.4); "drag", the damper
            is on the device, also where nothing touches (6.5).
        scale: of the device's ways: 0.1 for fine work. Forces are scaled alike, so that work stays work.
        grip: the point of the part that follows the device, (3,) in the mesh's frame [m]; None means its middle.
        separation: how far contacts are kept apart [m]; None means the world's.
        reach: within which distance contacts are looked for, at least [m]; None means ten separations.
        most_reach: and at most, when the part is fast [m]; None means a twentieth of the size of the part.
        most_force: on the device [N]; None means any.
        most_change: how fast the force may change where the part's own motion changes it, as when it slips off an edge
            [N/s]; the part goes more slowly then.
        slow_rate, fast_rate: of the loops [1/s].
        tank: energy that the hand may be given more than it has put in [J]; None switches the tank off, and energy is
            only observed.
        fading: how long forces take to come and go when the part is taken and let go [s].
        most_jump: way of the device in one fast tick [m], and ten times that in radians, beyond which it is lost.
        delay: how long a force takes until the device pushes with it, as far as it is known [s]; energy is counted by
            it. Without it a loop of a stiff coupling cannot see what a late force gives.
        clutch_buttons: bits of the device's buttons that let go of the part while they are held.
        threads: CPU threads of the slow loop; None means all, or TANGERE_THREADS.

    Example:
        >>> import numpy as np, tangere as tg
        >>> from tangere.dynamics import Body, World
        >>> box, above = tg.generate.box((0.1, 0.1, 0.1)), np.eye(4)
        >>> above[2, 3] = 0.11
        >>> world = World([Body(box, name="table", fixed=True), Body(box, above, name="cube")], device="cpu")
        >>> def press(time):
        ...     pose = above.copy()
        ...     pose[2, 3] -= 0.03 * min(time, 1.0)
        ...     return pose
        >>> hand = tg.hand.Hand(world, "cube", tg.hand.SimulatedDevice(press))
        >>> hand.run(2.0)
        >>> print(f"{hand.pose[2, 3]:.3f} m, {hand.force[2]:.1f} N, passive: {hand.report.passive}")
        0.100 m, 6.7 N, passive: True
    """

    def __init__(
        self,
        world: World,
        body: int | str,
        device: Device,
        *,
        stiffness: float = 2000.0,
        damping: float | None = None,
        turn_stiffness: float | None = None,
        turn_damping: float | None = None,
        mass: float = 0.0,
        metaphor: Metaphor = "spring",
        law: ForceLaw = "coupling",
        scale: float = 1.0,
        grip: Any = None,
        separation: float | None = None,
        reach: float | None = None,
        most_reach: float | None = None,
        most_force: float | None = None,
        most_change: float = 300.0,
        slow_rate: float = 200.0,
        fast_rate: float = 1000.0,
        tank: float | None = TANK,
        fading: float = FADING,
        most_jump: float = 0.1,
        delay: float = 0.0,
        clutch_buttons: int = 1,
        threads: int | None = None,
    ) -> None:
        check_kind(world, World, "world")
        check_device(device)
        self.world, self.device = world, device
        self.body = world[body].number  #: the part, by number
        self.fast_rate, self.slow_rate = positive(fast_rate, "fast_rate"), positive(slow_rate, "slow_rate")
        per_look = round(self.fast_rate / self.slow_rate)
        if per_look < 1 or abs(per_look * self.slow_rate - self.fast_rate) > 1e-6 * self.fast_rate:
            raise InputError(
                f"fast_rate must be a multiple of slow_rate, but {fast_rate:g} is not one of {slow_rate:g}"
            )
        self._per_look = per_look
        mesh = world.bodies[self.body].mesh
        point = mesh.bounds.mean(axis=0) if grip is None else three_numbers(grip, "grip")
        security = world.separation if separation is None else positive(separation, "separation")
        nearest = REACH * security if reach is None else positive(reach, "reach")
        if nearest <= security:
            raise InputError(f"reach must be more than the separation, {security:g} m, not {nearest:g}")
        size = MOST_REACH * float(np.ptp(mesh.bounds, axis=0).max())
        farthest = max(nearest, size) if most_reach is None else positive(most_reach, "most_reach")
        self._slow = SlowLoop(
            world, self.body, point, security=security, reach=nearest, most_reach=max(farthest, nearest),
            threads=threads,
        )  # fmt: skip
        held = world.bodies[self.body]
        settings = coupling_settings(
            self.fast_rate, device.forced_axes, ~held.held | held.driven, self._slow.radius, stiffness=stiffness,
            damping=damping, turn_stiffness=turn_stiffness, turn_damping=turn_damping, mass=mass, metaphor=metaphor,
            law=law, scale=scale, most_force=most_force, most_change=most_change, tank=tank, fading=fading,
            most_jump=most_jump, delay=delay, security=security,
        )  # fmt: skip
        pose = self._slow.pose
        self._fast = FastLoop(
            device,
            settings,
            pose[:3, :3] @ point + pose[:3, 3],
            pose[:3, :3],
            level=np.inf if tank is None else not_negative(tank, "tank"),
            ticks_per_look=per_look,
            clutch_buttons=whole(clutch_buttons, "clutch_buttons"),
        )
        self._fast.put(self._slow.rows())
        self._slow_ticks = 0
        self._pacer: Pacer | None = None

    def __repr__(self) -> str:
        return f"Hand({self.name!r} by {type(self.device).__name__}; {self.fast_rate:g} and {self.slow_rate:g} Hz)"

    @property
    def name(self) -> str:
        """Of what is held."""
        return str(self.world.bodies[self.body].name)

    @property
    def computes_on(self) -> str:
        """The device of the slow loop: "cpu", "cuda:0", …"""
        return str(self.world.device)

    # -- ticks ---------------------------------------------------------------------------------------------------------

    def fast_tick(self, time: float) -> None:
        """Read the device, let the coupling move the part along the contacts that are known, and write the force."""
        self._fast.tick(time)

    def slow_tick(self, time: float) -> None:
        """Take the part to where the fast loop has it, as far as it can go, and look what is near it there."""
        self._fast.put(self._slow.look(self._fast.proxy))
        self._slow_ticks += 1

    def run(
        self,
        seconds: float,
        *,
        pacer: Pacer | None = None,
        after_tick: Callable[[float], object] | None = None,
    ) -> None:
        """Hold the part for so long.

        Args:
            seconds: how long [s].
            pacer: calls the ticks when it is time; None means one after the other on a virtual clock, as fast as they
                go: the same device gives the same bits.
            after_tick: called with the time after each fast tick, on the virtual clock only.
        """
        length = positive(seconds, "seconds")
        try:
            self._run(length, pacer, after_tick)
        except BaseException:  # nobody ticks any more: the last force must not stay
            self._fast.release()
            raise

    def _run(self, length: float, pacer: Pacer | None, after_tick: Callable[[float], object] | None) -> None:
        if pacer is not None:
            self._pacer = pacer
            pacer.run(self.fast_tick, self.slow_tick, length, fast_rate=self.fast_rate, slow_rate=self.slow_rate)
            return
        begin = self._fast.ticks
        for number in range(begin + 1, begin + round(length * self.fast_rate) + 1):
            time = number / self.fast_rate
            self.fast_tick(time)
            if number % self._per_look == 0:
                self.slow_tick(time)
            if after_tick is not None:
                after_tick(time)

    def place(self, pose: Any) -> None:
        """Put the part elsewhere, at rest; the device takes it there as it is.

        Args:
            pose: (4, 4), where it touches nothing; where it passes through a body that is refused, and it stays.
        """
        there = as_poses(pose, "pose")
        if there.shape != (4, 4):
            raise InputError(f"pose must have shape (4, 4), not {there.shape}")
        self._slow.place(there)
        there = self._slow.pose
        self._fast.place(there[:3, :3] @ self._slow.grip + there[:3, 3], there[:3, :3])
        self._fast.put(self._slow.rows())

    def resume(self) -> None:
        """Hold the part again with a device that was lost and answers now, from where both are."""
        self._fast.resume()

    def close(self) -> None:
        """Let go of the device."""
        self.device.close()

    # -- two processes -------------------------------------------------------------------------------------------------

    @property
    def fast_loop(self) -> FastLoop:
        """The fast loop, for who runs one like it in another process (`real_time`)."""
        return self._fast

    def device_maker(self, make_device: Callable[[], Device]) -> Callable[[], Device]:
        """What gives the device to a fast loop, from what gives it to a user."""
        return make_device

    @property
    def proxy_message(self) -> np.ndarray:
        """(25,) what a slow loop in another process needs to know of this fast one."""
        return self._fast.proxy

    def look(self, proxy_message: np.ndarray) -> np.ndarray:
        """A slow tick for a fast loop in another process, which told where the part is; what to tell it back."""
        self._slow_ticks += 1
        return self._slow.look(np.asarray(proxy_message, float)).packed()

    @property
    def rows_message(self) -> np.ndarray:
        """What a slow loop tells a fast one in another process about where the part is now."""
        return self._slow.rows().packed()

    def put_rows(self, rows_message: np.ndarray) -> None:
        """What a slow loop in another process told."""
        self._fast.put(ContactRowSet.unpacked(rows_message))

    # -- state ---------------------------------------------------------------------------------------------------------

    @property
    def time(self) -> float:
        """Of the last fast tick [s]."""
        return float(self._fast.proxy[0])

    @property
    def pose(self) -> np.ndarray:
        """(4, 4) of the part, certified: what is shown."""
        return self._slow.pose

    @property
    def target(self) -> np.ndarray:
        """(4, 4) where the device wants the part."""
        return self._frame("image")

    @property
    def proxy(self) -> np.ndarray:
        """(4, 4) where the fast loop has the part, which no slow tick has certified yet."""
        return self._frame("grip")

    def _frame(self, name: str) -> np.ndarray:
        frame, pose = self._fast.state[name], np.eye(4)
        pose[:3, :3] = frame["rotation"]
        pose[:3, 3] = frame["position"] - pose[:3, :3] @ self._slow.grip
        return pose

    @property
    def force(self) -> np.ndarray:
        """(3,) on the device [N]."""
        return self._fast.force[:3]

    @property
    def torque(self) -> np.ndarray:
        """(3,) on the device [N m]."""
        return self._fast.force[3:]

    @property
    def contacts(self) -> Contacts:
        """What is within reach of the part, which is the first body of each."""
        return self._slow.contacts

    @property
    def handle(self) -> np.ndarray:
        """(4, 4) of the part at its grip: turned as the part is, with the grip as its origin."""
        frame = self.pose
        frame[:3, 3] += frame[:3, :3] @ self._slow.grip
        return frame

    @property
    def grip(self) -> np.ndarray:
        """(3,) the point of the part that follows the device, in the mesh's frame [m]."""
        return self._slow.grip

    @property
    def separation(self) -> float:
        """How far contacts are kept apart [m]."""
        return self._slow.security

    @property
    def clearance(self) -> float:
        """Distance to the nearest body, or the reach where that is less [m]."""
        return self._slow.clearance

    @property
    def clutch(self) -> bool:
        """True while the clutch is pressed: the device moves freely and the part stays. May be set."""
        return self._fast.clutch or int(self._fast.state["mode"]) == CLUTCHED

    @clutch.setter
    def clutch(self, pressed: bool) -> None:
        self._fast.clutch = bool(pressed)

    @property
    def holding(self) -> bool:
        """Whether the part follows the device now."""
        return int(self._fast.state["mode"]) == HOLDING

    @property
    def report(self) -> HandReport:
        """What there is to tell since the part was taken."""
        state, slow, pacer = self._fast.state, self._slow, self._pacer
        account = state["account"]
        return HandReport(
            fast_ticks=self._fast.ticks,
            slow_ticks=self._slow_ticks,
            given=float(account["given"]),
            most_given=float(account["most_given"]),
            tank=float(account["level"]),
            withheld=float(account["withheld"]),
            limited=int(account["limited"]),
            walks_asked=slow.asked,
            walks_stopped=slow.stopped,
            relaxed=int(state["relaxed"]),
            held_back=int(state["held_back"]),
            late=0 if pacer is None else int(pacer.late),
            lateness=0.0 if pacer is None else float(pacer.lateness),
            lost=self._fast.lost,
        )
