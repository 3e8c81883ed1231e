"""Contacts of bodies with a plane, and of cylinders with spheres.

Plane:  the points that can rest on it (`narrow_phase.contact`), cut to four; upright cylinders have four, lying ones
        two, oblique ones one (Strashnov and Torgashev 2020, section IV).
Sphere: the point of the cylinder nearest to its centre; where the centre is inside, the nearest way out through base or
        side.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import warp as wp

from tangere.query.contacts.record import Contacts
from tangere.query.manifold.details import ContactPoint, ManifoldRow, contact_point, contacts_of, row_of
from tangere.query.manifold.narrow_phase.contact import FLAT_ANGLE, support_point_of
from tangere.query.manifold.reduction import (
    TIE,
    ContactGroups,
    add_contact,
    clear_groups,
    empty_groups,
    kept_contact,
    reduce_group,
)
from tangere.runtime import SOUND, Arrays, InputError, choose_device, collect, reserve_slots, to_numpy, using_threads
from tangere.shape.analytic import Analytic, AnalyticShape, Cylinder, Hulls, Sphere, hull_tables, place, support_of

wp.set_module_options(SOUND)

GRAIN = 4096
_ZERO = wp.constant(wp.float64(0.0))
_SLACK = wp.constant(wp.float64(1.0e-9))


def on_plane(
    bodies: Analytic,
    normal: Arrays,
    offset: float,
    *,
    distance: float = 0.0,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> Contacts:
    """Where n bodies rest on the half space normal . p <= offset: at most four contacts each.

    Args:
        bodies: placed bodies.
        normal: unit, shape (3,).
        offset: of the plane along it [m].
        distance: gaps up to this count [m].
        device, threads: as for `manifold`.
    """
    up = to_numpy(normal, "normal")
    if up.shape != (3,) or not abs(float(up @ up) - 1.0) < 1e-9:
        raise InputError(f"normal must be a unit vector, not {up.tolist()}")
    device = choose_device(device, bodies.poses)
    slots = len(bodies) if device.is_cuda else -(-len(bodies) // GRAIN)
    inputs = [
        wp.array(bodies.records, dtype=AnalyticShape, device=device),
        wp.array(to_numpy(bodies.poses, "poses"), dtype=wp.mat44d, device=device),
        hull_tables(bodies.hull, device.alias),
        wp.vec3d(*up),
        float(offset),
        float(distance),
        empty_groups(slots, 1, device),
        int(device.is_cuda),
    ]
    with using_threads(threads):
        rows = collect(_plane_kernel(bodies.kind), len(bodies), inputs, ManifoldRow, device=device, grain=GRAIN)
        return contacts_of(rows, None, bodies.poses, ordered=device.is_cpu)


def cylinder_sphere(
    cylinders: Cylinder,
    spheres: Sphere,
    *,
    distance: float = 0.0,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> Contacts:
    """The contact of each of n cylinders with its sphere (n with n, or with 1); normals push the cylinder away.

    Args:
        cylinders, spheres: placed bodies.
        distance: gaps up to this count [m].
        device, threads: as for `manifold`.
    """
    count = max(len(cylinders), len(spheres))
    if len(cylinders) not in (1, count) or len(spheres) not in (1, count):
        counts = f"{len(cylinders)} cylinders do not pair off with {len(spheres)} spheres"
        raise InputError(f"{counts}: as many of both, or one of either")
    device = choose_device(device, cylinders.poses)
    inputs = [
        wp.array(cylinders.records, dtype=AnalyticShape, device=device),
        wp.array(to_numpy(cylinders.poses, "poses"), dtype=wp.mat44d, device=device),
        wp.array(np.array(spheres.records["radius"]), dtype=wp.float64, device=device),
        wp.array(np.ascontiguousarray(to_numpy(spheres.poses, "poses")[:, :3, 3]), dtype=wp.vec3d, device=device),
        float(distance),
    ]
    with using_threads(threads):
        rows = collect(_cylinder_sphere, count, inputs, ManifoldRow, device=device, grain=GRAIN)
        return contacts_of(rows, None, cylinders.poses, ordered=device.is_cpu)


@cache
def _plane_kernel(kind: int) -> wp.Kernel:
    support = support_of(kind)
    point, point_count = support_point_of(kind)

    @wp.kernel(module="unique", module_options=SOUND)
    def rest_on_plane(
        first: int,
        shard: int,
        shapes: wp.array[AnalyticShape],
        poses: wp.array[wp.mat44d],
        hulls: Hulls,
        n: wp.vec3d,
        offset: wp.float64,
        margin: wp.float64,
        groups: ContactGroups,
        own_room: int,
        counts: wp.array[wp.int64],
        capacity: int,
        out: wp.array[ManifoldRow],
    ):
        i = first + wp.tid()
        slot = wp.where(own_room != 0, i, shard)
        pose = poses[i]
        body = place(shapes[wp.min(i, shapes.shape[0] - 1)], pose)
        origin = wp.vec3d(pose[0, 3], pose[1, 3], pose[2, 3])
        height = offset - wp.dot(origin, n)
        deepest = support(body, hulls, -n)
        most = height - wp.dot(deepest, n)
        if most < -margin:
            return
        clear_groups(groups, slot)
        for k in range(point_count(body, hulls, n)):
            p = point(body, hulls, n, k)
            depth = height - wp.dot(p, n)
            if depth >= -margin and most - depth <= FLAT_ANGLE * wp.length(p - deepest) + _SLACK * wp.length(p):
                add_contact(groups, slot, contact_point(p, n, depth, 4 * k, 0))
        retained = reduce_group(groups, slot, 0, TIE * margin)
        total = int(0)
        for c in range(4):
            if retained[c] >= 0:
                total += 1
        at = reserve_slots(counts, shard, total, capacity)
        if at >= 0:
            for c in range(4):
                if retained[c] >= 0:
                    out[at] = row_of(kept_contact(groups, slot, 0, retained[c]), i, 0, origin)
                    at += 1

    return rest_on_plane


@wp.kernel
def _cylinder_sphere(
    first: int,
    shard: int,
    shapes: wp.array[AnalyticShape],
    poses: wp.array[wp.mat44d],
    radii: wp.array[wp.float64],
    centres: wp.array[wp.vec3d],
    margin: wp.float64,
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[ManifoldRow],
):
    i = first + wp.tid()
    pose = poses[wp.min(i, poses.shape[0] - 1)]
    body = place(shapes[wp.min(i, shapes.shape[0] - 1)], pose)
    origin = wp.vec3d(pose[0, 3], pose[1, 3], pose[2, 3])
    radius = radii[wp.min(i, radii.shape[0] - 1)]
    c = centres[wp.min(i, centres.shape[0] - 1)] - origin
    along = wp.dot(c, body.axis)
    flat = c - along * body.axis
    beside = wp.length(flat)
    outward = body.side
    if beside > _ZERO:
        outward = flat / beside
    to_side = body.radius - beside
    to_base = body.reach - wp.abs(along)
    up = wp.where(along < _ZERO, -body.axis, body.axis)
    contact = ContactPoint()
    if to_side >= _ZERO and to_base >= _ZERO:  # the centre is inside: out through whatever is nearer
        if to_side < to_base:
            contact.normal = -outward
            contact.point = along * body.axis + body.radius * outward
            contact.depth = to_side + radius
        else:
            contact.normal = -up
            contact.point = flat + body.reach * up
            contact.depth = to_base + radius
    else:
        near = wp.clamp(along, -body.reach, body.reach) * body.axis + wp.min(beside, body.radius) * outward
        away = wp.length(c - near)
        contact.normal = (near - c) / away
        contact.point = near
        contact.depth = radius - away
    if contact.depth >= -margin:
        at = reserve_slots(counts, shard, 1, capacity)
        if at >= 0:
            out[at] = row_of(contact, i, 0, origin)
