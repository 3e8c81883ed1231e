"""Robots and cells of the tests."""

from __future__ import annotations

import numpy as np

import tangere as tg


def place(x=0.0, y=0.0, z=0.0) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


def coal_shape(part):
    """What coal has for a part of a body, and where that is in the body's frame."""
    import coal

    if isinstance(part, tg.Mesh):
        model = coal.BVHModelOBBRSS()
        model.beginModel(len(part.faces), len(part.vertices))
        vertices, triangles = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
        for vertex in part.vertices:
            vertices.append(vertex)
        for face in part.faces:
            triangles.append(coal.Triangle(*map(int, face)))
        model.addSubModel(vertices, triangles)
        model.endModel()
        return model, np.eye(4)
    record = part.records[0]
    radius, half = float(record["radius"]), np.asarray(record["half"], float)
    made = {
        tg.Sphere: lambda: coal.Sphere(radius),
        tg.Capsule: lambda: coal.Capsule(radius, 2.0 * half[2]),
        tg.Box: lambda: coal.Box(*(2.0 * half)),
        tg.Cylinder: lambda: coal.Cylinder(radius, 2.0 * half[2]),
        tg.Cone: lambda: coal.Cone(radius, 2.0 * half[2]),
    }[type(part)]()
    return made, np.asarray(part.poses)[0]


def world() -> dict[str, tg.Mesh]:
    """A table, a thin plate and a ball that an arm may run into."""
    return {
        "table": tg.generate.box((1.6, 1.6, 0.05)).at(place(z=-0.03)),
        "plate": tg.generate.box((0.3, 0.001, 0.5)).at(place(0.35, 0.25, 0.5)),
        "ball": tg.generate.icosphere(subdivisions=2, radius=0.12).at(place(-0.3, -0.35, 0.5)),
    }


def trajectories(rng: np.random.Generator, robot, count: int, points: int) -> np.ndarray:
    """(count, points, dof) through random configurations."""
    low, high = np.clip(robot.limits, -2.0, 2.0).T
    ends = rng.uniform(low, high, (count, 2, len(low)))
    share = np.linspace(0.0, 1.0, points)[None, :, None]
    return ends[:, :1] + share * (ends[:, 1:] - ends[:, :1])
