"""A page that shows a world of rigid bodies while it runs, and lets a person take hold of its parts.

A click on a body takes hold of the point under the mouse; the arrows that appear there pull it until it is let go. Red
arrows are the forces of contacts. Bodies move as wholes: their meshes go to the browser once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tangere.dynamics import World, force_arrows, size_of
from tangere.motion import quaternions_of
from tangere.runtime import three_numbers
from tangere.view.live_pages.simulation_viewer import SimulationViewer

#: How far a body that hangs from the hand sags, as a part of the size of the scene.
_SAG = 0.02
_GLASS = 0.65  #: opacity of what moves


class WorldViewer(SimulationViewer):
    """A page of one world. Use it as a context manager; `run` makes the steps."""

    def __init__(self, world: World, *, host: str = "127.0.0.1", port: int | None = None) -> None:
        poses, scene = world.poses, replace(world.scene(forces=False), title="tangere world")
        self._names, self._size = [thing.name for thing in scene.things], size_of(world.bodies, poses)
        self._homes = np.linalg.inv(poses)
        self._start = world.checkpoint()
        self._hand: Any = None
        self._taken: tuple[int, np.ndarray] | None = None
        self._arrows: np.ndarray | None = None  #: vertices of the arrows on the page
        super().__init__(world, scene, host=host, port=port)
        self._see_through()
        for number, body in enumerate(world.bodies):
            if body.moves:
                self.body(self._names[number]).on_click(lambda event, body=number: self._on_click(body, event))

    @property
    def taken(self) -> int | None:
        """The number of the body that a person holds."""
        return None if self._taken is None else self._taken[0]

    def hold(self, body: int, point: Any) -> None:
        """Take hold of a body at a point, (3,) in the world [m]: where the arrows there are dragged it is pulled."""
        with self._lock:
            self.let_go()
            pose, place = self.simulation[body].pose, three_numbers(point, "point")
            local = pose[:3, :3].T @ (place - pose[:3, 3])
            self._pull(body, local, place)  # refuses what cannot be pulled, and then nothing is held
            self._taken = body, local
            self._hand = self.server.scene.add_transform_controls(
                "/hand", 0.2 * self._size, disable_rotations=True, depth_test=False, position=tuple(place)
            )
            self._hand.on_update(lambda event: self.drag(event.target.position))

    def drag(self, to: Any) -> None:
        """Pull what is held towards a point [m]."""
        with self._lock:
            if self._taken is not None:
                self._pull(*self._taken, to)

    def _pull(self, number: int, local: np.ndarray, to: Any) -> None:
        """Pull a point in the frame of a body's mesh towards a place."""
        body = self.simulation[number]
        pose = body.pose
        weight = float(np.linalg.norm(self.simulation.gravity)) or 1.0
        stiffness = float(body.body.mass) * max(100.0, weight / (_SAG * self._size))
        body.pull(pose[:3, :3] @ local + pose[:3, 3], to, stiffness=stiffness)

    def let_go(self) -> None:
        """Hold nothing."""
        with self._lock:
            self._taken = None
            self.simulation.let_go()
            if self._hand is not None:
                self._hand.remove()
                self._hand = None

    def restart(self) -> None:
        """Put everything back to where it was when the page was opened."""
        with self._lock:
            self.let_go()
            self.simulation.resume(self._start)
            self.show()

    def show(self) -> None:
        """Draw the world as it is now."""
        with self._lock:
            moved = self.simulation.poses @ self._homes
            turns = quaternions_of(moved[:, :3, :3])
            for name, pose, turn, body in zip(self._names, moved, turns, self.simulation.bodies, strict=True):
                if not body.fixed:
                    handle = self.body(name)
                    handle.position, handle.wxyz = tuple(pose[:3, 3]), tuple(turn)
            self._draw_forces()
            self._text.content = self.summary()

    def summary(self) -> str:
        """The text of the panel, in Markdown."""
        world = self.simulation
        taken = 1e3 * sum(world.timings.values())
        lines = [f"t = {world.time:.2f} s", f"{len(world.contacts)} contacts", f"step {taken:.1f} ms"]
        lines.append(f"{int(world.asleep.sum())} of {sum(body.moves for body in world.bodies)} asleep")
        if world.truncation.all_bodies:
            lines.append(f"held back: {world.truncation.all_bodies} times")
        if self._taken is not None:
            lines.append(f"holding {world.bodies[self._taken[0]].name}")
        return "  \n".join(lines)

    def _add_own_controls(self, gui: Any) -> None:
        gui.add_button("One step").on_click(lambda _: self._single.set())
        gui.add_button("Let go").on_click(lambda _: self.let_go())
        gui.add_button("Restart").on_click(lambda _: self.restart())
        super()._add_own_controls(gui)
        with gui.add_folder("Show"):
            self._shown = gui.add_checkbox("forces", True)
            self._shown.on_update(lambda _: self.show())
            self._glass = gui.add_checkbox("see through", True)  # most forces act inside of what they push
            self._glass.on_update(lambda _: self._see_through())

    def _see_through(self) -> None:
        """Whether bodies that move hide the forces behind them."""
        for name, body in zip(self._names, self.simulation.bodies, strict=True):
            if body.moves:
                self.body(name).opacity = _GLASS if self._glass.value else None

    def _on_click(self, body: int, event: Any) -> None:
        """Take the point where the ray of the click meets the body."""
        with self._lock:
            mesh = self.simulation[body].mesh
        origin, direction = np.asarray(event.ray_origin, float), np.asarray(event.ray_direction, float)
        self.hold(body, first_on_ray(mesh.vertices[mesh.faces], origin, direction))

    def _draw_forces(self) -> None:
        """Arrows that are others than those on the page take their place there: what is removed and added flickers."""
        drawn = force_arrows(self.simulation) if self._shown.value else None
        points = None if drawn is None else drawn.mesh.vertices.astype(np.float32)
        before, self._arrows = self._arrows, points
        if drawn is None or points is None:
            if before is not None:
                self._drawn.pop("forces").remove()
        elif before is None or before.shape != points.shape:
            colour = tuple(round(255 * c) for c in drawn.colour)
            self._drawn["forces"] = self.server.scene.add_mesh_simple("/forces", points, drawn.mesh.faces, color=colour)
        elif not np.array_equal(before, points):
            self._drawn["forces"].vertices = points


def first_on_ray(triangles: np.ndarray, origin: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Where a ray first meets triangles (n, 3, 3), or the corner nearest to it (3,) [m]."""
    a, u, v = triangles[:, 0], triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]
    across = np.cross(direction, v)
    area = np.einsum("ni,ni->n", u, across)
    with np.errstate(divide="ignore", invalid="ignore"):
        offset = origin - a
        first = np.einsum("ni,ni->n", offset, across) / area
        turned = np.cross(offset, u)
        second = turned @ direction / area
        along = np.einsum("ni,ni->n", v, turned) / area
        met = (first >= 0.0) & (second >= 0.0) & (first + second <= 1.0) & (along > 0.0)
    if met.any():
        return origin + along[met].min() * direction
    corners = triangles.reshape(-1, 3)
    ahead = (corners - origin) @ direction / (direction @ direction)
    return corners[np.argmin(np.linalg.norm(corners - origin - ahead[:, None] * direction, axis=1))]
