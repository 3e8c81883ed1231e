"""The thesis' parts at the hand: does the slow loop keep up, and what does a fast tick cost?

The motor of a window lifter in its door, a door on its body and a part of a pylon (Redon 2002, chapter 6) touch what
stands round them and are pressed 10 mm against it while they slide to and fro by 20 mm, for two seconds of a virtual
clock: 1 kHz and 200 Hz. One thread; processor time of each tick, without that of the simulated device. The exact test
looks at every tenth certified pose.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from bench.harness import Report, seconds
from tangere.dynamics import Body, World
from tangere.hand import Device, DeviceState, Hand, SimulatedDevice
from tangere.motion import Rest, Twist
from tangere.query.distance import distance
from tangere.query.first_contact import PreparedFirstContact
from tangere.query.intersection import intersects
from tangere.shape import generate
from tangere.shape.generate import PartInPlace
from tangere.shape.mesh import Mesh

__all__ = ["TimedDevice", "touching"]

FEATURES: list[str] = []

PARTS: dict[str, Callable[[], PartInPlace]] = {
    "lifter": generate.window_lifter,
    "door": generate.door_on_body,
    "pylon": generate.pylon_bay,
}


class TimedDevice:
    """A device that keeps how long it took."""

    def __init__(self, device: Device) -> None:
        self.device, self.taken = device, 0.0
        self.measured_axes, self.forced_axes = device.measured_axes, device.forced_axes

    def read(self, now: float) -> DeviceState:
        began = time.thread_time()
        told = self.device.read(now)
        self.taken += time.thread_time() - began
        return told

    def write(self, force: np.ndarray, torque: np.ndarray) -> None:
        began = time.thread_time()
        self.device.write(force, torque)
        self.taken += time.thread_time() - began

    def close(self) -> None:
        self.device.close()


def touching(task: PartInPlace) -> tuple[Mesh, Mesh, np.ndarray, np.ndarray, float]:
    """The part brought to the security distance: part, what stands round it, pose, normal, distance."""
    part, fixed, pose = task.part, task.fixed, np.array(task.free_path[0])
    found = distance(part.moving(Rest(pose)), fixed, device="cpu")
    security = min(2e-4 * fixed.extent, 0.25 * found.lower)
    asked = PreparedFirstContact([part, fixed], device="cpu", threads=1)
    for _ in range(8):
        way = -found.normal * (found.upper + security)
        asked.set(0, pose, way, np.zeros(3))
        hit = asked.first_contact(0, 1, separation=security, tolerance=0.1 * security, start="trusted")
        pose = Twist(pose, way, np.zeros(3)).pose(min(hit.time, 1.0))
        found = distance(part.moving(Rest(pose)), fixed, device="cpu")
        if found.upper < 1.2 * security:
            break
    return part, fixed, pose, found.normal, security


def run(report: Report, quick: bool = False) -> None:
    rows = [_row(name, make, 0.2 if quick else 2.0) for name, make in PARTS.items()]
    columns = ["part", "triangles", "contacts", "fast tick", "99 %", "slow tick", "99 %", "asked for contact"]
    columns += ["walks stopped", "largest change of force in 1 ms", "energy given", "states that intersect"]
    report.table(columns, rows)
    report.note(
        "Asked for: no walk stopped in 400, a slow tick of 5 ms, a fast tick of 150 us at 99 %, no intersection."
    )


def _row(name: str, make: Callable[[], PartInPlace], length: float) -> list[object]:
    part, fixed, start, normal, security = touching(make())
    bodies = [Body(fixed, fixed=True, name="fixed"), Body(part, start, name="part")]
    world = World(bodies, separation=security, device="cpu", threads=1)
    aside = np.cross(normal, [0.3, 0.2, 0.9])
    aside /= np.linalg.norm(aside)

    def path(now: float) -> np.ndarray:
        pose = start.copy()
        pose[:3, 3] += -0.01 * min(now / 0.3, 1.0) * normal + 0.02 * np.sin(np.pi * now) * aside
        return pose

    simulated = SimulatedDevice(path)
    device = TimedDevice(simulated)
    hand = Hand(world, "part", device, reach=6.0 * security, threads=1)
    fast, slow, forces, contacts, meeting = [], [], [], [], 0
    for tick in range(1, round(1000 * length) + 1):
        before, began = device.taken, time.thread_time()
        hand.fast_tick(1e-3 * tick)
        fast.append(time.thread_time() - began - (device.taken - before))
        forces.append(hand.force)
        if tick % 5 == 0:
            began = time.thread_time()
            hand.slow_tick(1e-3 * tick)
            slow.append(time.thread_time() - began)
            contacts.append(len(hand.contacts))
        if tick % 50 == 0:
            meeting += bool(intersects(part.moving(Rest(hand.pose)), fixed, device="cpu"))
    told, change = hand.report, np.linalg.norm(np.diff(forces, axis=0), axis=1).max()
    cells: list[object] = [name, f"{len(part.faces) + len(fixed.faces):,}", f"{np.mean(contacts):.0f}"]
    for taken in (fast, slow):
        cells += [seconds(float(np.mean(taken))), seconds(float(np.percentile(taken, 99)))]
    cells += [f"{told.walks_asked} of {len(slow)}", f"{told.walks_stopped} of {len(slow)}", f"{change:.3f} N"]
    return [*cells, f"{1e3 * simulated.given:+.2f} mJ", f"{meeting} of {round(20 * length)}"]
