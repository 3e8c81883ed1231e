"""Tesseract (PyPI: tesseract-robotics): bodies of a robot, at instants and as hulls of both ends of a segment.

Its managers come from plugins beside the wheel's libraries. Which pairs may touch is known to an environment, by the
names of an SRDF file; its validator is given to the managers. The first contact is asked for, which is all that a
verdict needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import tesseract_robotics
from tesseract_robotics import tesseract_collision, tesseract_common, tesseract_environment, tesseract_geometry

import tangere as tg

__all__ = ["CAST", "DISCRETE", "TesseractBodies"]

DISCRETE = {"bullet": "BulletDiscreteBVHManager", "fcl": "FCLDiscreteBVHManager"}
CAST = "BulletCastBVHManager"


class TesseractBodies:
    """The parts of bodies, and which pairs of bodies are compared.

    Args:
        parts: of each body, in its frame.
        moving: whether each body moves.
        pairs: numbers of two bodies, (n, 2).
        manager: of `DISCRETE`, or `CAST`.
        folder: for files.
    """

    def __init__(
        self, parts: Sequence[Any], moving: Sequence[bool], pairs: np.ndarray, manager: str, folder: Path
    ) -> None:
        self._factory = tesseract_collision.ContactManagersPluginFactory(
            _plugins(), tesseract_common.GeneralResourceLocator()
        )
        made = (
            self._factory.createContinuousContactManager
            if manager == CAST
            else self._factory.createDiscreteContactManager
        )
        self._owner = made(manager)
        self._manager, self._cast = self._owner.get(), manager == CAST
        self._names = [f"body {k}" for k in range(len(parts))]
        self._moving = np.flatnonzero(moving)
        self._environment = _environment(self._names, pairs, folder)
        self._knows = self._environment.getDiscreteContactManager()
        self._validator = self._knows.get().getContactAllowedValidator()
        self._manager.setContactAllowedValidator(self._validator)
        for name, own in zip(self._names, parts, strict=True):
            shapes, places = tesseract_geometry.GeometriesConst(), tesseract_common.VectorIsometry3d()
            for part in own:
                shape, place = _shape(part)
                shapes.append(shape)
                places.append(_pose(place))
            assert self._manager.addCollisionObject(name, 0, shapes, places, True)
        self._manager.setActiveCollisionObjects([self._names[k] for k in self._moving])
        self._manager.setDefaultCollisionMarginData(0.0)

    def touch(self, poses: np.ndarray, later: np.ndarray | None = None) -> bool:
        """Whether bodies at poses, (bodies, 4, 4), meet, or the hulls of theirs at both ends of a way do."""
        for k in self._moving:
            ends = [_pose(poses[k])] + ([] if later is None else [_pose(later[k])])
            self._manager.setCollisionObjectsTransform(self._names[k], *ends)
        found = tesseract_collision.ContactResultMap()
        request = tesseract_collision.ContactRequest(tesseract_collision.ContactTestType_FIRST)
        self._manager.contactTest(found, request)
        results = tesseract_collision.ContactResultVector()
        found.flattenMoveResults(results)
        return any(result.distance <= 0.0 for result in results)


def _environment(names: Sequence[str], pairs: np.ndarray, folder: Path) -> Any:
    """Links of these names, of which only the pairs are compared."""
    compared = {frozenset(pair) for pair in pairs.tolist()}
    links = "".join(f'<link name="{name}"/>' for name in names)
    joints = "".join(
        f'<joint name="{name}" type="fixed"><parent link="{names[0]}"/><child link="{name}"/></joint>'
        for name in names[1:]
    )
    allowed = "".join(
        f'<disable_collisions link1="{names[a]}" link2="{names[b]}" reason="Never"/>'
        for a, b in combinations(range(len(names)), 2)
        if frozenset((a, b)) not in compared
    )
    path = folder / "contact_managers.yaml"
    path.write_text(_plugins())
    config = f'<contact_managers_plugin_config filename="{path}"/>'
    environment = tesseract_environment.Environment()
    locator = tesseract_common.GeneralResourceLocator()
    assert environment.init(
        f'<robot name="robot">{links}{joints}</robot>', f'<robot name="robot">{config}{allowed}</robot>', locator
    )
    return environment


def _plugins() -> str:
    """Where the managers are."""
    folder = Path(tesseract_robotics.__file__).resolve().parents[1] / "tesseract_robotics.libs"
    libraries = [path.name[3:-3] for path in sorted(folder.glob("libtesseract_collision_*_factories*"))]
    plugins = "\n".join(f"      {name}: {{class: {name}Factory}}" for name in DISCRETE.values())
    return f"""
contact_manager_plugins:
  search_paths: ["{folder}"]
  search_libraries: {libraries}
  discrete_plugins:
    default: {DISCRETE["bullet"]}
    plugins:
{plugins}
  continuous_plugins:
    default: {CAST}
    plugins:
      {CAST}: {{class: {CAST}Factory}}
"""


def _shape(part: Any) -> tuple[Any, np.ndarray]:
    """What Tesseract has for a part, and where that is in the body's frame."""
    if isinstance(part, tg.Mesh):
        vertices = tesseract_common.VectorVector3d()
        for vertex in np.asarray(part.vertices, float):
            vertices.append(vertex)
        faces = np.insert(np.asarray(part.faces, np.int32), 0, 3, axis=1).reshape(-1)
        return tesseract_geometry.Mesh(vertices, faces), np.eye(4)
    record, place = part.records[0], np.asarray(part.poses)[0]
    half = np.asarray(record["half"], float)
    if isinstance(part, tg.Box):
        return tesseract_geometry.Box(*(2.0 * half).tolist()), place
    raise TypeError(f"{part!r} has no shape of Tesseract here")


def _pose(matrix: np.ndarray) -> Any:
    return tesseract_common.Isometry3d(np.asfortranarray(matrix))
