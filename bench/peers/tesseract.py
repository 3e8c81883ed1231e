"""Tesseract (PyPI: tesseract-robotics): bodies of a robot, at instants and as hulls of both ends of a segment.

Its managers come from plugins beside the wheel's libraries. A validator of allowed pairs cannot be made from Python in
this wheel, so all contacts are asked for and those of allowed pairs dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tesseract_robotics
from tesseract_robotics import tesseract_collision, tesseract_common, tesseract_geometry

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
    """

    def __init__(self, parts: Sequence[Any], moving: Sequence[bool], pairs: np.ndarray, manager: str) -> None:
        self._factory = _factory()
        made = (
            self._factory.createContinuousContactManager
            if manager == CAST
            else self._factory.createDiscreteContactManager
        )
        self._owner = made(manager)
        self._manager, self._cast = self._owner.get(), manager == CAST
        self._names = [f"body {k}" for k in range(len(parts))]
        self._moving = np.flatnonzero(moving)
        self._pairs = {frozenset((self._names[a], self._names[b])) for a, b in pairs.tolist()}
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
        request = tesseract_collision.ContactRequest(tesseract_collision.ContactTestType_ALL)
        self._manager.contactTest(found, request)
        results = tesseract_collision.ContactResultVector()
        found.flattenMoveResults(results)
        return any(result.distance <= 0.0 and frozenset(_names(result)) in self._pairs for result in results)


def _names(result: Any) -> Iterable[str]:
    return (result.link_names[0], result.link_names[1])


def _factory() -> Any:
    folder = Path(tesseract_robotics.__file__).resolve().parents[1] / "tesseract_robotics.libs"
    libraries = [path.name[3:-3] for path in sorted(folder.glob("libtesseract_collision_*_factories*"))]
    plugins = "\n".join(f"      {name}: {{class: {name}Factory}}" for name in DISCRETE.values())
    config = f"""
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
    return tesseract_collision.ContactManagersPluginFactory(config, tesseract_common.GeneralResourceLocator())


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
