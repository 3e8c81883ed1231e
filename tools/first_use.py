"""How long does a first use of each question take? Prints the table of docs/first-use.md (`python -m tools.first_use`).

Names of questions after the command measure only these.

Each question is asked about something tiny, in a process of its own, twice: with an empty folder for compiled kernels,
and again with that folder. One process at a time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

#: Asks one question and prints the seconds it took, without the import of the library.
_PROGRAM = """
import sys, time
from tangere.cli.shared.first_calls import FIRST_CALLS
ask = dict(call for calls in FIRST_CALLS.values() for call in calls)[sys.argv[1]]
begin = time.perf_counter()
ask("cpu")
print(time.perf_counter() - begin)
"""


def seconds(question: str, folder: str) -> float:
    """How long a question takes in a fresh process that keeps its kernels in `folder`."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, question],
        env=os.environ | {"WARP_CACHE_PATH": folder},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout.split()[-1])


def main() -> None:
    from tangere.cli.shared.first_calls import FIRST_CALLS

    print("| question | first use ever | first use in a process |\n|---|---|---|")
    chosen = sys.argv[1:]
    for calls in FIRST_CALLS.values():
        for question in (name for name, _ in calls if not chosen or name in chosen):
            with tempfile.TemporaryDirectory() as folder:
                cold, warm = seconds(question, folder), seconds(question, folder)
            print(f"| {question} | {cold:.1f} s | {warm:.2f} s |", flush=True)


if __name__ == "__main__":
    main()
