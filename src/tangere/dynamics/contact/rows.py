"""Contact rows of a step: what near features ask of the velocities, to second order in time.

Question: which inequality keeps two near features from passing through each other during a step?
Method:   a gap g with the relative velocity u and the second derivative kappa is about g + dt u + dt^2/2 kappa at the
          end of the step; it shall not be below the security distance, or below what it is where that is less:
          u + max(g - target, 0) / dt + dt/2 min(kappa, 0) >= 0. Contacts that pushed in the last step have kappa of the
          velocities they left behind, so that what swings or rolls keeps its energy, but no more than what makes them
          leave as fast as they came, so that it gains none. What is left of it, and what is nearer than its target, is
          put right by `placement`, which moves bodies and changes no velocities.
          The target of a contact is the least of the security distance and the gap that its bodies had when they first
          came near; it follows the gap where that opens, and gives way where other contacts oppose: parts that fit more
          tightly than the security distance keep moving. Of bodies that do not press on each other no contact asks for
          more than the one with the least target: a face that slides over the end of another comes as near to it as its
          corners are. A push is along the normal, led into both normal cones; edges and corners that would pass by each
          other are kept apart along the line there (`passing`).
Known as: non-penetration rows with velocity-dependent terms (Redon 2002, equation 5.8); speculative contacts;
          repositioning (Redon 2002, equation 6.2), split impulses.
"""

from __future__ import annotations

import warp as wp

from tangere.dynamics.contact.passing import FaceOutlines, Passing, nearest_passing, passes_rim, passing_distance
from tangere.dynamics.contact.second_order import gap_acceleration
from tangere.dynamics.solver import ContactRowArrays, contact_frame, vec6d
from tangere.dynamics.state import BodyConstants, RigidState, at_point
from tangere.query.proximity.posed import EDGE_EDGE, EDGE_VERTEX, VERTEX_EDGE, PosedColumns, key_parts
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Of how much a contact below its target is moved apart in one step.
RECOVERY = wp.constant(wp.float64(0.2))
#: Of the security distance: contacts born nearer than this are moved apart to it, by so much of it in one step.
LEAST_TARGET, GROWTH = wp.constant(wp.float64(0.1)), wp.constant(wp.float64(0.01))
#: Of the security distance: the same for contacts that carry nothing; and to this those of bodies that fit tightly may
#: come nearer than they were.
TIGHTEST = wp.constant(wp.float64(0.01))
#: Security distances beyond which a corner above a face is asked whether it goes past its rim: others rest on it.
FAR = wp.constant(wp.float64(2.0))
#: Of a contact's target above what is always kept: what motions that close joints may take.
PLAY = wp.constant(wp.float64(0.3))


@wp.struct
class RowFacts:
    """What a world knows of its rows besides what the solver needs, one element each."""

    key: wp.array[wp.int64]  # -1: the row of a hit, which has no warm start
    kind: wp.array[int]
    feature_a: wp.array[int]
    feature_b: wp.array[int]
    point_a: wp.array[wp.vec3d]  # [m]
    point_b: wp.array[wp.vec3d]
    gap: wp.array[wp.float64]  # [m]
    target: wp.array[wp.float64]  # least gap asked for [m]
    bend: wp.array[wp.float64]  # below 0: what a hit showed that the gap loses beyond its approach [m]
    restitution: wp.array[wp.float64]
    struck: wp.array[wp.vec3d]  # what bounces within the step did, in the row's frame [N s]


@wp.struct
class KeptRows:
    """Rows of the last step: where warm starts come from. First those between meshes, then those of analytic bodies,
    each in rising order of (body a, body b, key)."""

    body_a: wp.array[int]
    body_b: wp.array[int]
    key: wp.array[wp.int64]
    force: wp.array[wp.vec3d]  # in the world frame [N]
    target: wp.array[wp.float64]  # [m]


@wp.struct
class SurfaceTable:
    """Friction and restitution of pairs of surfaces, row after row; and the edges of the meshes."""

    kinds: int
    friction: wp.array[wp.float64]
    restitution: wp.array[wp.float64]
    edge_first: wp.array[int]  # of each distinct mesh, where its edges begin
    edge: wp.array[wp.vec3d]  # unit, in the mesh's frame
    edge_length: wp.array[wp.float64]  # [m]
    outlines: FaceOutlines


@wp.struct
class Distances:
    """Lengths that a world keeps [m], its step [s], and what is at rest."""

    security: wp.float64  # eps_s: play above what is kept
    kept: wp.float64  # never nearer than this; bodies rest at both together
    held: wp.float64  # of the play, and of a pair's own clearance: how much of it the walk keeps
    rest: wp.float64  # approaches slower than this do not bounce [m/s]
    dt: wp.array[wp.float64]  # (1,)


