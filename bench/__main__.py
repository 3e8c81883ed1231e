"""Run benchmarks and write docs/benchmarks/NAME.md: `python -m bench [--quick] [--list] [NAME ...]`."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import tempfile
from pathlib import Path

import bench
from bench.harness import Report, SkippedError

PAGES = Path(__file__).resolve().parents[1] / "docs" / "benchmarks"
PARTS = {"__main__", "data", "harness", "machine", "memory", "peers", "plots", "replay", "robots", "shapes", "tori"}


def benchmarks() -> list[str]:
    """Their names."""
    return [module.name for module in pkgutil.iter_modules(bench.__path__) if module.name not in PARTS]


def main() -> int:
    names = benchmarks()
    parser = argparse.ArgumentParser(prog="python -m bench", description=(__doc__ or "").partition(":")[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"which ones; all if none is named: {', '.join(names)}"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs; writes no page")
    parser.add_argument("--list", action="store_true", help="say what each one asks, and stop")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in names]:
        parser.error(f"no benchmark {', '.join(unknown)}; there are: {', '.join(names)}")

    for name in arguments.names or names:
        module = importlib.import_module(f"bench.{name}")
        report = Report(name, module.__doc__ or name)
        if arguments.list:
            print(f"{name}: {report.title}")
            continue
        print(f"\n{report.title}", flush=True)
        try:
            module.run(report, quick=arguments.quick)
        except SkippedError as reason:
            print(f"skipped: {reason}")
            continue
        # A quick run is a rehearsal: its figures are not worth keeping.
        with tempfile.TemporaryDirectory() as nowhere:
            page = report.write(Path(nowhere) if arguments.quick else PAGES)
        if not arguments.quick:
            print(f"wrote {page.relative_to(PAGES.parents[1])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
