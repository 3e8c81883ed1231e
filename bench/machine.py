"""What a measurement was made on, and with which versions."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["cores", "description", "versions"]


def cores() -> int:
    """How many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def description() -> str:
    """Processor, cores, memory, GPU, system and date, as one line."""
    parts = [_processor(), f"{cores()} cores"]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        parts.append(f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB of memory")
    parts.append(_gpu() or "no GPU")
    parts.append(f"{platform.system()} {platform.machine()}")
    return f"{', '.join(parts)}; {datetime.now(UTC):%d %B %Y}"


def versions(*packages: str) -> str:
    """Versions of Python, tangere, Warp, NumPy and the peers named."""
    named = [f"{name} {_version(name)}" for name in ("tangere", "warp-lang", "numpy", *packages)]
    return ", ".join([f"Python {platform.python_version()}", *named])


def _version(name: str) -> str:
    """Of an installed package, or of one that is merely on the path."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return str(getattr(importlib.import_module({"warp-lang": "warp"}.get(name, name)), "__version__", "unknown"))


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _gpu() -> str | None:
    from tangere.runtime import choose_device

    device = choose_device(None)
    return device.name if device.is_cuda else None
