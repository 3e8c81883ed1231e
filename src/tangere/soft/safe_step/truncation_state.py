"""What the iterations of a truncation share: words of state on the device, and the pairs found without certificate.

The pairs are in one buffer that stays: the device knows how many there are, the host only when it asks. On CPU the
runtime's `collect` fills and grows it. On CUDA the kernel appends to it directly, without a word to the host; where it
did not fit, the count tells, and whoever reads the counts grows the buffer and does the work again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import warp as wp

from tangere.runtime import BLOCK, collect, load

#: Places in the array `state`, int32: whether an iteration is needed; how many there were; pairs that must be shortened
#: in this one; whether all moves are new; vertices limited in the first one; the most pairs found without certificate;
#: contacts; whether a move is not finite.
ACTIVE, ITERATION, SHORT, ALL_NEW, LIMITED, FOUND, ROWS, NOT_FINITE = (wp.constant(k) for k in range(8))
#: Iterations in which single vertices are shortened.
LOCAL_ITERATIONS = wp.constant(16)
#: After so many more, in each of which bodies that touch move half as far, they only drift.
ISLAND_ITERATIONS = wp.constant(4)


class PairBuffer:
    """A list of items of one type; `counts[0]` is its length, or what its length would have been."""

    def __init__(self, dtype: Any, device: wp.Device, room: int) -> None:
        self._device = device
        self.counts = wp.zeros(1, dtype=wp.int64, device=device)
        self.items = wp.empty(room, dtype=dtype, device=device)

    @property
    def launch_size(self) -> int:
        """Items to launch for: on CUDA all there is room for."""
        return len(self.items) if self._device.is_cuda else int(self.counts.numpy()[0])

    def make_room(self, count: int) -> bool:
        """For at least so many; whether that took a new buffer."""
        if count <= len(self.items):
            return False
        self.items = wp.empty(count + count // 2, dtype=self.items.dtype, device=self._device)
        return True

    def run(self, kernel: wp.Kernel, dim: int, inputs: Sequence[Any], grain: int, *, append: bool = False) -> None:
        """Keep what `kernel(first, shard, *inputs, counts, capacity, out)` appends over indices 0 … dim-1.

        `append`: after what there is already, else instead of it.
        """
        if self._device.is_cuda:
            if not append:
                self.counts.zero_()
            load(kernel, self._device)
            arguments = [0, 0, *inputs, self.counts, len(self.items), self.items]
            wp.launch(kernel, dim, arguments, device=self._device, record_tape=False, block_dim=BLOCK)
            return
        found = collect(kernel, dim, inputs, self.items.dtype, device=self._device, grain=grain)
        kept = self.launch_size if append else 0
        before = self.items
        if self.make_room(kept + len(found)) and kept:
            wp.copy(self.items, before, count=kept)
        if len(found):
            wp.copy(self.items, found, dest_offset=kept, count=len(found))
        self.counts.fill_(kept + len(found))
