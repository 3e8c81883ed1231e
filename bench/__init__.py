"""Benchmarks: ours and the peers in the same run, one question per file. `python -m bench` runs them."""

import sys
from pathlib import Path

# The query families and the readers of public data are shared with the tests.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
