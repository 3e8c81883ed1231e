"""Deforming bodies: contact by layered depth images and by rays, two alternatives the document surveys.

Small reference implementations of methods that Léonard 2021, chapter 2, surveys, for comparison only. Layered depth
images: parallel rays through two closed bodies give intervals inside each; what the intervals share, times the area of
a pixel, is the volume of the overlap, whose error is told by resolution against the exact volume that the two convex
polyhedra share. Rays: from every vertex one goes inward, against the normal; if it leaves the other body before its
own, vertex and point are a contact, and the length its depth.
"""

from __future__ import annotations

import numpy as np
import warp as wp
from scipy.spatial import ConvexHull, HalfspaceIntersection

from bench.harness import Report, measure
from tangere.query.proximity import proximity
from tangere.shape import generate
from tangere.shape.mesh import Mesh

FEATURES = ["F-L-77", "F-L-78"]

#: Layers of a body along a ray that are kept.
LAYERS = wp.constant(16)
Depths = wp.types.vector(length=16, dtype=wp.float32)
APART = 1.4


def run(report: Report, quick: bool = False) -> None:
    device = "cuda" if wp.is_cuda_available() else "cpu"
    balls = two_balls(4 if quick else 5)
    exact = shared_volume(*balls)
    report.section("Volume of the overlap of two balls by layered depth images")
    rows, errors = [], []
    for pixels in (16, 32, 64, 128) if quick else (16, 32, 64, 128, 256, 512):
        timing = measure({"": lambda n=pixels: overlap_volume(*balls, n, device)}, rounds=3)[""]
        errors.append(abs(timing.result - exact) / exact)
        rows.append([f"{pixels} x {pixels}", f"{timing.result:.6f}", f"{errors[-1]:.2e}", timing])
    report.table(["pixels", "volume", "relative error", "time"], rows)
    report.note(
        f"""The polyhedra of {len(balls[0].faces)} triangles share {exact:.6f} exactly: the intersection of the
        half-spaces of their faces."""
    )
    # Depths are single numbers: below that the error cannot fall.
    assert errors[-1] < max(0.1 * errors[0], 1e-5), "the error must fall with the resolution"
    report.section("Contacts of the same balls by rays")
    timing = measure({"": lambda: ray_contacts(*balls, device)}, rounds=3)[""]
    depth = timing.result
    inside = int((np.linalg.norm(balls[0].vertices - [APART, 0.0, 0.0], axis=1) < 1.0).sum())
    near = proximity(*balls, distance=1e-2, device=device)
    report.table(
        [
            "vertices in contact",
            "of them inside",
            "greatest depth",
            "exact",
            "time",
            "near pairs",
        ],
        [[int((depth > 0).sum()), inside, f"{depth.max():.4f}", f"{2.0 - APART:.4f}", timing, len(near)]],
    )
    report.note("Near pairs, for comparison, are where the surfaces cross; rays see what is inside.")
    assert abs(depth.max() - (2.0 - APART)) < 0.02


def two_balls(subdivisions: int) -> tuple[Mesh, Mesh]:
    """Unit balls whose middles are `APART`."""
    ball = generate.icosphere(subdivisions=subdivisions)
    return ball, ball.replace(vertices=ball.vertices + [APART, 0.0, 0.0])


def shared_volume(a: Mesh, b: Mesh) -> float:
    """The volume that two convex meshes share, exactly [m^3]."""
    corners = np.concatenate([mesh.vertices[mesh.faces] for mesh in (a, b)])
    normals = np.concatenate([mesh.face_normals for mesh in (a, b)])
    planes = np.concatenate([normals, -(normals * corners[:, 0]).sum(axis=1, keepdims=True)], axis=1)
    return float(ConvexHull(HalfspaceIntersection(planes, np.array([0.5 * APART, 0.0, 0.0])).intersections).volume)


