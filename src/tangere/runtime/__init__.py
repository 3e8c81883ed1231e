"""How kernels run: devices, sharded launches, growing output, arrays in and out, errors.

Everything above imports Warp through this room first, so that it starts silently.
"""

from tangere.runtime.arrays import Arrays, as_indices, as_points, choose_device, device_of, like, to_numpy
from tangere.runtime.collecting import collect, take, where
from tangere.runtime.errors import (
    CapacityError,
    InputError,
    MissingExtraError,
    TangereError,
    UnsupportedError,
    check_kind,
)
from tangere.runtime.kernels import SOUND, load
from tangere.runtime.launching import launch, run_shards, shard_ranges
from tangere.runtime.out_files import check_out_file
from tangere.runtime.sorting import offsets, run_lengths, sort_pairs
from tangere.runtime.threads import thread_count, using_threads
from tangere.runtime.uncopied import Uncopied

__all__ = [
    "SOUND",
    "Arrays",
    "CapacityError",
    "InputError",
    "MissingExtraError",
    "TangereError",
    "Uncopied",
    "UnsupportedError",
    "as_indices",
    "as_points",
    "check_kind",
    "check_out_file",
    "choose_device",
    "collect",
    "device_of",
    "launch",
    "like",
    "load",
    "offsets",
    "run_lengths",
    "run_shards",
    "shard_ranges",
    "sort_pairs",
    "take",
    "thread_count",
    "to_numpy",
    "using_threads",
    "where",
]
