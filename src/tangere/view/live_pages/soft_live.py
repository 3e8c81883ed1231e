"""A page that shows a simulation of soft bodies while it runs, and lets a person take hold of it.

Bodies, contacts (vertices green, edges red), boxes and cells of the detection grid can be shown and hidden. A click on
a body takes hold of the vertex nearest to it; the arrows that appear there pull it until it is let go.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tangere.query.contacts import Kind
from tangere.scene import CONTACT_COLOURS, PALETTE, Scene, ball_size
from tangere.shape.mesh import Mesh
from tangere.soft import CAMERA, WALL_COLOUR, Simulation, body_things, boxes_and_cells, contact_points, extent_of
from tangere.view.live_pages.simulation_viewer import SimulationViewer

_BOX, _CELL = (64, 69, 82), (140, 102, 191)
#: Corners of a box (0 lower, 1 upper, by axis) at the ends of its twelve edges.
_EDGES = np.array(
    [[c, c | 1 << axis] for axis in range(3) for c in range(8) if not c >> axis & 1],
)
_CORNERS = (np.arange(8)[:, None] >> np.arange(3)) & 1


class LiveViewer(SimulationViewer):
    """A page of one simulation. Use it as a context manager; `run` makes the steps."""

    def __init__(self, simulation: Simulation, *, host: str = "127.0.0.1", port: int | None = None) -> None:
        meshes = simulation.meshes()
        things = body_things(simulation, meshes)
        self._extent, self._names = extent_of(simulation, meshes), [thing.name for thing in things]
        self._hand: Any = None
        self._taken: tuple[int, int] | None = None
        self._topologies, self._cut = [mesh.topology for mesh in meshes], dict[int, list[Any]]()
        scene = Scene(tuple(things), camera=CAMERA, title="tangere soft")
        super().__init__(simulation, scene, host=host, port=port)
        for number, body in enumerate(simulation.bodies):
            if not body.is_obstacle:
                self.body(self._names[number]).on_click(lambda event, body=number: self._on_click(body, event))

    @property
    def taken(self) -> tuple[int, int] | None:
        """Body and surface vertex that a person holds."""
        return self._taken

    def hold(self, body: int, vertex: int) -> None:
        """Take hold of a vertex of a body's surface: arrows appear there, and where they are dragged it is pulled."""
        with self._lock:
            self.let_go()
            place = self.simulation[body].mesh.vertices[vertex]
            self._taken = body, vertex
            self._hand = self.server.scene.add_transform_controls(
                "/hand", 0.15 * self._extent, disable_rotations=True, depth_test=False, position=tuple(place)
            )
            self._hand.on_update(lambda event: self.drag(event.target.position))
            self.drag(place)

    def drag(self, to: Any) -> None:
        """Pull what is held towards a point [m]."""
        with self._lock:
            if self._taken is not None:
                body, vertex = self._taken
                self.simulation[body].pull(vertex, np.asarray(to, float).tolist())

    def let_go(self) -> None:
        """Hold nothing."""
        with self._lock:
            self._taken = None
            self.simulation.let_go()
            if self._hand is not None:
                self._hand.remove()
                self._hand = None

    def show(self) -> None:
        """Draw the simulation as it is now."""
        with self._lock:
            meshes, contacts = self.simulation.meshes(), self.simulation.contacts
            for number, (mesh, body) in enumerate(zip(meshes, self.simulation.bodies, strict=True)):
                if number >= len(self._topologies) or mesh.topology is not self._topologies[number]:
                    self._draw_cut(number, mesh, body.wall_faces)
                elif number in self._cut:
                    self._move_cut(number, mesh)
                elif not body.is_obstacle:
                    thing = self.scene.things[number]
                    self.body(thing.name).vertices = mesh.vertices[thing.creased.source].astype(np.float32)
            for kind in CONTACT_COLOURS:
                self._draw_points(kind, contact_points(contacts, kind))
            drawn = boxes_and_cells(self.simulation, meshes, contacts)
            self._draw_boxes("boxes", drawn["boxes"], _BOX)
            self._draw_boxes("grid", drawn["grid"], _CELL)
            self._text.content = self.summary()

    def _draw_cut(self, number: int, mesh: Mesh, walls: np.ndarray) -> None:
        """Draw a body that has been cut anew, walls in a colour of their own; it is clicked as before."""
        if number < len(self._topologies):
            self._topologies[number] = mesh.topology
        else:
            self._topologies.append(mesh.topology)
        if number < len(self.scene.things):
            self.body(self.scene.things[number].name).visible = False
        for handle, _, _ in self._cut.pop(number, []):
            handle.remove()
        self._cut[number] = []
        for kind, chosen, colour in (("skin", ~walls, PALETTE[number % len(PALETTE)]), ("walls", walls, WALL_COLOUR)):
            if chosen.any():
                used, faces = np.unique(mesh.faces[chosen], return_inverse=True)
                rgb = tuple(round(255 * c) for c in colour)
                handle = self.server.scene.add_mesh_simple(
                    f"/cut/{number}/{kind}",
                    mesh.vertices[used].astype(np.float32),
                    faces.reshape(-1, 3).astype(np.uint32),
                    color=rgb,
                    flat_shading=True,
                    side="double",
                )
                handle.on_click(lambda event, body=number: self._on_click(body, event))
                self._cut[number].append((handle, used, kind))

    def _move_cut(self, number: int, mesh: Mesh) -> None:
        for handle, used, _ in self._cut[number]:
            handle.vertices = mesh.vertices[used].astype(np.float32)

    def summary(self) -> str:
        """The text of the panel, in Markdown."""
        simulation, contacts = self.simulation, self.simulation.contacts
        taken = 1e3 * sum(simulation.timings.values())
        lines = [f"t = {simulation.time:.2f} s", f"{len(contacts)} contacts", f"step {taken:.1f} ms"]
        if self._taken is not None:
            lines.append(f"holding vertex {self._taken[1]} of {simulation.bodies[self._taken[0]].name}")
        return "  \n".join(lines)

    def _add_own_controls(self, gui: Any) -> None:
        gui.add_button("One step").on_click(lambda _: self._single.set())
        gui.add_button("Let go").on_click(lambda _: self.let_go())
        super()._add_own_controls(gui)
        with gui.add_folder("Show"):
            labels = ("vertex-face contacts", "edge-edge contacts", "boxes", "grid")
            self._shown = {label: gui.add_checkbox(label, label.endswith("contacts")) for label in labels}
            for box in self._shown.values():
                box.on_update(lambda _: self.show())

    def _on_click(self, body: int, event: Any) -> None:
        """Take the vertex nearest to the ray of the click, of those that face the eye."""
        origin, direction = np.asarray(event.ray_origin), np.asarray(event.ray_direction)
        with self._lock:
            vertices = self.simulation[body].mesh.vertices
        along = (vertices - origin) @ direction
        across = np.linalg.norm(vertices - origin - along[:, None] * direction, axis=1)
        near = np.flatnonzero(across <= across.min() + 0.02 * self._extent)
        self.hold(body, int(near[np.argmin(along[near])]))

    def _draw_points(self, kind: Kind, points: np.ndarray) -> None:
        name = "vertex-face contacts" if kind == Kind.VERTEX_FACE else "edge-edge contacts"
        self._forget(name)
        if len(points) and self._shown[name].value:
            colours = np.tile(np.round(255 * np.array(CONTACT_COLOURS[kind])).astype(np.uint8), (len(points), 1))
            size = 2.0 * ball_size(len(points), self._extent)
            self._drawn[name] = self.server.scene.add_point_cloud(
                f"/{kind.name.lower()}", points.astype(np.float32), colours, point_size=size, point_shape="circle"
            )

    def _draw_boxes(self, name: str, boxes: np.ndarray, colour: tuple[int, int, int]) -> None:
        self._forget(name)
        if len(boxes) and self._shown[name].value:
            corners = np.where(_CORNERS[None] == 0, boxes[:, None, 0], boxes[:, None, 1])
            segments = corners[:, _EDGES].reshape(-1, 2, 3).astype(np.float32)
            width = 2e-3 * self._extent
            self._drawn[name] = self.server.scene.add_line_segments(f"/{name}", segments, colour, thickness=width)

    def _forget(self, name: str) -> None:
        if name in self._drawn:
            self._drawn.pop(name).remove()
