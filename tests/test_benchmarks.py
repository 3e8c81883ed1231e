"""Every benchmark runs in small: what proves a feature must be there to be run again."""

from __future__ import annotations

import importlib

import pytest

from bench.__main__ import benchmarks
from bench.harness import Report, SkippedError


def test_what_is_listed_can_be_run():
    assert "pitiot_crowd_tasks" in benchmarks()
    for name in benchmarks():
        try:
            module = importlib.import_module(f"bench.{name}")
        except ModuleNotFoundError as missing:
            if missing.name is None or missing.name.startswith(("bench", "tangere", "oracles")):
                raise
            continue  # a peer that is not installed
        assert callable(module.run), name


@pytest.mark.slow
@pytest.mark.release
@pytest.mark.parametrize("name", benchmarks())
def test_a_benchmark_runs_in_small(name, tmp_path):
    try:
        module = importlib.import_module(f"bench.{name}")
        report = Report(name, module.__doc__ or name)
        module.run(report, quick=True)
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.startswith(("bench", "tangere", "oracles")):
            raise
        pytest.skip(f"{missing.name} is not installed (extra [bench])")
    except SkippedError as reason:
        pytest.skip(str(reason))
    assert report.write(tmp_path).read_text().startswith("# ")
