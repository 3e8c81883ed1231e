"""A page that shows a crowd while it runs: cells by level and occupancy, and an obstacle to drag through it."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from tangere.crowd import (
    Obstacle,
    Recorder,
    Simulation,
    Trajectories,
    cell_edges,
    cell_triangles,
    wall_quads,
)
from tangere.scene import Scene, Thing
from tangere.shape import generate
from tangere.shape.mesh import Mesh
from tangere.view.crowd_pictures import cell_colours
from tangere.view.crowd_scene import prism, prism_faces
from tangere.view.live_pages.simulation_viewer import SimulationViewer

_POINT, _BODY, _SIDE, _WALL = (52, 88, 140), (200, 85, 61), (150, 155, 165), (34, 37, 43)
#: Pages are told at most so often of cells that changed [s].
_CELLS_EVERY = 0.2


class CrowdViewer(SimulationViewer):
    """A page of one simulation. Use it as a context manager; `run` makes the steps."""

    def __init__(self, simulation: Simulation, *, host: str = "127.0.0.1", port: int | None = None) -> None:
        self.obstacle: Obstacle | None = None
        self.ended = False  #: whether a recording was ended early
        self._cells_shown = -1.0
        scene = simulation.scene()
        extent = np.concatenate([scene.points, simulation.map.positions])
        frame = Scene((_frame(extent),), camera=scene.camera, title="tangere crowd")
        super().__init__(simulation, frame, host=host, port=port)
        if simulation.map.flat:
            self._add_handle()

    def record(self, seconds: float, *, record: float = 0.5) -> Trajectories:
        """Run for so long, as `Simulation.run` does, in the page; Ctrl-C or closing it ends that early."""
        simulation, recorder = self.simulation, Recorder(self.simulation)
        every, begin = max(1, round(record / simulation.dt)), simulation.steps
        recorder.record()

        def note() -> None:
            if (simulation.steps - begin) % every == 0:
                recorder.record()

        wanted = max(1, round(seconds / simulation.dt))
        self.ended = self.run(wanted, note) < wanted
        return recorder.trajectories()

    def drag(self, to: Any) -> None:
        """Move the obstacle, or put it down for the first time; the map adapts to it."""
        with self._lock:
            if self.obstacle is None:
                self.obstacle = Obstacle(self.simulation, np.asarray(to, float)[:2], self._obstacle_radius())
            else:
                self.obstacle.move(np.asarray(to, float)[:2])
            self._cells_shown = -1.0

    def take_away(self) -> None:
        """Remove the obstacle."""
        with self._lock:
            if self.obstacle is not None:
                self.obstacle.remove()
                self.obstacle = None
                self._cells_shown = -1.0

    def show(self) -> None:
        """Draw the crowd as it is now."""
        with self._lock:
            simulation = self.simulation
            if time.monotonic() - self._cells_shown > _CELLS_EVERY:
                self._draw_cells()
                self._cells_shown = time.monotonic()
            self._draw_points(simulation.positions)
            for k, body in enumerate(simulation.bodies.bodies):
                for s in range(len(body.sections)):
                    self._draw_outline(f"/bodies/{k}/{s}", simulation.bodies.outline(k, s))
            self._text.content = self.summary()

    def summary(self) -> str:
        """The text of the panel, in Markdown."""
        simulation = self.simulation
        merges, splits = simulation.operations
        lines = [f"t = {simulation.time:.2f} s", f"{len(simulation.points)} points, {len(simulation.bodies)} bodies"]
        lines += [f"{len(simulation.map.leaves)} cells, {splits} splits and {merges} merges so far"]
        if self.obstacle is not None:
            lines.append(f"the obstacle blocks {len(self.obstacle.cells)} cells")
        return "  \n".join(lines)

    def _add_own_controls(self, gui: Any) -> None:
        if self.simulation.map.flat:
            gui.add_button("Take the obstacle away").on_click(lambda _: self.take_away())
        super()._add_own_controls(gui)

    def _obstacle_radius(self) -> float:
        return 0.04 * float(np.ptp(self.simulation.map.positions[:, :2], axis=0).max())

    def _add_handle(self) -> None:
        low, high = self.simulation.map.positions.min(axis=0), self.simulation.map.positions.max(axis=0)
        handle = self.server.scene.add_transform_controls(
            "/obstacle",
            1.5 * self._obstacle_radius(),
            disable_rotations=True,
            active_axes=(True, True, False),
            depth_test=False,
            position=tuple((low + high) / 2),
        )
        handle.on_update(lambda event: self.drag(event.target.position))

    def _draw_cells(self) -> None:
        import trimesh

        map = self.simulation.map
        if map.dimension == 2:
            triangles, cells = cell_triangles(map, raised=True)
            colours = np.round(255 * cell_colours(self.simulation, cells)).astype(np.uint8)
            faces = np.arange(3 * len(triangles)).reshape(-1, 3)
            mesh = trimesh.Trimesh(triangles.reshape(-1, 3), faces, face_colors=colours, process=False)
            self._drawn["/cells"] = self.server.scene.add_mesh_trimesh("/cells", mesh)
            walls = wall_quads(map).astype(np.float32).reshape(-1, 3)
            faces = (4 * np.arange(len(walls) // 4)[:, None, None] + [[0, 1, 2], [0, 2, 3]]).reshape(-1, 3)
            if len(walls):
                add = self.server.scene.add_mesh_simple
                self._drawn["/walls"] = add("/walls", walls, faces, color=_WALL, side="double")
        sides = cell_edges(map).astype(np.float32)
        thick = 5e-4 * float(np.ptp(sides.reshape(-1, 3), axis=0).max())
        self._drawn["/sides"] = self.server.scene.add_line_segments("/sides", sides, _SIDE, thickness=thick)

    def _draw_points(self, positions: np.ndarray) -> None:
        if len(positions) == 0:
            return
        if "/points" not in self._drawn:
            ball = generate.icosphere(triangles=80)
            turns = np.tile([1.0, 0.0, 0.0, 0.0], (len(positions), 1)).astype(np.float32)
            self._drawn["/points"] = self.server.scene.add_batched_meshes_simple(
                "/points",
                np.asarray(ball.vertices, np.float32),
                np.asarray(ball.faces),
                turns,
                positions.astype(np.float32),
                batched_scales=self.simulation.points.traits["radius"].astype(np.float32),
                batched_colors=_POINT,
            )
        self._drawn["/points"].batched_positions = positions.astype(np.float32)

    def _draw_outline(self, name: str, outline: np.ndarray) -> None:
        corners = prism(outline).astype(np.float32)
        if name not in self._drawn:
            faces = prism_faces(len(outline))
            self._drawn[name] = self.server.scene.add_mesh_simple(name, corners, faces, color=_BODY, side="double")
        self._drawn[name].vertices = corners


def _frame(points: np.ndarray) -> Thing:
    """Something as large as everything, to place the camera by: two flat triangles far apart."""
    low, high = points.min(axis=0), points.max(axis=0)
    tiny = 1e-6 * (high - low)
    corners = np.array([low, low + tiny * [1, 0, 0], low + tiny * [0, 1, 0], high, high - tiny * [1, 0, 0], high])
    return Thing("extent", Mesh(corners, [[0, 1, 2], [3, 4, 5]]), (1.0, 1.0, 1.0))
