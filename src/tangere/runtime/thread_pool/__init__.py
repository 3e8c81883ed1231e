"""The CPU thread pool: threads that take shards of launches from queues, in compiled code and in Python."""

from tangere.runtime.thread_pool.program import Program

__all__ = [
    "Program",
]
