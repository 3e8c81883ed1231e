"""How kernels run: devices, launches, the thread pool, growable output, arrays in and out, errors."""

from tangere.runtime.append_buffer import COUNTER_STRIDE, collect, indices_at_least, reserve_slots
from tangere.runtime.arrays import (
    Arrays,
    as_indices,
    as_points,
    choose_device,
    concatenated,
    device_of,
    fetched,
    like,
    read_only,
    read_only_copy,
    to_numpy,
)
from tangere.runtime.checks import (
    described,
    file_path,
    fraction,
    not_negative,
    number,
    positive,
    positives,
    random_source,
    text_below,
    three_numbers,
    whole,
)
from tangere.runtime.errors import (
    CapacityError,
    InputError,
    MissingExtraError,
    TangereError,
    UnsupportedError,
    check_kind,
    needs_extra,
)
from tangere.runtime.kernel_launch import beside, captured, launch, launch_in_turn, side_stream
from tangere.runtime.late_imports import published, view_room
from tangere.runtime.non_copyable import NonCopyable
from tangere.runtime.output_files import check_out_file, writing
from tangere.runtime.prepared_launch import LaunchCache, PreparedLaunch, prepare_phases, run_phases
from tangere.runtime.scan_sort import offsets, sort_pairs
from tangere.runtime.shards import GRAIN, run_shards, shard_ranges
from tangere.runtime.threads import on_own_threads, thread_count, using_threads
from tangere.runtime.warp_setup import BLOCK, SOUND, load

__all__ = [
    "BLOCK",
    "COUNTER_STRIDE",
    "GRAIN",
    "SOUND",
    "Arrays",
    "CapacityError",
    "InputError",
    "LaunchCache",
    "MissingExtraError",
    "NonCopyable",
    "PreparedLaunch",
    "TangereError",
    "UnsupportedError",
    "as_indices",
    "as_points",
    "beside",
    "captured",
    "check_kind",
    "check_out_file",
    "choose_device",
    "collect",
    "concatenated",
    "described",
    "device_of",
    "fetched",
    "file_path",
    "fraction",
    "indices_at_least",
    "launch",
    "launch_in_turn",
    "like",
    "load",
    "needs_extra",
    "not_negative",
    "number",
    "offsets",
    "on_own_threads",
    "positive",
    "positives",
    "prepare_phases",
    "published",
    "random_source",
    "read_only",
    "read_only_copy",
    "reserve_slots",
    "run_phases",
    "run_shards",
    "shard_ranges",
    "side_stream",
    "sort_pairs",
    "text_below",
    "thread_count",
    "three_numbers",
    "to_numpy",
    "using_threads",
    "view_room",
    "whole",
    "writing",
]
