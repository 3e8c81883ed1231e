"""A scene as binary glTF (.glb), the format that browsers, Blender, and most engines open.

Poses become animations of nodes, deformations morph targets with one weight each, contacts marks that appear at their
time (their size goes from 0 to 1). Up is glTF's y; the root node turns the scene's up there, so positions of meshes
are as they were in the scene. Seconds are those of the scene's clock from its first time on.

Known as: Khronos, glTF 2.0 specification (ISO/IEC 12113:2022).
"""

from __future__ import annotations

import json
import struct
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from tangere.runtime import InputError, writing
from tangere.scene.creases import vertex_normals
from tangere.scene.export.animation import Animated, Deformation, Piece, Track, animated
from tangere.scene.export.marks import Marks, marks_of
from tangere.scene.export.timing import Timing
from tangere.scene.scene import Scene, Thing

_FLOAT, _UINT32 = 5126, 5125
_ARRAY, _ELEMENTS = 34962, 34963
_LARGEST = 2**32 - 1  #: bytes of a file


def save_glb(scene: Scene, path: str | Path, *, frames: int | None = None, seconds: float | None = None) -> None:
    """Write the scene, animated.

    Args:
        frames: so many keys of what moves, at even distances; None means as many as it takes.
        seconds: how long it plays; None means what the clock of the scene says.
    """
    timing, file = Timing(scene, seconds), _File()
    children = [file.add(one, timing) for one in animated(scene, frames)]
    children += [file.add_marks(marks, timing) for marks in marks_of(scene)]
    root = {"name": scene.title or "scene", "rotation": _upright(scene.camera.up), "children": children}
    file.write(path, root)


def _upright(up: Any) -> list[float]:
    """The shortest turn, as quaternion x, y, z, w, that takes `up` to the second axis."""
    axis = np.asarray(up, float) / np.linalg.norm(up)
    turn = np.array([*np.cross(axis, [0.0, 1.0, 0.0]), 1.0 + axis[1]])
    if turn[3] < 1e-9:  # upside down
        turn = np.array([1.0, 0.0, 0.0, 0.0])
    return (turn / np.linalg.norm(turn)).tolist()


