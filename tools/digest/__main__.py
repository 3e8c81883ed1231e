"""The command line of `python -m tools.digest`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import tangere as tg
import tools.digest as package
from tools.digest import SECTIONS
from tools.digest.comparison import compare, digest
from tools.digest.recorded_answers import RECORD, record


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.digest", description=(package.__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--out", type=Path, help="write every answer column to this .npz file")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("A", "B"), help="tell how two such files differ")
    parser.add_argument("--sections", help=f"some of {','.join(SECTIONS)}")
    parser.add_argument("--quick", action="store_true", help="a part of the questions")
    parser.add_argument(
        "--record", action="store_true", help=f"write {RECORD.name} of the tests, from the quick digest"
    )
    given = parser.parse_args(arguments)
    if given.compare:
        before, after = (dict(np.load(file, allow_pickle=False)) for file in given.compare)
        return 0 if compare(before, after) else 1
    chosen = given.sections.split(",") if given.sections else list(SECTIONS)
    unknown = [name for name in chosen if name not in SECTIONS]
    if unknown:
        parser.error(f"there is no section {unknown[0]!r}: there are {', '.join(SECTIONS)}")
    if given.record and given.sections:
        parser.error("the record holds all sections")
    print(f"tangere in {Path(tg.__file__).parent}")
    columns, failures = digest(chosen, given.quick or given.record)
    if given.out:
        np.savez(given.out, **columns)
    if given.record and not failures:
        record(columns)
        print(f"{RECORD.name}: {RECORD.stat().st_size / 1e3:.0f} kB")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
