"""A search of posed bodies on CPUs as one program of phases: search, order, scan, gather, describe.

Later phases read from memory how many pairs and contacts there are, so the program is the same for every number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import warp as wp

from tangere.bvh.eights import eight_tables
from tangere.query.contacts.record import empty_columns
from tangere.query.proximity.posed.cpu.ordering import (
    CONTACTS,
    NEEDED,
    PAIRS,
    STATUS,
    TOLD,
    PairSegments,
    gather_contacts,
    order_by_pair,
    scan_amounts,
)
from tangere.query.proximity.posed.cpu.search import find_constraints_in_eights
from tangere.query.proximity.posed.cpu.simd_leaves import SCRATCH_WITH_CANDIDATES
from tangere.query.proximity.posed.details import describe_contacts
from tangere.query.proximity.posed.workspace import PosedWorkspace, Told
from tangere.runtime import PreparedLaunch, prepare_phases
from tangere.shape.mesh import Mesh

#: Shards of a launch whose number of indices is in memory, for each thread.
_SHARDS = 8
#: Meshes with more triangles are worth a thread each; of others so many pairs are.
_LARGE, _SMALL_PAIRS = 500, 32
#: Pairs to put in order or gather, contacts to describe, that are worth a thread.
_ORDER_GRAIN, _GATHER_GRAIN, _DESCRIBE_GRAIN = 1024, 4096, 512


class CpuSearch:
    """The search of bodies of some distinct meshes."""

    def __init__(self, shapes: Any, meshes: Sequence[Mesh]) -> None:
        self.device = wp.get_device("cpu")
        self._shapes, self._eights = shapes, eight_tables(meshes)
        self._grain = 1 if max(len(mesh.faces) for mesh in meshes) > _LARGE else _SMALL_PAIRS

    def shards(self, threads: int) -> int:
        """How many segments a search on so many threads fills."""
        return _SHARDS * threads if threads > 1 else 1

    def prepared(self, workspace: PosedWorkspace) -> Callable[[int], Told]:
        """What searches the first n pairs of a workspace."""
        shapes, device = self._shapes, self.device
        queries, found, results = workspace.queries, workspace.found, workspace.results
        told = wp.zeros(TOLD, dtype=wp.int64, device=device)
        scratch = wp.empty((workspace.shards, SCRATCH_WITH_CANDIDATES), dtype=wp.int32, device=device)
        segments = empty_columns(PairSegments, workspace.room, device)
        certain = wp.empty(8 * workspace.shards, dtype=wp.float64, device=device)
        pairs, contacts = told[PAIRS : PAIRS + 1], told[CONTACTS : CONTACTS + 1]

        def phase(kernel: wp.Kernel, arguments: list[Any], dim: int | wp.array, grain: int) -> list[PreparedLaunch]:
            return [PreparedLaunch(kernel, arguments, device, dim=dim, grain=grain)]

        search = [shapes, queries, self._eights, scratch, certain, found, results, segments]
        program = prepare_phases(
            [
                phase(find_constraints_in_eights, search, pairs, self._grain),
                phase(order_by_pair, [found, segments, workspace.columns], pairs, _ORDER_GRAIN),
                phase(scan_amounts, [workspace.shards, found, segments, results, workspace.first, told], 1, 1),
                phase(gather_contacts, [found, segments, workspace.first, workspace.columns], pairs, _GATHER_GRAIN),
                phase(describe_contacts, [shapes, queries, found, workspace.columns], contacts, _DESCRIBE_GRAIN),
            ],
            workspace.threads,
        )
        host = told.numpy()

        def run(count: int) -> Told:
            host[PAIRS] = count
            program.run()
            return Told(int(host[NEEDED]), int(host[CONTACTS]), int(host[STATUS]))

        return run