class _File:
    """The parts of a file while they are put together."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.json: dict[str, list[Any]] = {
            key: [] for key in ("nodes", "meshes", "materials", "accessors", "bufferViews")
        }
        self.samplers: list[Any] = []
        self.channels: list[Any] = []
        self._inputs: dict[Track, int] = {}

    def add(self, one: Animated, timing: Timing) -> int:
        """A node with a thing; one that is there for a while only has no size before and after."""
        node = self._add_thing(one, timing)
        if one.span is None or (one.span[0] <= timing.start and one.span[1] >= 1.0):
            return node
        begin, end = one.span
        node = self._append("nodes", {"name": f"{one.thing.name} while it is there", "children": [node]})
        keys = [(timing.start, float(begin <= timing.start))]
        keys += [(begin, 1.0)] if begin > timing.start else []
        keys += [(end, 0.0)] if end < 1.0 else []
        times = self._times(np.array([time for time, _ in keys]), timing)
        self._animate(node, "scale", times, self._accessor(np.array([[s] * 3 for _, s in keys]), "VEC3"), holds=True)
        return node

    def _add_thing(self, one: Animated, timing: Timing) -> int:
        material = self._material(one.thing.name, one.thing.colour, one.thing.opacity)
        if one.deformation is not None:
            return self._add_deformation(one.thing, one.deformation, material, timing)
        nodes = []
        for piece in one.pieces:
            mesh = self._mesh(one.thing.name, piece.vertices, piece.faces, material)
            nodes += [self._add_piece(one.thing.name, mesh, piece, k, timing) for k in range(_copies(piece))]
        if len(nodes) == 1:
            return nodes[0]
        for number, node in enumerate(nodes):
            self.json["nodes"][node]["name"] += f" {number}"
        return self._append("nodes", {"name": one.thing.name, "children": nodes})

    def add_marks(self, marks: Marks, timing: Timing) -> int:
        """A node with the marks of contacts that appear together."""
        material = self._material(marks.name, marks.colour, 1.0)
        mesh = self._mesh(marks.name, marks.vertices - marks.origin, marks.faces, material, normals=marks.normals)
        node = self._append("nodes", {"name": marks.name, "mesh": mesh, "translation": marks.origin.tolist()})
        if marks.time > timing.start:
            times = self._times(np.array([timing.start, marks.time]), timing)
            size = self._accessor(np.array([[0.0] * 3, [1.0] * 3]), "VEC3")
            self._animate(node, "scale", times, size, holds=True)
        return node

    def write(self, path: str | Path, root: dict[str, Any]) -> None:
        number = self._append("nodes", root)
        document: dict[str, Any] = {
            "asset": {"version": "2.0", "generator": f"tangere {version('tangere')}"},
            "scene": 0,
            "scenes": [{"name": root["name"], "nodes": [number]}],
            **self.json,
            "buffers": [{"byteLength": len(self.data)}],
        }
        if self.channels:
            animation = {"name": root["name"], "samplers": self.samplers, "channels": self.channels}
            document["animations"] = [animation]
        text = json.dumps(document, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 4)
        size = 12 + 8 + len(text) + 8 + len(self.data)
        if size > _LARGEST:
            raise InputError(f"{path}: {size / 2**30:.1f} GiB are too much for a .glb file; give fewer frames=")
        with writing(path), open(path, "wb") as file:
            file.write(struct.pack("<4sIIII", b"glTF", 2, size, len(text), 0x4E4F534A))
            file.write(text)
            file.write(struct.pack("<II", len(self.data), 0x004E4942))
            file.write(self.data)

    def _add_piece(self, name: str, mesh: int, piece: Piece, copy: int, timing: Timing) -> int:
        track = piece.track
        shift, turn, size = track.shift[:, copy], track.turn[:, copy], np.repeat(track.size[:, copy, None], 3, axis=1)
        node: dict[str, Any] = {"name": name, "mesh": mesh}
        for key, values, neutral in (
            ("translation", shift, [0.0] * 3),
            ("rotation", turn, [0.0, 0.0, 0.0, 1.0]),
            ("scale", size, [1.0] * 3),
        ):
            if values[0].tolist() != neutral:
                node[key] = values[0].tolist()
        number = self._append("nodes", node)
        for key, values, kind in (("translation", shift, "VEC3"), ("rotation", turn, "VEC4"), ("scale", size, "VEC3")):
            if (values != values[0]).any():
                self._animate(number, key, self._track_times(track, timing), self._accessor(values, kind), track.holds)
        return number

    def _track_times(self, track: Track, timing: Timing) -> int:
        """One accessor for all copies and all that changes."""
        if track not in self._inputs:
            self._inputs[track] = self._times(track.times, timing)
        return self._inputs[track]

    def _add_deformation(self, thing: Thing, moved: Deformation, material: int, timing: Timing) -> int:
        base, normals = moved.states[0], vertex_normals(moved.states[0], moved.faces)
        targets = []
        for state in moved.states[1:]:
            difference = vertex_normals(state, moved.faces) - normals
            targets.append(
                {
                    "POSITION": self._accessor(state - base, "VEC3", bounds=True, target=_ARRAY),
                    "NORMAL": self._accessor(difference, "VEC3", target=_ARRAY),
                }
            )
        mesh = self._mesh(thing.name, base, moved.faces, material, normals=normals)
        node: dict[str, Any] = {"name": thing.name, "mesh": mesh}
        if moved.origin.any():
            node["translation"] = moved.origin.tolist()
        number = self._append("nodes", node)
        if targets:
            self.json["meshes"][mesh]["primitives"][0]["targets"] = targets
            self.json["meshes"][mesh]["weights"] = [0.0] * len(targets)
            weights = np.eye(len(moved.states))[:, 1:].reshape(-1)
            times = self._times(moved.times, timing)
            self._animate(number, "weights", times, self._accessor(weights, "SCALAR"), moved.holds)
        return number

    def _mesh(
        self, name: str, vertices: np.ndarray, faces: np.ndarray, material: int, normals: np.ndarray | None = None
    ) -> int:
        normals = vertex_normals(vertices, faces) if normals is None else normals
        # A vertex of triangles without area has none, and must have one.
        normals = np.where(np.any(normals, axis=1)[:, None], normals, (0.0, 0.0, 1.0))
        attributes = {
            "POSITION": self._accessor(vertices, "VEC3", bounds=True, target=_ARRAY),
            "NORMAL": self._accessor(normals, "VEC3", target=_ARRAY),
        }
        indices = self._accessor(np.asarray(faces).reshape(-1), "SCALAR", np.uint32, target=_ELEMENTS)
        primitive = {"attributes": attributes, "indices": indices, "material": material}
        return self._append("meshes", {"name": name, "primitives": [primitive]})

    def _material(self, name: str, colour: Any, opacity: float) -> int:
        linear = [float(c) ** 2.2 for c in colour]
        surface = {"baseColorFactor": [*linear, float(opacity)], "metallicFactor": 0.0, "roughnessFactor": 0.7}
        material: dict[str, Any] = {"name": name, "pbrMetallicRoughness": surface, "doubleSided": True}
        if opacity < 1.0:
            material["alphaMode"] = "BLEND"
        return self._append("materials", material)

    def _animate(self, node: int, path: str, times: int, values: int, holds: bool) -> None:
        self.samplers.append({"input": times, "output": values, "interpolation": "STEP" if holds else "LINEAR"})
        self.channels.append({"sampler": len(self.samplers) - 1, "target": {"node": node, "path": path}})

    def _times(self, times: np.ndarray, timing: Timing) -> int:
        return self._accessor(timing.seconds(times), "SCALAR", bounds=True)

    def _accessor(
        self, values: np.ndarray, kind: str, dtype: Any = np.float32, *, bounds: bool = False, target: int | None = None
    ) -> int:
        values = np.ascontiguousarray(values, dtype)
        self.data += b"\0" * (-len(self.data) % 4)
        view: dict[str, Any] = {"buffer": 0, "byteOffset": len(self.data), "byteLength": values.nbytes}
        if target is not None:
            view["target"] = target
        self.data += values.tobytes()
        accessor: dict[str, Any] = {
            "bufferView": self._append("bufferViews", view),
            "componentType": _UINT32 if dtype is np.uint32 else _FLOAT,
            "count": len(values),
            "type": kind,
        }
        if bounds:
            rows = values.reshape(len(values), -1)
            accessor |= {"min": rows.min(axis=0).tolist(), "max": rows.max(axis=0).tolist()}
        return self._append("accessors", accessor)

    def _append(self, key: str, value: Any) -> int:
        self.json[key].append(value)
        return len(self.json[key]) - 1


def _copies(piece: Piece) -> int:
    return piece.track.shift.shape[1]
