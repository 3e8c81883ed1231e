"""Loops of a fixed rate: deadlines, lateness, work that can wait, and processes joined by shared memory."""

from tangere.runtime.pacer.latency_histogram import LatencyHistogram
from tangere.runtime.pacer.loop_process import LoopProcess, ProcessLostError, Ticking
from tangere.runtime.pacer.pacer import LoopPacer, Mode, PacerReport, PostponableWork
from tangere.runtime.pacer.scheduling import no_collection, real_time
from tangere.runtime.pacer.seqlock import SharedRecord
from tangere.runtime.pacer.shared_rows import SharedRows

__all__ = [
    "LatencyHistogram",
    "LoopPacer",
    "LoopProcess",
    "Mode",
    "PacerReport",
    "PostponableWork",
    "ProcessLostError",
    "SharedRecord",
    "SharedRows",
    "Ticking",
    "no_collection",
    "real_time",
]
