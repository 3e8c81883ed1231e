"""A small ray caster on `wp.Mesh`: triangles in, linear colours out. No browser, no GPU, no window needed.

Light:    a key light with soft shadows from above the camera's shoulder, a sky brighter than the ground, and ambient
          occlusion by short rays, which shows where surfaces come close: the thing this library is about.
Markers:  contact marks are a second mesh; where a body hides one it shines through faintly.
Precision: float32, in coordinates scaled to the size of the scene; nothing here decides a contact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from tangere.runtime import launch

wp.set_module_options({"enable_backward": False})

#: Rays that look for occluders, per sample; samples of one pixel share one even pattern of directions.
_OCCLUSION_RAYS = wp.constant(4)
_OCCLUSION_REACH = wp.constant(0.2)
#: See-through surfaces passed before a ray is taken to be absorbed.
_LAYERS = wp.constant(12)
#: Start of a secondary ray above its surface, in scene sizes: beyond the float32 error of the hit.
_LIFT = wp.constant(2.0e-5)
_FAR = wp.constant(1.0e3)
_SHINE_THROUGH = wp.constant(0.6)


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles to draw."""

    vertices: np.ndarray  #: (n, 3)
    normals: np.ndarray  #: (n, 3) unit, per vertex, for smooth shading
    faces: np.ndarray  #: (m, 3)
    colours: np.ndarray  #: (m, 4) linear red, green, blue, and opacity, per face


def cast(
    bodies: Surface,
    marks: Surface,
    eye: np.ndarray,
    right: np.ndarray,
    up: np.ndarray,
    forward: np.ndarray,
    size: tuple[int, int],
    samples: int,
    device: wp.Device,
) -> np.ndarray:
    """The picture as linear colours, shape (height, width, 3) float32.

    Args:
        eye, right, up, forward: a pinhole camera; `right` and `up` are as long as half the picture is wide and high
            at distance 1. All coordinates are such that the scene has size about 1.
        size: width and height in pixels.
        samples: rays per pixel along each side of the pixel.
    """
    lens = [wp.vec3(*map(float, vector)) for vector in (eye, right, up, forward)]
    pixels = wp.empty(size[0] * size[1], dtype=wp.vec3, device=device)
    body_mesh, *body_arrays = _upload(bodies, device)
    mark_mesh, *mark_arrays = _upload(marks, device)
    inputs = [*lens, size[0], size[1], samples]
    inputs += [body_mesh.id if body_mesh else wp.uint64(0), *body_arrays]
    inputs += [mark_mesh.id if mark_mesh else wp.uint64(0), *mark_arrays]
    launch(_cast, len(pixels), inputs, [pixels], device=device, grain=256)
    return pixels.numpy().reshape(size[1], size[0], 3)


def _upload(surface: Surface, device: wp.Device) -> tuple[wp.Mesh | None, wp.array, wp.array, wp.array]:
    points = wp.array(surface.vertices, dtype=wp.vec3, device=device)
    faces = wp.array(surface.faces, dtype=wp.vec3i, device=device)
    normals = wp.array(surface.normals, dtype=wp.vec3, device=device)
    colours = wp.array(surface.colours, dtype=wp.vec4, device=device)
    mesh = wp.Mesh(points, faces.view(wp.int32).flatten()) if len(faces) else None
    return mesh, faces, normals, colours


@wp.func
def _nearest(mesh: wp.uint64, start: wp.vec3, ray: wp.vec3, reach: float):
    """What a ray meets first: `result`, and where that is true `t`, `u`, `v`, `normal` and `face`."""
    return wp.mesh_query_ray(mesh, start, ray, reach)


nearest: Any = _nearest  # Warp's stubs do not know the fields of the answer.


@wp.func
def smooth_normal(face: wp.vec3i, normals: wp.array[wp.vec3], flat: wp.vec3, u: float, v: float) -> wp.vec3:
    """Interpolated normal on the side of `flat`; `flat` itself where the surface has a crease."""
    normal = u * normals[face[0]] + v * normals[face[1]] + (1.0 - u - v) * normals[face[2]]
    if wp.dot(normal, flat) < 0.0:
        normal = -normal
    length = wp.length(normal)
    if wp.dot(normal, flat) < 0.6 * length or length < 0.2:
        return flat
    return normal / length


@wp.func
def openness(
    bodies: wp.uint64, point: wp.vec3, normal: wp.vec3, first: int, total: int, turn: float, reach: float
) -> float:
    """Share of a few cosine-distributed rays from `point` that meet nothing near."""
    side = wp.vec3(1.0, 0.0, 0.0)
    if wp.abs(normal[0]) > 0.7:
        side = wp.vec3(0.0, 1.0, 0.0)
    tangent = wp.normalize(wp.cross(normal, side))
    bitangent = wp.cross(normal, tangent)
    light = wp.float32(0.0)
    for k in range(_OCCLUSION_RAYS):
        share = (float(first + k) + 0.5) / float(total)
        radius = wp.sqrt(share)
        angle = 2.39996323 * float(first + k) + 6.2831853 * turn
        ray = radius * (wp.cos(angle) * tangent + wp.sin(angle) * bitangent) + wp.sqrt(1.0 - share) * normal
        hit = nearest(bodies, point, ray, reach)
        if hit.result:
            light += hit.t / reach
        else:
            light += 1.0
    return light / float(_OCCLUSION_RAYS)


