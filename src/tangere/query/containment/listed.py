"""Which body of a list that mixes kinds begins inside another one: meshes, analytic bodies and ground.

Question: the smallest pair of a list, or of two lists, of which one solid is inside the other at t = 0.
Method:   pairs whose boxes meet then, all of them together (`containment.api`). Of two analytic bodies one is
          inside the other only where they overlap, and so it is with ground: both are known without being asked.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import warp as wp

from tangere.broad_phase.bodies import box_pairs
from tangere.query.contacts.record import Status
from tangere.query.containment.api import check_solid, contained_vertices, inside_contacts
from tangere.query.containment.specks import posed_solid
from tangere.query.first_contact.result import FirstContact
from tangere.query.first_contact.rigid.scene import allowed_pairs
from tangere.query.listed_bodies import ListedBody, listed
from tangere.runtime import Arrays, choose_device
from tangere.shape.mesh import Mesh


def solids_of(a: Any, b: Any = None) -> tuple[list[ListedBody], list[ListedBody]]:
    """The bodies of one list, and of the other; raises unless each mesh has an inside."""
    sides = []
    for things, name in ((a, "a" if b is not None else "the list"), (b, "b")):
        bodies = [] if things is None else listed(things, name)
        for number, body in enumerate(bodies):
            if isinstance(body.shape, Mesh):
                check_solid(body.thing, f"body {number} of {name}")
        sides.append(bodies)
    return sides[0], sides[1]


def listed_starting_inside(
    found: FirstContact, a: Any, b: Any, allowed: Arrays | None, device: str | wp.Device | None
) -> FirstContact:
    """What was found of bodies of one list or of two, but START and INSIDE where one begins inside another."""
    if found.status == Status.START:
        return found
    first, second = solids_of(a, b)
    bodies = [*first, *second]
    solid = np.array([k for k, body in enumerate(bodies) if not body.is_ground], int)
    if len(solid) < 2:
        return found
    posed = {k: posed_solid(bodies[k].thing, 0.0) for k in solid.tolist()}
    points = [each.mesh.vertices @ each.poses[0, :3, :3].T + each.poses[0, :3, 3] for each in posed.values()]
    boxes = np.array([[each.min(axis=0), each.max(axis=0)] for each in points], np.float32)
    boxes[:, 0], boxes[:, 1] = np.nextafter(boxes[:, 0], -np.inf), np.nextafter(boxes[:, 1], np.inf)
    pairs = solid[box_pairs(boxes, device=choose_device(device))].astype(np.int64).reshape(-1, 2)
    if b is None:
        still = np.array([body.is_still for body in bodies])
        dropped = allowed_pairs(allowed, [getattr(body.shape, "name", "") or "" for body in bodies])
        pairs = pairs[~still[pairs].all(axis=1)]
        pairs = pairs[~np.isin(pairs @ [len(bodies), 1], dropped @ [len(bodies), 1])]
    else:
        pairs = pairs[(pairs[:, 0] < len(first)) & (pairs[:, 1] >= len(first))]
    is_mesh = np.array([isinstance(body.shape, Mesh) for body in bodies])
    pairs = pairs[is_mesh[pairs].any(axis=1)]
    pairs = pairs[np.lexsort(pairs.T[::-1])]
    shapes = list(dict.fromkeys(each.mesh for each in posed.values()))
    shape, poses = np.zeros(len(bodies), int), np.tile(np.eye(4), (len(bodies), 1, 1))
    for k, each in posed.items():
        shape[k], poses[k] = shapes.index(each.mesh), each.poses[0]
    inner = contained_vertices(shapes, shape, poses, np.concatenate([pairs, pairs[:, ::-1]]), device)
    hits = np.flatnonzero(inner.reshape(2, -1).max(axis=0) >= 0)
    if not len(hits):
        return found
    i, j = pairs[hits[0]].tolist()
    contacts = inside_contacts(posed[i], posed[j], device)
    contacts.body_a[:], contacts.body_b[:] = i, j - (0 if b is None else len(first))
    return replace(found, time=0.0, time_upper=0.0, status=Status.START, contacts=contacts)
