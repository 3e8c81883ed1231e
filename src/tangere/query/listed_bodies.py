"""Lists of bodies of any kinds: what each is and how it moves, where it goes, and which of them make one batch.

Question: which two bodies of a list, or one of each of two lists, may come near each other within the step?
Method:   a box around each slice of a body's way (`broad_phase.bodies`); of paths, and of meshes that deform, one box
          for the whole step. Bodies of one family, in motions of as many links, are asked about together.
Sound:    a body is inside its boxes; analytic ones inside the ball around them. Ground goes down for ever.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import warp as wp

from tangere.broad_phase.bodies import SLICES, box_pairs, first_meetings, rest_still, swept_boxes
from tangere.motion import Linear, Path, Rest, Rigid
from tangere.query.contacts.record import Contacts
from tangere.query.dispatch import TERRAIN, is_analytic, kind_of
from tangere.query.distance.convex.bodies import convex_kind
from tangere.runtime import InputError, UnsupportedError, described, to_numpy
from tangere.shape import Moving
from tangere.shape.analytic import HULL, Analytic
from tangere.shape.mesh import Mesh

_AT_REST = Rest()
#: How far down ground goes, which is solid: what is below it begins in contact.
_DEPTH = -1e38


@dataclass(frozen=True, eq=False)
class Extent:
    """A box that a shape fills in its own frame."""

    bounds: np.ndarray  #: (2, 3) lower and upper corner [m]


@dataclass(frozen=True, eq=False)
class ListedBody:
    """One body of a list."""

    thing: Any  #: as it was given
    shape: Any  #: a Mesh, one analytic body, or the ground
    motion: Any  #: a rigid motion, a `Path` or a `Linear` one

    @property
    def is_ground(self) -> bool:
        return kind_of(self.shape) == TERRAIN

    @property
    def is_still(self) -> bool:
        """Whether it stays where it is."""
        return isinstance(self.motion, Rigid) and bool(rest_still([self.motion])[0])

    @property
    def family(self) -> Hashable | None:
        """Bodies of one family can be one batch with motions of as many links; None of those that cannot."""
        if not isinstance(self.motion, Rigid) or self.is_ground:
            return None
        if isinstance(self.shape, Mesh):
            return id(self.shape), self.motion.links
        return convex_kind(self.shape), id(self.shape.hull), self.motion.links

    @property
    def bounds(self) -> np.ndarray:
        """(2, 3) a box around the shape, where the motion has it in its frame [m]."""
        if isinstance(self.shape, Analytic):
            place, reach = to_numpy(self.shape.poses, "poses")[0, :3, 3], ball_radius(self.shape)
            return np.stack([place - reach, place + reach])
        return np.asarray(self.shape.bounds)


def ball_radius(body: Analytic) -> float:
    """How far any point of the first of some bodies is from its origin, at most [m]."""
    record = body.records[0]
    corners = body.hull.corners if body.kind == HULL else np.ones((1, 3))
    return float(np.linalg.norm(corners * record["half"], axis=1).max() + record["radius"])


def listed(things: Any, name: str) -> list[ListedBody]:
    """The bodies of a list, or one body as a list; `name` is what errors call it."""
    alone = isinstance(things, Mesh | Moving | Analytic) or kind_of(things) == TERRAIN
    items = [things] if alone else list(things) if isinstance(things, Iterable) else None
    if items is None:
        raise InputError(f"{name} must be a list of bodies, not {described(things)}")
    return [_listed(item, name if alone else f"body {k} of {name}") for k, item in enumerate(items)]


def _listed(thing: Any, name: str) -> ListedBody:
    shape, motion = (thing.shape, thing.motion) if isinstance(thing, Moving) else (thing, _AT_REST)
    if not isinstance(shape, Mesh) and not is_analytic(shape) and kind_of(thing) != TERRAIN:
        raise UnsupportedError(f"{name} must be a mesh, an analytic body or ground, not {described(thing)}")
    if not isinstance(motion, Rigid | Path | Linear):
        raise UnsupportedError(f"{name} moves by {motion!r}: in a list bodies move rigidly, by a Path or by Linear")
    if getattr(motion, "shape", ()):
        raise InputError(f"{name} has {motion.shape[0]} motions, but a list has one for each body")
    if isinstance(shape, Analytic) and len(shape) != 1:
        raise InputError(f"{name} is {len(shape)} bodies: list them one by one, `[*bodies]` of their rows")
    return ListedBody(thing, shape, motion)


def meeting_bodies(
    a: Sequence[ListedBody],
    b: Sequence[ListedBody] | None,
    margin: float,
    broad_phase: Any,
    device: wp.Device,
    *,
    resting: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """(k, 2) pairs that may come within `margin` of each other, and (k,) the time before which each certainly does not.

    Args:
        a, b: one list, of which any two are compared unless both stay where they are, or two, one of each.
        resting: also two of one list that both stay where they are, but not two grounds.
    """
    bodies = [*a, *(b or ())]
    slices = ways_of(bodies, 0.5 * margin * (1.0 + 1e-9), device)
    slices[[body.is_ground for body in bodies], :, 0, 2] = _DEPTH
    whole = np.stack([slices[:, :, 0].min(axis=1), slices[:, :, 1].max(axis=1)], axis=1)
    if b is None:
        still = np.array([body.is_ground if resting else body.is_still for body in bodies], bool)
        pairs = box_pairs(whole, still=still, method=broad_phase, device=device).astype(np.int64)
    else:
        pairs = box_pairs(whole, method=broad_phase, device=device).astype(np.int64)
        pairs = pairs[(pairs[:, 0] < len(a)) & (pairs[:, 1] >= len(a))]
    when = first_meetings(slices, pairs)
    kept = np.isfinite(when)
    pairs = pairs[kept] - ([0, 0] if b is None else [0, len(a)])
    return pairs, when[kept]


def ways_of(bodies: Sequence[ListedBody], margin: float, device: wp.Device) -> np.ndarray:
    """(n, SLICES, 2, 3) float32 boxes around each body in each slice of the step, grown by a margin [m]."""
    boxes = np.empty((len(bodies), SLICES, 2, 3), np.float32)
    rigid = [k for k, body in enumerate(bodies) if isinstance(body.motion, Rigid)]
    if rigid:
        shapes = [Extent(bodies[k].bounds) for k in rigid]
        boxes[rigid] = swept_boxes(shapes, [bodies[k].motion for k in rigid], margin, device=device)
    for k, body in enumerate(bodies):
        if isinstance(body.motion, Path):
            parts = [body.motion.segments[i] for i in range(len(body.motion))]
            each = swept_boxes([Extent(body.bounds)] * len(parts), parts, margin, device=device)
            boxes[k] = np.stack([each[:, :, 0].min(axis=(0, 1)), each[:, :, 1].max(axis=(0, 1))])
        elif isinstance(body.motion, Linear):
            ends = np.stack([body.thing.start, body.thing.end]).reshape(-1, 3)
            rounding = 1e-6 * np.abs(ends).max()
            boxes[k] = np.stack([ends.min(axis=0) - margin - rounding, ends.max(axis=0) + margin + rounding])
    return boxes


def joined(bodies: Sequence[ListedBody]) -> Any:
    """Bodies of one family as one batch, each with its motion; ground is what it is."""
    if bodies[0].is_ground:
        return bodies[0].shape
    motion = Rigid.join([body.motion for body in bodies])
    if isinstance(bodies[0].shape, Mesh):
        return bodies[0].shape.moving(motion)
    poses = np.concatenate([to_numpy(body.shape.poses, "poses").reshape(-1, 4, 4) for body in bodies])
    return Analytic.joined([body.shape for body in bodies]).at(poses).moving(motion)


def batches(
    a: Sequence[ListedBody], b: Sequence[ListedBody], pairs: np.ndarray, *, ground: bool = False
) -> tuple[list[np.ndarray], np.ndarray]:
    """Rows of pairs that are answered as one batch, an analytic body in each, and the rows of the others.

    Args:
        ground: bodies with one ground are a batch, too.
    """
    sides = [
        [("ground", id(body.shape)) if ground and body.is_ground else body.family for body in bodies]
        for bodies in (a, b)
    ]
    groups: dict[Hashable, list[int]] = {}
    alone = []
    for row, (i, j) in enumerate(pairs.tolist()):
        families = sides[0][i], sides[1][j]
        analytic = isinstance(a[i].shape, Analytic) or isinstance(b[j].shape, Analytic)
        if analytic and None not in families:
            groups.setdefault(families, []).append(row)
        else:
            alone.append(row)
    return [np.array(rows) for rows in groups.values()], np.array(alone, int)


def turned_round(contacts: Contacts) -> Contacts:
    """The same contacts with a in the place of b."""
    return replace(
        contacts,
        point_a=contacts.point_b,
        point_b=contacts.point_a,
        normal=-contacts.normal,
        body_a=contacts.body_b,
        body_b=contacts.body_a,
        feature_a=contacts.feature_b,
        feature_b=contacts.feature_a,
        vertex_on=1 - contacts.vertex_on,
    )