@wp.func
def key_light(right: wp.vec3, up: wp.vec3, forward: wp.vec3) -> wp.vec3:
    """Direction towards the light: above the camera's left shoulder."""
    return wp.normalize(0.75 * wp.normalize(up) - 0.55 * wp.normalize(right) - 0.8 * forward)


@wp.func
def lit(
    albedo: wp.vec3, normal: wp.vec3, ray: wp.vec3, key: wp.vec3, up: wp.vec3, shade: float, openness: float
) -> wp.vec3:
    """Light that a matt, faintly glossy surface sends back along `ray`."""
    diffuse = wp.max(wp.dot(normal, key), 0.0) * shade
    sky = 0.5 + 0.5 * wp.dot(normal, wp.normalize(up))
    facing = wp.max(-wp.dot(normal, ray), 0.0)
    gloss = wp.pow(wp.max(wp.dot(normal, wp.normalize(key - ray)), 0.0), 40.0) * shade
    ambient = openness * (0.24 + 0.28 * sky + 0.10 * facing)
    return (0.68 * diffuse + ambient) * albedo + 0.10 * gloss * wp.vec3(1.0, 1.0, 1.0)


@wp.func
def backdrop(height: float) -> wp.vec3:
    """Nearly white, a little darker towards the bottom; `height` from -1 to 1."""
    grey = 0.84 + 0.09 * height
    return wp.vec3(grey, grey, grey * 1.015)


@wp.kernel
def _cast(
    first: int,
    eye: wp.vec3,
    right: wp.vec3,
    up: wp.vec3,
    forward: wp.vec3,
    width: int,
    height: int,
    samples: int,
    bodies: wp.uint64,
    faces: wp.array[wp.vec3i],
    normals: wp.array[wp.vec3],
    colours: wp.array[wp.vec4],
    marks: wp.uint64,
    mark_faces: wp.array[wp.vec3i],
    mark_normals: wp.array[wp.vec3],
    mark_colours: wp.array[wp.vec4],
    pixels: wp.array[wp.vec3],
):
    i = first + wp.tid()
    column = i % width
    row = i // width
    # Interleaved gradient noise: neighbouring pixels turn their ray pattern differently, and always the same way.
    turn = wp.frac(52.9829189 * wp.frac(0.06711056 * float(column) + 0.00583715 * float(row)))
    key = key_light(right, up, forward)
    total = wp.vec3(0.0, 0.0, 0.0)
    for s in range(samples * samples):
        x = 2.0 * (float(column) + (float(s % samples) + 0.5) / float(samples)) / float(width) - 1.0
        y = 1.0 - 2.0 * (float(row) + (float(s // samples) + 0.5) / float(samples)) / float(height)
        ray = wp.normalize(forward + x * right + y * up)

        mark_distance = wp.float32(_FAR)
        mark_colour = wp.vec3(0.0, 0.0, 0.0)
        if marks != wp.uint64(0):
            mark = nearest(marks, eye, ray, _FAR)
            if mark.result:
                mark_distance = mark.t
                rgba = mark_colours[mark.face]
                towards = wp.normalize(wp.dot(mark.normal, ray) * -mark.normal)
                normal = smooth_normal(mark_faces[mark.face], mark_normals, towards, mark.u, mark.v)
                mark_colour = lit(wp.vec3(rgba[0], rgba[1], rgba[2]), normal, ray, key, up, 1.0, 1.0)

        colour = wp.vec3(0.0, 0.0, 0.0)
        passing = wp.float32(1.0)
        hidden = wp.float32(1.0)
        distance = wp.float32(0.0)
        for _layer in range(_LAYERS):
            hit = nearest(bodies, eye + distance * ray, ray, _FAR)
            if not hit.result or distance + hit.t > mark_distance:
                break
            distance = distance + hit.t + _LIFT
            rgba = colours[hit.face]
            flat = wp.normalize(wp.dot(hit.normal, ray) * -hit.normal)
            normal = smooth_normal(faces[hit.face], normals, flat, hit.u, hit.v)
            above = eye + (distance - _LIFT) * ray + _LIFT * 5.0 * flat
            angle = 6.2831853 * (turn + float(s) / float(samples * samples))
            jitter = 0.05 * (wp.cos(angle) * wp.normalize(right) + wp.sin(angle) * wp.normalize(up))
            shade = wp.float32(1.0)
            if wp.dot(normal, key) > 0.0:
                shadow = nearest(bodies, above, wp.normalize(key + jitter), _FAR)
                if shadow.result:
                    shade = 0.35
            spread = samples * samples * _OCCLUSION_RAYS
            open_sky = openness(bodies, above, flat, s * _OCCLUSION_RAYS, spread, turn, _OCCLUSION_REACH)
            seen = lit(wp.vec3(rgba[0], rgba[1], rgba[2]), normal, ray, key, up, shade, open_sky)
            colour += passing * rgba[3] * seen
            passing = passing * (1.0 - rgba[3])
            hidden = _SHINE_THROUGH
            if passing < 0.01:
                break
        if mark_distance < _FAR:
            if passing < 0.01:
                colour = (1.0 - hidden) * colour + hidden * mark_colour
            else:
                colour += passing * mark_colour
        else:
            colour += passing * backdrop(y)
        total += colour
    pixels[i] = total / float(samples * samples)
