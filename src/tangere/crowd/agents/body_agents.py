"""The agents with a shape: their particles, sections and edges on the device, step by step.

Question: where are the bodies now, and which edges do they show to others?
Method:   bodies, sections and particles are flat arrays; a step is a few launches that are prepared once
          (`shape_matching`), and then their edges are listed by cell (`body_edges`).
Known as: polygonal agents (Pitiot 2015, section 8.1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.cells.maps import CellMap, replace_merged_darts
from tangere.cells.tracking import glide
from tangere.crowd.agents.body_edges import MovingEdges
from tangere.crowd.agents.relocation import place_points, relocate
from tangere.crowd.agents.shape_matching import BodyArrays, body_step_launches
from tangere.crowd.bodies import Body
from tangere.crowd.navigation.routes import WaypointLists, route_progress, routes_of
from tangere.runtime import InputError, PreparedLaunch

_STATE = {"position": wp.vec3d, "velocity": wp.vec3d, "dart": wp.int32}
_VECTORS = (
    "position",
    "velocity",
    "centre",
    "axis_x",
    "axis_y",
    "forward",
    "normal",
    "section_velocity",
    "plastic",
    "preferred",
)
_INTEGERS = ("dart", "owner", "member_a", "member_b", "first", "particle", "section", "body", "head_section", "hinge")


class BodyAgents:
    """Bodies in a map.

    Args:
        anticipation: how far ahead virtual edges reach [s]; 0: there are none.
    """

    def __init__(self, map: CellMap, anticipation: float) -> None:
        self.map, self.anticipation = map, anticipation
        self.bodies: list[Body] = []
        self.waypoint_lists = WaypointLists.of(None, 0)
        self.traits: dict[str, np.ndarray] = {
            **{name: np.empty(0) for name in ("speed", "arrived")},
            **{name: np.empty(0, np.int64) for name in ("repeat", "done")},
        }
        self.offsets = np.zeros(1, np.int64)  #: particles of body k are offsets[k] … offsets[k + 1] - 1
        self.arrays = BodyArrays()  #: as kernels see them
        for name, kind in _STATE.items():
            setattr(self.arrays, name, wp.empty(0, dtype=kind, device=map.device))
        self.routes = routes_of(self.waypoint_lists, self.traits, map.device)
        self.edges = _no_edges(map)
        self._time = wp.zeros(1, dtype=wp.float64, device=map.device)
        self._time_on_cpu = self._time.numpy() if map.device.is_cpu else None
        self._launches: tuple[Any, list[PreparedLaunch]] | None = None

    def __len__(self) -> int:
        return len(self.bodies)

    @property
    def positions(self) -> np.ndarray:
        """(p, 3) of all particles [m]."""
        return self.arrays.position.numpy().copy()

    @property
    def velocities(self) -> np.ndarray:
        """(p, 3) of all particles [m/s]."""
        return self.arrays.velocity.numpy().copy()

    def outline(self, number: int, section: int = 0) -> np.ndarray:
        """(k, 3) where the corners of one section of a body are [m]."""
        return self.positions[self.offsets[number] + np.array(self.bodies[number].sections[section])]

    def add(
        self,
        body: Body,
        centres: np.ndarray,
        darts: np.ndarray,
        headings: np.ndarray,
        ways: WaypointLists,
        speed: Any,
        repeat: bool,
    ) -> np.ndarray:
        """Take in bodies of one shape at rest; returns their numbers.

        Args:
            centres: (n, 3) of the heads. headings: (n, 3) tangent directions.
        """
        count, before = len(centres), len(self)
        if count == 0:
            return np.empty(0, np.int64)
        normals = np.broadcast_to([0.0, 0.0, 1.0], (count, 3))
        if not self.map.flat:
            normals = self._normals(darts)
        ahead = headings - (headings * normals).sum(axis=1, keepdims=True) * normals
        length = np.linalg.norm(ahead, axis=1)
        if not (length > 0).all():
            raise InputError(f"headings: heading {int(np.argmin(length))} has no direction along the ground")
        ahead = ahead / length[:, None]
        left = np.cross(normals, ahead)
        offset = body.particles[None, :, :1] * ahead[:, None] + body.particles[None, :, 1:] * left[:, None]
        each = len(body.particles)
        place = (centres[:, None] + offset).reshape(-1, 3)
        if self.map.flat:
            place, there = place_points(self.map, place, "particles of bodies")
        else:
            moved = glide(self.map, np.repeat(centres, each, axis=0), offset.reshape(-1, 3), np.repeat(darts, each))
            place, there = moved.position, moved.dart
            if moved.blocked.any():
                raise InputError(f"positions: body {int(np.argmax(moved.blocked)) // each} reaches into an obstacle")
        state = {
            "position": np.concatenate([self.positions, place]),
            "velocity": np.concatenate([self.velocities, np.zeros_like(place)]),
            "dart": np.concatenate([self.arrays.dart.numpy(), there]),
        }
        if before:
            self.traits |= route_progress(self.routes)
            state |= {name: getattr(self.arrays, name).numpy() for name in ("plastic_map", "shape")}
        self.bodies += [body] * count
        self.offsets = np.concatenate([self.offsets, self.offsets[-1] + each * np.arange(1, count + 1)])
        for name, values in {"speed": speed, "repeat": int(repeat), "arrived": np.inf, "done": 0}.items():
            self.traits[name] = np.concatenate([self.traits[name], np.broadcast_to(values, count)])
        self.waypoint_lists = self.waypoint_lists.with_more(ways)
        self._upload(state)
        return np.arange(before, before + count)

    def step(self, map_inputs: list[Any], push: tuple[float, float, float], dt: float, time: float) -> None:
        """Move all bodies. Map inputs: map, neighbourhoods."""
        b, device = self.arrays, self.map.device
        b.dt = dt
        key = self.map.version, self.edges.arrays, push, dt, self.routes.goal_radius, b.position.ptr
        if self._launches is None or self._launches[0] != key:
            moved = [wp.empty_like(x) for x in (b.position, b.velocity, b.dart)]
            inputs = [*map_inputs, self.edges.arrays, wp.vec3d(*push)]
            self._launches = key, body_step_launches(b, self.routes, self._time, inputs, moved, device)
        if self._time_on_cpu is not None:
            self._time_on_cpu[0] = time
        else:
            self._time.fill_(time)
        for part in self._launches[1]:
            part.run()

    def register(self) -> None:
        """List the edges by cell, where they are now."""
        if len(self):
            self.edges.update(self.arrays)

    def replace_merged_darts(self) -> None:
        """After a merge: aim at darts that are left."""
        replace_merged_darts(self.map, self.arrays.dart)

    def relocate(self) -> None:
        """After cells were split or merged: find the darts of all particles again, and list the edges."""
        b = self.arrays
        self._launches = None  # what kernels read of the map may be other arrays by now
        if len(self):
            b.position, b.dart = relocate(self.map, b.position, b.dart)
            self.register()
        else:
            self.edges = _no_edges(self.map)

    def _upload(self, state: dict[str, np.ndarray]) -> None:
        """State: of all particles, and of those sections that were there before how plasticity has left them."""
        columns: dict[str, list] = {
            name: [] for name in ("particle", "section", "body", "head_section", "hinge", "first")
        }
        rest, member = [], np.full((len(state["dart"]), 2), -1)
        contours, owners = [], []
        for number, body in enumerate(self.bodies):
            base = int(self.offsets[number])
            contours.append(body.edges + base)
            owners.append(np.full(len(body.edges), number))
            columns["head_section"].append(len(columns["body"]))
            for section in body.sections:
                columns["first"].append(len(columns["particle"]))
                shape = body.particles[list(section)]
                for particle in section:
                    place = len(columns["particle"])
                    member[base + particle, 0 if member[base + particle, 0] < 0 else 1] = place
                    columns["particle"].append(base + particle)
                    columns["section"].append(len(columns["body"]))
                rest.append(shape - shape.mean(axis=0))
                columns["body"].append(number)
                columns["hinge"].append(base + section[0])
        columns["first"].append(len(columns["particle"]))
        sections, device = len(columns["body"]), self.map.device
        values: dict[str, Any] = {
            **{name: np.array(column) for name, column in columns.items()},
            **state,
            **{"owner": np.repeat(np.arange(len(self)), np.diff(self.offsets))},
            **{"member_a": member[:, 0], "member_b": member[:, 1]},
            **{name: np.zeros((sections, 3)) for name in _VECTORS[2:8]},
            "plastic": np.array([(b.plastic_yield, b.plastic_creep, b.plastic_max) for b in self.bodies]),
            "preferred": np.zeros((len(self), 3)),
        }
        b = self.arrays
        for name in _VECTORS:
            setattr(b, name, wp.array(values[name], dtype=wp.vec3d, device=device))
        for name in _INTEGERS:
            setattr(b, name, wp.array(values[name].astype(np.int32), dtype=wp.int32, device=device))
        b.rest = wp.array(np.concatenate(rest), dtype=wp.vec2d, device=device)
        plastic = {"plastic_map": np.broadcast_to(np.eye(2), (sections, 2, 2)), "shape": np.concatenate(rest)}
        for name, kind in (("plastic_map", wp.mat22d), ("shape", wp.vec2d)):
            kept = state.get(name, plastic[name][:0])
            setattr(b, name, wp.array(np.concatenate([kept, plastic[name][len(kept) :]]), dtype=kind, device=device))
        b.spin = wp.zeros(sections, dtype=wp.float64, device=device)
        numbers = {"speed": self.traits["speed"], "alpha": [x.alpha for x in self.bodies]}
        numbers["beta"] = [x.beta_linear for x in self.bodies]
        for name, column in numbers.items():
            setattr(b, name, wp.array(np.array(column, float), dtype=wp.float64, device=device))
        b.surface = int(not self.map.flat)
        self.routes = routes_of(self.waypoint_lists, self.traits, device)
        self._launches = None
        widths = np.array([body.width for body in self.bodies])
        pairs = np.concatenate(contours)
        self.edges = MovingEdges(self.map, pairs, np.concatenate(owners), widths, self.anticipation)
        self.register()

    def _normals(self, darts: np.ndarray) -> np.ndarray:
        map = self.map
        s, e = map.edge_ends(darts)
        c = map.numpy("centre")[map.numpy("cell")[darts]]
        normal = np.cross(s - c, e - c)
        return normal / np.linalg.norm(normal, axis=1, keepdims=True)


def _no_edges(map: CellMap) -> MovingEdges:
    return MovingEdges(map, np.empty((0, 2), np.int64), np.empty(0, np.int64), np.empty(0), 0.0)
