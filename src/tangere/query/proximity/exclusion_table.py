"""The exclusions of all bodies of a scene in one table, and which pairs of features count in spite of them.

An exclusion belongs to a body, not to a topology: two instances of one mesh have come apart since they were at rest,
or rest, each in its own way, and none may hide the contacts of the other. Where several exclusions of a body name the
same pair, it counts only if each of them lets it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from tangere.broad_phase.triangles import Surfaces
from tangere.query.proximity.exclusion import Exclusion, features_apart
from tangere.query.proximity.pair_keys import EDGE_EDGE, bases_of, body_of, number_bits, split_key
from tangere.runtime import SOUND, InputError, collect, reserve_slots
from tangere.shape.mesh import Mesh

wp.set_module_options(SOUND)

#: What is to be left out: the exclusion of the only mesh with its topology; or one for each mesh, in their order: an
#: exclusion, several of them, or None.
Exclude = Exclusion | Sequence[Exclusion | Sequence[Exclusion] | None] | None


def exclusions_of_each(exclude: Exclude, meshes: Sequence[Mesh]) -> list[list[Exclusion]]:
    """The exclusions of every mesh of a scene."""
    if exclude is None:
        return [[] for _ in meshes]
    if isinstance(exclude, Exclusion):
        mine = [mesh.topology is exclude.topology for mesh in meshes]
        if sum(mine) > 1:
            raise InputError(
                f"{sum(mine)} meshes have the topology of exclude: give a list, one for each mesh, or None"
            )
        if not any(mine):
            raise InputError("exclude was made for a mesh with another topology")
        return [[exclude] if is_mine else [] for is_mine in mine]
    if not isinstance(exclude, list | tuple) or len(exclude) != len(meshes):
        what = f"{len(exclude)} entries" if isinstance(exclude, list | tuple) else type(exclude).__name__
        raise InputError(
            f"exclude must be an Exclusion, or a list with one for each of {len(meshes)} meshes, not {what}"
        )
    return [_checked(entry, k, mesh) for k, (entry, mesh) in enumerate(zip(exclude, meshes, strict=True))]


@dataclass(frozen=True)
class ExclusionTable:
    """The pairs of features that exclusions name, body after body."""

    first: wp.array  #: (bodies + 1,) int32: where the pairs of each body begin
    keys: wp.array  #: (n,) int64, rising within a body: contact keys of a mesh with itself
    activation: wp.array  #: (n,) [m]: only nearer than this is a contact

    @staticmethod
    def of(surfaces: Surfaces, exclude: Exclude) -> ExclusionTable | None:
        """The table, on the device of the scene; None if nothing is to be left out."""
        if exclude is None:
            return None
        keys, activation, counts = [], [], [0]
        for exclusions in exclusions_of_each(exclude, surfaces.meshes):
            mine = [e.keys for e in exclusions]
            named, place = np.unique(np.concatenate([np.zeros(0, np.int64), *mine]), return_inverse=True)
            least = np.full(len(named), np.inf)
            np.minimum.at(least, place, np.concatenate([np.zeros(0), *(e.activation for e in exclusions)]))
            keys.append(named)
            activation.append(least)
            counts.append(len(named))
        if not any(counts):
            return None
        device = surfaces.device
        return ExclusionTable(
            wp.array(np.cumsum(counts), dtype=wp.int32, device=device),
            wp.array(np.concatenate(keys), dtype=wp.int64, device=device),
            wp.array(np.concatenate(activation), dtype=wp.float64, device=device),
        )

    def removed_from(self, surfaces: Surfaces, pair_keys: wp.array) -> wp.array:
        """Those of the named pairs of features that count, in any order."""
        device, count = surfaces.device, len(pair_keys)
        number = wp.full(1, wp.int64(count), dtype=wp.int64, device=device)
        inputs = [number, pair_keys, *self.inputs(surfaces)]
        return collect(exclusion_filter, count, inputs, wp.int64, device=device, grain=4096, capacity=count)

    def inputs(self, surfaces: Surfaces) -> list[Any]:
        """What `exclusion_filter` takes after the keys."""
        layout = surfaces.layout
        table = [wp.int64(number_bits(layout)), bases_of(layout), self.first, self.keys, self.activation]
        return [*table, layout.faces, layout.edges, surfaces.positions]


def _checked(entry: Any, number: int, mesh: Mesh) -> list[Exclusion]:
    """One entry of a list as a list of exclusions that fit the mesh."""
    exclusions = [] if entry is None else list(entry) if isinstance(entry, list | tuple) else [entry]
    for exclusion in exclusions:
        if not isinstance(exclusion, Exclusion):
            raise InputError(f"exclude[{number}] must be an Exclusion, several or None, not {type(exclusion).__name__}")
        if exclusion.topology is not mesh.topology:
            raise InputError(f"exclude[{number}] was made for a mesh with another topology than {mesh.name!r}")
    return exclusions


@wp.kernel
def exclusion_filter(
    first: int,
    shard: int,
    number: wp.array[wp.int64],
    pair_keys: wp.array[wp.int64],
    bits: wp.int64,
    bases: wp.array2d[int],
    first_key: wp.array[int],
    keys: wp.array[wp.int64],
    activation: wp.array[wp.float64],
    faces: wp.array2d[int],
    edges: wp.array2d[int],
    positions: wp.array[wp.vec3d],
    counts: wp.array[wp.int64],
    capacity: int,
    out: wp.array[wp.int64],
):
    k = first + wp.tid()
    if wp.int64(k) >= number[0]:
        return
    parts = split_key(pair_keys[k], bits)
    one = parts[1]
    other = parts[2]
    code = wp.int64(parts[0])
    edges_pair = code >> wp.int64(1) == EDGE_EDGE
    row_one = int(0)
    row_other = int(2)
    if edges_pair:
        row_one = 1
        row_other = 1
    body = body_of(bases, row_one, one)
    counting = True
    if first_key[body] < first_key[body + 1] and body == body_of(bases, row_other, other):
        key = (code << wp.int64(58)) | (wp.int64(one - bases[row_one, body]) << wp.int64(29))
        key = key | wp.int64(other - bases[row_other, body])
        low = first_key[body]
        high = first_key[body + 1]
        end = first_key[body + 1]
        while low < high:
            middle = (low + high) / 2
            if keys[middle] < key:
                low = middle + 1
            else:
                high = middle
        if low < end:
            if keys[low] == key:
                counting = features_apart(edges_pair, one, other, faces, edges, positions) < activation[low]
    if counting:
        slot = reserve_slots(counts, shard, 1, capacity)
        if slot >= 0:
            out[slot] = pair_keys[k]