def overlap_volume(a: Mesh, b: Mesh, pixels: int, device: str) -> float:
    """The volume that two closed meshes share, by pixels x pixels rays along z [m^3]."""
    low, high = np.maximum(a.bounds[0], b.bounds[0]), np.minimum(a.bounds[1], b.bounds[1])
    if (low >= high).any():
        return 0.0
    size = (high - low)[:2] / pixels
    lengths = wp.empty((pixels, pixels), dtype=wp.float32, device=device)
    shapes = [_on_device(mesh, device) for mesh in (a, b)]
    begin = float(min(a.bounds[0, 2], b.bounds[0, 2])) - 1.0
    inputs = [*(shape.id for shape in shapes), wp.vec3(low[0], low[1], begin), wp.vec2(*size)]
    wp.launch(_shared_length, pixels * pixels, inputs, [lengths], device=device)
    return float(lengths.numpy().sum(dtype=float) * size[0] * size[1])


def ray_contacts(a: Mesh, b: Mesh, device: str) -> np.ndarray:
    """(n,) depth of each vertex of a in b along its ray [m]; 0 where there is no contact."""
    corners = a.vertices[a.faces]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = np.zeros_like(a.vertices)
    for k in range(3):
        np.add.at(normals, a.faces[:, k], across)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    depth = wp.zeros(len(normals), dtype=wp.float32, device=device)
    own, other = (_on_device(mesh, device) for mesh in (a, b))
    points = [wp.array(x, dtype=wp.vec3, device=device) for x in (a.vertices, normals)]
    wp.launch(_inward, len(normals), [own.id, other.id, *points, 1e-4], [depth], device=device)
    return depth.numpy()


def _on_device(mesh: Mesh, device: str) -> wp.Mesh:
    points = wp.array(mesh.vertices, dtype=wp.vec3, device=device)
    return wp.Mesh(points, wp.array(mesh.faces.ravel(), dtype=wp.int32, device=device))


@wp.func
def layers(mesh: wp.uint64, origin: wp.vec3) -> Depths:
    """Where a ray along z enters and leaves a body, in order; the rest is far away."""
    found = Depths(1.0e30)
    at = float(0.0)
    number = int(0)
    going = bool(True)
    while going and number < LAYERS:
        hit = wp.mesh_query_ray(mesh, origin + wp.vec3(0.0, 0.0, at), wp.vec3(0.0, 0.0, 1.0), 1.0e6)
        going = hit.result
        if going:
            found[number] = at + hit.t
            at = found[number] + 1.0e-5
            number += 1
    return found


@wp.kernel(enable_backward=False)
def _shared_length(a: wp.uint64, b: wp.uint64, low: wp.vec3, size: wp.vec2, lengths: wp.array2d[float]):
    i = wp.tid() / lengths.shape[1]
    j = wp.tid() % lengths.shape[1]
    # Not quite the middle of a pixel: a regular mesh has edges there.
    origin = low + wp.vec3((float(i) + 0.5017) * size[0], (float(j) + 0.4983) * size[1], 0.0)
    in_a = layers(a, origin)
    in_b = layers(b, origin)
    shared = float(0.0)
    for k in range(LAYERS / 2):
        for m in range(LAYERS / 2):
            if in_a[2 * k + 1] < 1.0e30 and in_b[2 * m + 1] < 1.0e30:
                overlap = wp.min(in_a[2 * k + 1], in_b[2 * m + 1]) - wp.max(in_a[2 * k], in_b[2 * m])
                shared += wp.max(overlap, 0.0)
    lengths[i, j] = shared


@wp.kernel(enable_backward=False)
def _inward(
    own: wp.uint64,
    other: wp.uint64,
    points: wp.array[wp.vec3],
    normals: wp.array[wp.vec3],
    clearance: float,
    depth: wp.array[float],
):
    i = wp.tid()
    origin = points[i] - clearance * normals[i]
    out = wp.mesh_query_ray(own, origin, -normals[i], 1.0e6)
    hit = wp.mesh_query_ray(other, origin, -normals[i], 1.0e6)
    # Leaving the other body (its normal along the ray) means that the ray began in it.
    if out.result and hit.result and hit.t < out.t and wp.dot(hit.normal, normals[i]) < 0.0:
        depth[i] = hit.t + clearance
