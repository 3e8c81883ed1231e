"""Which patches deform so smoothly over a step that no feature of them can meet one around them.

Method: a patch and its surroundings are compared with an affine map of a reference, how they lay once: x = c + F X + e.
        If R was then the least distance of an edge of the patch and a triangle around it that do not share a vertex,
        its clearance, their distance is at least s R - e1 - e2, with the largest |e| of the patch and of all, and s a
        lower bound of the smallest singular value of F over the whole step. Where that is positive the patch is
        certified: any rotation, stretch and drift passes, folds and creases do not.
Sound:  for every vertex on a straight way at its own constant rate: F, c and e are then linear in time.
Known as: own; compare culling of self-collisions by normal cones (Volino and Magnenat-Thalmann 1994) and by deformation
          bounds.

"Once" is at rest, and for a patch that is too far from that now, where this step would end, as the next one begins
there: then R is found anew, which takes about as long as searching the patch five times, and lasts for some fifteen
steps. (On CUDA one thread would take too long for that, and searching is cheap.) What such a certificate covers a
search would find apart as well, but for pairs that turn a lot. Which contacts a step responds to must not depend on how
things came where they are: there only rest counts (`near_rest`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.bvh.lbvh import LinearTree
from tangere.runtime import SOUND, launch
from tangere.soft.model.assembled_bodies import CLOSED, struct_of
from tangere.soft.safe_step.cpu.patch_renewal import (
    CORNERS,
    PatchFeatures,
    RenewalState,
    find_clearances,
    renew_references,
)
from tangere.soft.safe_step.cpu.simd_smoothness import AS_BEFORE, FROM_END, UNKNOWN, simd_certify
from tangere.soft.safe_step.patch_layout import PatchLists, PatchReference
from tangere.soft.safe_step.smoothness import is_certified, needs_check

wp.set_module_options(SOUND)

#: Patches worth a thread: each takes some microseconds.
GRAIN = 32


class Certificates:
    """Says which patches are apart from their surroundings, 1 for those that are."""

    def __init__(self, tree: LinearTree, lists: PatchLists, edges: wp.array, rest: wp.array, per_feature: bool) -> None:
        """Finds how far patches are from what is around them at `rest`, which `lists.at_rest` says from then on.

        `per_feature`: patches are certified by a thread each, as on CUDA.
        """
        device = edges.device
        assert device is not None
        self._device, self._lists = device, lists
        self.certified, self._near = (wp.zeros(lists.count, dtype=wp.int32, device=device) for _ in range(2))
        self._last_end: wp.array | None = None
        #: Arrays, the places in them that have changed, and what was there; None: nobody will ask.
        self._changes: list[tuple[wp.array, Any, np.ndarray]] | None = None
        self._reference: PatchReference | None = None  #: how they lay when they were last compared anew (CPU)
        features, kept = _renewal_of(tree, lists, edges)
        host = wp.get_device("cpu")
        clearance = lists.at_rest.clearance.to(host)
        launch(find_clearances, lists.count, [features, rest.to(host), kept], [clearance], device=host, grain=GRAIN)
        if device.is_cuda:
            wp.copy(lists.at_rest.clearance, clearance)
        if per_feature:
            return
        self._features, self._kept = features, kept
        same = {name: getattr(lists.at_rest, name) for name in ("offsets", "vertices", "own")}
        renewed = {name: wp.clone(getattr(lists.at_rest, name)) for name in ("rest", "duals", "tangents", "clearance")}
        self._reference = struct_of(PatchReference, device, **same, **renewed)
        self._maps = wp.zeros((2, lists.count), dtype=wp.mat33d, device=device)
        self._errors = wp.zeros((2, lists.count), dtype=wp.vec2d, device=device)

    def certify_each(
        self, start: wp.array, end: wp.array, least: float, changed: wp.array, wanted: wp.array
    ) -> wp.array:
        """Certify moves from start to end, during which features stay further apart than `least` [m], as on CUDA.

        Args:
            changed: (c,) uint8, clusters whose moves are new; patches without one keep what they had.
            wanted: nothing is done if its first number (int32) is 0.
        """
        lists = self._lists
        inputs = [lists.cluster_offsets, lists.clusters, changed, wanted]
        inputs += [lists.at_rest, start, end, least]
        launch(_certify, lists.count, inputs, [self.certified], device=self._device, grain=GRAIN)
        return self.certified

    def certify_simd(
        self, start: wp.array, end: wp.array, least: float, patches: wp.array, *, new_step: bool
    ) -> wp.array:
        """The same for CPUs.

        Args:
            patches: int32, those with new moves around; all others keep what they had.
            new_step: whether a step begins: patches without certificate may be compared with where it ends from now on.
        """
        moves = [start, end, least]
        known = AS_BEFORE
        if new_step:
            known = FROM_END if self._ended_at(start) else UNKNOWN
        last_end, self._last_end = self._last_end, None  # until all is known again, should something stop this
        outputs = [self._maps, self._errors, self.certified]
        inputs = [patches, self._reference, *moves, int(known)]
        launch(simd_certify, len(patches), inputs, outputs, device=self._device, grain=GRAIN)
        if new_step:
            self._save_changes()
            inputs = [patches, self._reference, self._features, *moves, self._kept]
            launch(renew_references, len(patches), inputs, outputs, device=self._device, grain=GRAIN)
        last_end = wp.empty_like(end) if last_end is None else last_end
        wp.copy(last_end, end)
        self._last_end = last_end
        return self.certified

    @property
    def clearances(self) -> list[wp.array]:
        """Of the references at rest, and on CPU now: where it is 0 a patch is never certified."""
        return [reference.clearance for reference in (self._lists.at_rest, self._reference) if reference is not None]

    def save(self) -> None:
        """From now on remember how to `restore`."""
        self._changes = []

    def restore(self) -> None:
        """Compare patches with what they were compared with at `save`."""
        for array, places, before in reversed(self._changes or []):
            array.numpy()[places] = before
        self._last_end = None

    def _save_changes(self) -> None:
        """Before patches without certificate are compared with something new (CPU)."""
        reference = self._reference
        if self._changes is None or reference is None:
            return
        kept = self._kept
        waiting = (self.certified.numpy() == 1) | (reference.clearance.numpy() <= 0.0) | (kept.wait.numpy() > 0)
        patches = np.flatnonzero(~waiting)
        begin, end = reference.offsets.numpy()[[patches, patches + 1]]
        around = np.repeat(begin - np.cumsum(end - begin) + (end - begin), end - begin) + np.arange((end - begin).sum())
        of_patch = (reference.duals, reference.tangents, reference.clearance, kept.nearest)
        places = [(reference.rest, around), *((array, patches) for array in of_patch), (kept.wait, slice(None))]
        self._changes += [(array, where, array.numpy()[where].copy()) for array, where in places]

    def _ended_at(self, start: wp.array) -> bool:
        """Whether all that was certified last ended where this step begins."""
        last = self._last_end
        return last is not None and np.array_equal(last.numpy(), start.numpy())

    def near_rest(self, positions: wp.array, traits: wp.array) -> wp.array:
        """Certify patches of open surfaces where they are, by how they lay at rest and nothing else."""
        lists = self._lists
        inputs = [traits, lists.at_rest, positions]
        launch(_near_rest, lists.count, inputs, [self._near], device=self._device, grain=GRAIN)
        return self._near


def _renewal_of(tree: LinearTree, lists: PatchLists, edges: wp.array) -> tuple[PatchFeatures, RenewalState]:
    """What is needed to find how far patches are from what is around them, on the host."""
    host = wp.get_device("cpu")
    of_patches = ("cluster_offsets", "clusters", "edge_offsets", "patch_edges")
    of_tree = ("first", "last", "items", "corners")
    features: PatchFeatures = struct_of(
        PatchFeatures,
        host,
        **{name: getattr(lists, name).to(host) for name in of_patches},
        **{name: getattr(tree, name).to(host) for name in of_tree},
        reach=lists.reach,
        nodes=tree.clusters.to(host),
        edges=edges.to(host),
    )
    kept: RenewalState = struct_of(
        RenewalState,
        host,
        nearest=np.full((lists.count, 2), -1),
        wait=np.zeros(lists.count),
        middles=wp.empty(len(edges), dtype=wp.vec4d, device=host),
        faces=wp.empty((lists.count, CORNERS), dtype=wp.float64, device=host),
    )
    return features, kept


@wp.kernel
def _certify(
    first: int,
    cluster_offsets: wp.array[int],
    clusters: wp.array[int],
    changed: wp.array[wp.uint8],
    wanted: wp.array[int],
    reference: PatchReference,
    start: wp.array[wp.vec3d],
    end: wp.array[wp.vec3d],
    least: wp.float64,
    certified: wp.array[int],
):
    p = first + wp.tid()
    if needs_check(p, cluster_offsets, clusters, changed, wanted):
        certified[p] = int(is_certified(p, reference, start, end, least))


@wp.kernel
def _near_rest(
    first: int,
    traits: wp.array[int],
    reference: PatchReference,
    positions: wp.array[wp.vec3d],
    certified: wp.array[int],
):
    p = first + wp.tid()
    certified[p] = 0
    if reference.clearance[p] > wp.float64(0.0):  # others may have nothing around them
        if (traits[reference.vertices[reference.offsets[p]]] & CLOSED) == 0:
            least = wp.float64(0.0)
            certified[p] = int(is_certified(p, reference, positions, positions, least))
