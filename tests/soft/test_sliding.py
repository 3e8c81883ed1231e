"""What slides over a surface is not held back by the vertices and edges within it, however finely it is cut."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from tangere.query.contacts import Kind
from tangere.shape import generate
from tangere.shape.mesh import Mesh
from tangere.shape.tets import solid_block
from tangere.soft import Body, Simulation, step
from tangere.soft.safe_step.patches import Patches

SHEETS = [2, 300, 3000]


def placed(shape, *at: float):
    pose = np.eye(4)
    pose[:3, 3] = at
    return shape.at(pose)


def on_floor(shape, floor: Mesh, friction: float = 0.0, **options) -> Simulation:
    bodies = [Body(shape, **{"youngs_modulus": 1e5, "density": 100.0, **options}), Body(floor, fixed=True)]
    return Simulation(bodies, distance=0.02, friction=friction, device="cpu")


CUBE = solid_block((2, 2, 2), size=(0.2, 0.2, 0.2))


@pytest.mark.parametrize("triangles", SHEETS)
@pytest.mark.parametrize("shape", [CUBE, generate.icosphere(3, radius=0.2)], ids=["cube", "ball"])
def test_without_friction_nothing_is_slower_on_a_finer_floor(shape, triangles):
    half = -shape.vertices[:, 2].min()
    start = placed(shape, -3.0, 0.0, half + 0.02)
    simulation = on_floor(
        start, generate.sheet(triangles, size=(8.0, 2.0)), youngs_modulus=1e6, velocity=(1.5, 0.0, 0.0)
    )
    simulation.run(steps=40)
    velocity = simulation[0].velocities.mean(axis=0)
    assert velocity[:2] == pytest.approx([1.5, 0.0], abs=1e-3)
    assert simulation[0].positions[:, 2].min() == pytest.approx(0.02, abs=2e-3)


@pytest.mark.parametrize("floor", [*SHEETS, "plate"])
def test_what_falls_straight_down_stays_where_it_falls(floor):
    ground = generate.sheet(floor, size=(2.0, 2.0)) if floor != "plate" else generate.plate(996, size=(2.0, 2.0, 0.1))
    top = ground.vertices[:, 2].max()
    simulation = on_floor(placed(CUBE, 0.013, 0.027, top + 0.4), ground)
    simulation.run(steps=100)
    assert simulation[0].positions.mean(axis=0)[:2] == pytest.approx([0.013, 0.027], abs=1e-4)


@pytest.mark.parametrize("triangles", SHEETS)
@pytest.mark.parametrize("friction", [0.1, 0.3])
def test_friction_is_that_of_the_weight_on_a_floor_cut_finely(friction, triangles):
    floor = generate.sheet(triangles, size=(8.0, 2.0))
    simulation = on_floor(placed(CUBE, -3.0, 0.0, 0.12), floor, friction, velocity=(2.0, 0.0, 0.0))
    simulation.run(steps=20)
    slowing = (2.0 - simulation[0].velocities[:, 0].mean()) / 0.4
    assert slowing == pytest.approx(9.81 * friction, rel=0.06)


def test_a_free_plate_cut_finely_does_not_brake_what_slides_over_it():
    bodies = [
        Body(placed(CUBE, -1.0, 0.0, 0.05 + 0.12), youngs_modulus=1e5, density=100.0, velocity=(1.0, 0.0, -0.1)),
        Body(solid_block((40, 10, 2), size=(4.0, 1.0, 0.1)), youngs_modulus=1e6, density=1000.0),
    ]
    simulation = Simulation(bodies, gravity=(0.0, 0.0, 0.0), distance=0.02, friction=0.0, device="cpu")
    simulation.run(steps=30)
    velocity = simulation[0].velocities.mean(axis=0)
    assert velocity == pytest.approx([1.0, 0.0, 0.0], abs=5e-3)  # what it had downward is gone


def distances(point: np.ndarray, mesh: Mesh) -> np.ndarray:
    """(f,) of a point from every face, by the plane where its foot is inside and by the sides where not."""
    a, b, c = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
    best = np.full(len(a), np.inf)
    for start, end in ((a, b), (b, c), (c, a)):
        way = end - start
        part = np.clip(((point - start) * way).sum(axis=1) / (way * way).sum(axis=1), 0.0, 1.0)
        best = np.minimum(best, np.linalg.norm(point - start - part[:, None] * way, axis=1))
    normal = np.cross(b - a, c - a)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    height = ((point - a) * normal).sum(axis=1)
    foot = point - height[:, None] * normal
    inside = np.all([(np.cross(e - s, foot - s) * normal).sum(axis=1) > 0 for s, e in ((a, b), (b, c), (c, a))], axis=0)
    return np.where(inside, np.abs(height), best)


@pytest.mark.parametrize("alone", [False, True], ids=["eight at a time", "one by one"])
def test_vertices_touch_faces_that_no_neighbour_is_nearer_than_and_the_nearest_of_all(alone, rng, monkeypatch):
    """Against all distances: a ball and a block above hilly ground, at random places."""
    if alone:  # is how CUDA searches
        monkeypatch.setattr(step, "Patches", partial(Patches, per_feature=True))
    ground = generate.sheet(800, size=(4.0, 4.0))
    x, y = ground.vertices[:, 0], ground.vertices[:, 1]
    hills = 0.15 * np.sin(3.0 * x) * np.cos(2.0 * y) + 0.02 * rng.standard_normal(len(x))
    ground = ground.replace(vertices=np.stack([x, y, hills], axis=1))
    distance, found = 0.1, 0
    for shape in (CUBE, generate.icosphere(2, radius=0.3)) * 8:
        lowest = shape.vertices[:, 2].min()
        at = rng.uniform(-1.5, 1.5, 2)
        near = np.linalg.norm(ground.vertices[:, :2] - at, axis=1) < 0.5
        body = placed(shape, *at, hills[near].max() - lowest + 0.03)
        simulation = Simulation([Body(body, density=1.0), Body(ground, fixed=True)], distance=distance, device="cpu")
        simulation.step()
        contacts = simulation.contacts
        corners = contacts.kind == Kind.VERTEX_FACE
        meshes = (Body(body, density=1.0).surface, ground)
        touched = {}
        for k in np.flatnonzero(corners):
            mine, other = meshes[contacts.body_a[k]], meshes[contacts.body_b[k]]
            v, f = contacts.feature_a[k], contacts.feature_b[k]
            away = distances(mine.vertices[v], other)
            carrying = contacts.weights[k][1:] > 0
            around = np.isin(other.faces, other.faces[f][carrying]).sum(axis=1) == carrying.sum()
            assert away[f] <= away[around].min() + 1e-9
            touched.setdefault((int(contacts.body_a[k]), int(v)), []).append(away[f])
            found += 1
        for number, mine in enumerate(meshes):
            for v in range(len(mine.vertices)):
                least = distances(mine.vertices[v], meshes[1 - number]).min()
                if least < distance:
                    assert min(touched[number, v]) == pytest.approx(least, abs=1e-9)
    assert found > 100