@wp.func
def kept_place(kept: KeptRows, begin: int, count: int, a: int, b: int, key: wp.int64) -> int:
    """The first row of the last step, of those from `begin` to `count`, that is not before these bodies and key."""
    low = int(begin)
    high = int(count)
    while low < high:
        mid = (low + high) / 2
        before = kept.body_a[mid] < a
        if kept.body_a[mid] == a:
            before = kept.body_b[mid] < b or (kept.body_b[mid] == b and kept.key[mid] < key)
        if before:
            low = mid + 1
        else:
            high = mid
    return low


@wp.func
def of_pair(kept: KeptRows, count: int, row: int, a: int, b: int) -> bool:
    """Whether a row of the last step is there and of these bodies."""
    if row >= count:
        return False
    return kept.body_a[row] == a and kept.body_b[row] == b


@wp.func
def passing_of(
    found: PosedColumns,
    c: int,
    a: int,
    b: int,
    way: wp.vec3d,
    edge_a: wp.vec3d,
    edge_b: wp.vec3d,
    table: BodyConstants,
    surfaces: SurfaceTable,
) -> Passing:
    """Where two edges, or corners, of a contact are nearest on a way of a body, as the other sees it."""
    weights = found.weights[c]
    all_a = surfaces.edge_length[surfaces.edge_first[table.shape[a]] + found.feature_a[c]] * edge_a
    all_b = surfaces.edge_length[surfaces.edge_first[table.shape[b]] + found.feature_b[c]] * edge_b
    code = key_parts(found.key[c])[0]
    begin_a = found.point_a[c]
    if code != EDGE_EDGE and code != EDGE_VERTEX:
        all_a = wp.vec3d()
    begin_b = found.point_b[c]
    if code != EDGE_EDGE and code != VERTEX_EDGE:
        all_b = wp.vec3d()
    return nearest_passing(begin_a - weights[1] * all_a, all_a, way, begin_b - weights[3] * all_b, all_b)


@wp.func
def passing_rim(
    found: PosedColumns,
    c: int,
    a: int,
    b: int,
    way: wp.vec3d,
    table: BodyConstants,
    state: RigidState,
    surfaces: SurfaceTable,
) -> Passing:
    """Where a corner of a contact with a face is nearest to the rim of that, if it goes past it."""
    body = b
    corner = found.point_a[c]
    face = found.feature_b[c]
    up = found.normal[c]
    ahead = way
    if found.kind[c] == 1:
        body = a
        corner = found.point_b[c]
        face = found.feature_a[c]
        up = -up
        ahead = -way
    back = wp.transpose(state.rotation[body])
    local = back * (corner - state.position[body]) + table.centre[body]
    face += surfaces.outlines.mesh_first[table.shape[body]]
    passing = passes_rim(local, back * ahead, back * up, found.gap[c], surfaces.outlines, face)
    rim = state.rotation[body] * (passing.point_b - table.centre[body]) + state.position[body]
    passing.normal = state.rotation[body] * passing.normal
    passing.point_a = corner
    passing.point_b = rim
    if found.kind[c] == 1:
        passing.normal = -passing.normal
        passing.point_a = rim
        passing.point_b = corner
    return passing


@wp.kernel
def make_rows(
    first: int,
    chosen: wp.array[int],
    found: PosedColumns,
    pairs: wp.array[wp.vec2i],
    table: BodyConstants,
    state: RigidState,
    motion: wp.array[vec6d],
    surfaces: SurfaceTable,
    distances: Distances,
    kept: KeptRows,
    kept_range: wp.array[int],
    begin: wp.array[int],
    second_order: int,
    rows: ContactRowArrays,
    facts: RowFacts,
):
    """Rows behind the first `begin[0]` ones.

    Args:
        motion: of each body in the step without contacts.
        kept_range: from where to where rows of the last step are of this kind.
    """
    k = first + wp.tid()
    c = chosen[k]
    i = begin[0] + k
    pair = pairs[found.pair[c]]
    a = pair[0]
    b = pair[1]
    normal = found.push[c]
    gap = found.gap[c] * wp.max(wp.dot(normal, found.normal[c]), wp.float64(0.0))
    point_a = found.point_a[c]
    point_b = found.point_b[c]
    middle = wp.float64(0.5) * (point_a + point_b)
    arm_a = middle - state.position[a]
    arm_b = middle - state.position[b]
    kind = found.kind[c]
    edge_a = wp.vec3d()
    edge_b = wp.vec3d()
    if kind == 2:
        edge_a = edge_of(a, found.feature_a[c], table, state, surfaces)
        edge_b = edge_of(b, found.feature_b[c], table, state, surfaces)
    dt = distances.dt[0]
    frame = contact_frame(normal)
    whole = distances.kept + distances.security
    target = wp.min(whole, gap)
    force = wp.vec3d()
    count = kept_range[1]
    touched = kept_place(kept, kept_range[0], count, a, b, wp.int64(-1))
    known = wp.bool(False)
    loaded = wp.bool(False)
    least = whole  # targets of this pair
    most = wp.float64(0.0)
    while of_pair(kept, count, touched, a, b):
        loaded = loaded or wp.length_sq(kept.force[touched]) > wp.float64(0.0)
        least = wp.min(least, kept.target[touched])
        most = wp.max(most, kept.target[touched])
        if kept.key[touched] == found.key[c]:
            known = True
            target = kept.target[touched]
            force = kept.force[touched]
        touched += 1
    if not known:  # another feature of bodies that touched before
        target = wp.max(target, most)
    if most > wp.float64(0.0) and gap < whole and not loaded:  # what fits tightly may turn
        target = wp.min(target, wp.max(least, TIGHTEST * distances.security))
    surface = table.surface[a] * surfaces.kinds + table.surface[b]
    passing = Passing()
    way = at_point(motion[a], arm_a) - at_point(motion[b], arm_b)
    # what bounces does so along the line that it comes in on: impacts of faceted balls would scatter otherwise
    if surfaces.restitution[surface] <= wp.float64(0.0) and gap - target + wp.dot(way, normal) < wp.float64(0.0):
        if kind == 2:
            passing = passing_of(found, c, a, b, way, edge_a, edge_b, table, surfaces)
        elif kind >= 0 and gap > FAR * whole:
            passing = passing_rim(found, c, a, b, way, table, state, surfaces)
    if passing.distance > passing_distance(gap, distances.kept, distances.security, distances.held):
        normal = passing.normal
        point_a = passing.point_a
        point_b = passing.point_b
        gap = wp.dot(point_a - point_b, normal)
        target = wp.min(target, gap)
        frame = contact_frame(normal)
        middle = wp.float64(0.5) * (point_a + point_b)
        arm_a = middle - state.position[a]
        arm_b = middle - state.position[b]
    impulse = dt * (frame * force)
    lift = wp.float64(0.0)
    if second_order == 1 and kind >= 0 and impulse[0] > wp.float64(0.0):
        before_a = state.velocity[a]
        before_b = state.velocity[b]
        kappa = gap_acceleration(kind, normal, arm_a, arm_b, before_a, before_b, edge_a, edge_b)
        # never faster apart than they came together, or the contact would do work
        came = -wp.dot(at_point(before_a, arm_a) - at_point(before_b, arm_b), normal)
        lift = wp.max(wp.min(wp.float64(-0.5) * dt * kappa, came), lift)
    rows.body_a[i] = a
    rows.body_b[i] = b
    rows.arm_a[i] = arm_a
    rows.arm_b[i] = arm_b
    rows.frame[i] = frame
    rows.friction[i] = surfaces.friction[surface]
    room = wp.max(gap - target, wp.float64(0.0))
    rows.bias[i] = wp.vec3d(room / dt - lift, wp.float64(0.0), wp.float64(0.0))
    rows.impulse[i] = impulse
    facts.key[i] = found.key[c]
    facts.kind[i] = kind
    facts.feature_a[i] = found.feature_a[c]
    facts.feature_b[i] = found.feature_b[c]
    facts.point_a[i] = point_a
    facts.point_b[i] = point_b
    facts.gap[i] = gap
    facts.target[i] = target
    facts.bend[i] = wp.float64(0.0)
    facts.restitution[i] = surfaces.restitution[surface]
    facts.struck[i] = wp.vec3d()


@wp.kernel
def keep_rows(
    first: int,
    rows: ContactRowArrays,
    facts: RowFacts,
    pushed: wp.array[wp.float64],
    distances: Distances,
    kept: KeptRows,
):
    """What the next step starts from: forces in the world frame, and targets grown where nothing opposed.

    Args:
        pushed: by how much `placement` moved each contact apart, less what it was asked; below 0 where it could not.
    """
    i = first + wp.tid()
    kept.body_a[i] = rows.body_a[i]
    kept.body_b[i] = rows.body_b[i]
    kept.key[i] = facts.key[i]
    kept.force[i] = wp.transpose(rows.frame[i]) * rows.impulse[i] / distances.dt[0]
    target = facts.target[i]
    if pushed[i] < wp.float64(0.0):
        target = wp.min(target, wp.max(facts.gap[i], wp.float64(0.0)))
    else:
        least = LEAST_TARGET
        if rows.impulse[i][0] <= wp.float64(0.0):  # what carries nothing may be held from all sides
            least = TIGHTEST
        target = wp.max(target, wp.min(least * distances.security, target + GROWTH * distances.security))
        target = wp.max(target, facts.gap[i])
    kept.target[i] = wp.min(target, distances.kept + distances.security)


@wp.func
def edge_of(body: int, feature: int, constants: BodyConstants, state: RigidState, surfaces: SurfaceTable) -> wp.vec3d:
    """The direction of an edge of a body, in the world."""
    return state.rotation[body] * surfaces.edge[surfaces.edge_first[constants.shape[body]] + feature]


@wp.kernel
def place_rows(
    first: int,
    rows: ContactRowArrays,
    facts: RowFacts,
    motion: wp.array[vec6d],
    table: BodyConstants,
    state: RigidState,
    surfaces: SurfaceTable,
    distances: Distances,
    most: wp.float64,
    second_order: int,
    pushing: int,
    bias: wp.array[wp.vec3d],
    friction: wp.array[wp.float64],
    impulse: wp.array[wp.vec3d],
    lack: wp.array[wp.float64],
):
    """Rows of the least motion that gives contacts their targets back (Redon 2002, equation 6.2).

    Args:
        most: by how much contacts are moved apart at most [m].
        pushing: 0: rows of motions for other ends, which may take up a part of the play, and ask for nothing.
    """
    i = first + wp.tid()
    a = rows.body_a[i]
    b = rows.body_b[i]
    normal = wp.vec3d(rows.frame[i][0, 0], rows.frame[i][0, 1], rows.frame[i][0, 2])
    way = at_point(motion[a], rows.arm_a[i]) - at_point(motion[b], rows.arm_b[i])
    bend = wp.float64(0.0)
    kind = facts.kind[i]
    if second_order == 1 and kind >= 0:
        edge_a = wp.vec3d()
        edge_b = wp.vec3d()
        if kind == 2:
            edge_a = edge_of(a, facts.feature_a[i], table, state, surfaces)
            edge_b = edge_of(b, facts.feature_b[i], table, state, surfaces)
        arm_a = rows.arm_a[i]
        arm_b = rows.arm_b[i]
        bend = wp.min(gap_acceleration(kind, normal, arm_a, arm_b, motion[a], motion[b], edge_a, edge_b), bend)
    after = facts.gap[i] + wp.dot(way, normal) + wp.float64(0.5) * bend + facts.bend[i]
    target = facts.target[i]
    room = after - target
    if pushing == 0:
        play = PLAY * wp.max(target - distances.kept, wp.float64(0.0))
        room = wp.max(room + play, wp.float64(0.0))
    missing = wp.float64(0.0)
    if room < wp.float64(0.0):
        # what this step takes is given back, what was missing before bit by bit
        taken = wp.max(wp.min(facts.gap[i], target) - after, wp.float64(0.0))
        missing = taken + wp.min(RECOVERY * wp.max(target - wp.max(facts.gap[i], after), wp.float64(0.0)), most)
        room = -missing
    bias[i] = wp.vec3d(room / distances.dt[0], wp.float64(0.0), wp.float64(0.0))
    friction[i] = wp.float64(0.0)
    impulse[i] = wp.vec3d()
    lack[i] = missing


@wp.kernel
def placed_rows(
    first: int,
    rows: ContactRowArrays,
    placed: wp.array[vec6d],
    lack: wp.array[wp.float64],
    dt: wp.array[wp.float64],
    pushed: wp.array[wp.float64],
):
    """By how much each contact that was to be moved apart was so, less half of what it was asked."""
    i = first + wp.tid()
    pushed[i] = wp.float64(0.0)
    if lack[i] <= wp.float64(0.0):
        return
    normal = wp.vec3d(rows.frame[i][0, 0], rows.frame[i][0, 1], rows.frame[i][0, 2])
    way = at_point(placed[rows.body_a[i]], rows.arm_a[i]) - at_point(placed[rows.body_b[i]], rows.arm_b[i])
    pushed[i] = dt[0] * wp.dot(way, normal) - wp.float64(0.5) * lack[i]
