"""Fleets on Ray: a local one is started, workers are killed, cards are shared out. `make test-extras` runs it."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tangere as tg
from fleet.work import bits, cards, check_whole, faults, squares
from tangere.runtime import InputError

ray = pytest.importorskip("ray")
pytestmark = [pytest.mark.release, pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning")]


@pytest.fixture(scope="module")
def cluster():
    """Four cores and a card, which nobody looks for: Ray believes what it is told."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        ray.init("local", num_cpus=4, num_gpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


def test_a_worker_that_kills_itself_half_way_loses_and_doubles_nothing(cluster, tmp_path):
    jobs = faults("die once", marker=tmp_path / "died")
    report = tg.fleet.run(jobs, tmp_path / "there", tg.fleet.RayCluster(workers=2))
    check_whole(report)
    assert (tmp_path / "died").exists()
    assert report.deaths == 1
    tg.fleet.run(jobs, tmp_path / "here")
    assert bits(tmp_path / "there") == bits(tmp_path / "here")
    again = tg.fleet.run(jobs, tmp_path / "there", "ray")
    assert (again.done, again.kept) == (0, 130)
    assert ray.is_initialized()  # it is not ours to end


def test_a_worker_that_is_killed_from_outside_loses_and_doubles_nothing(cluster, tmp_path):
    rows = [{"x": float(k), "do": "wait"} for k in range(130)]
    jobs = faults(*["wait"] * 3)
    jobs = tg.fleet.Jobs(jobs.kind.function, rows, answers=jobs.kind.answers)
    killed = []

    def kill(done: int, count: int) -> None:
        """The first worker that has written anything, in the middle of the run."""
        if not killed and done > count / 3:
            lines = (tmp_path / "out" / "log.jsonl").read_text().splitlines()
            worker = next(line for line in lines if '"worker"' in line).split('"worker": "')[1].split('"')[0]
            killed.append(int(worker.rpartition(":")[2]))
            os.kill(killed[0], signal.SIGKILL)

    report = tg.fleet.run(jobs, tmp_path / "out", tg.fleet.RayCluster(workers=2), progress=kill)
    check_whole(report)
    assert report.deaths >= 1
    assert len(report.workers) >= 2


@pytest.mark.parametrize("workers", [1, 3])
def test_any_number_of_actors_writes_the_same_bits(cluster, workers, tmp_path):
    tg.fleet.run(squares(), tmp_path / "here")
    check_whole(tg.fleet.run(squares(), tmp_path / "there", tg.fleet.RayCluster(workers=workers)))
    assert bits(tmp_path / "there") == bits(tmp_path / "here")


def test_jobs_that_die_hang_and_raise_are_told(cluster, tmp_path):
    jobs = faults("die", "native", "raise")
    report = tg.fleet.run(jobs, tmp_path / "out", tg.fleet.RayCluster(workers=2), retries=1, seconds_per_job=3.0)
    check_whole(report, {50: "lost", 87: "timeout", 124: "error"})


def test_an_interrupted_run_leaves_no_actor_and_goes_on(cluster, tmp_path):
    def stop(done: int, count: int) -> None:
        if done > count / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tg.fleet.run(squares(), tmp_path / "out", "ray", progress=stop)
    until = time.monotonic() + 60.0
    while ray.available_resources().get("CPU") != 4.0 and time.monotonic() < until:
        time.sleep(0.1)
    assert ray.available_resources()["CPU"] == 4.0
    rest = tg.fleet.run(squares(), tmp_path / "out", "ray")
    check_whole(rest)
    assert rest.kept > 0


def test_actors_take_their_share_of_a_card(cluster, tmp_path):
    answers = {"seen": str, "device": str, "process": int}
    jobs = tg.fleet.Jobs(cards, {"x": list(np.arange(10.0))}, answers=answers)
    report = tg.fleet.run(jobs, tmp_path / "out", "ray", device="cuda", cards_per_worker=0.5)
    told = report.table().to_pydict()
    assert set(told["seen"]) == {"0"}
    assert {device.partition(":")[0] for device in told["device"]} == {"cuda"}
    assert len(set(told["process"])) == 2  # half a card each
    with pytest.raises(InputError, match="Ray has no card for a worker"):
        tg.fleet.run(jobs, tmp_path / "other", "ray", device="cuda", cards_per_worker=2.0)


def test_clashes_are_the_same_bits_as_here(cluster, tmp_path):
    tg.generate.icosphere(2).save(tmp_path / "ball.ply")
    rows = [{"a": "ball.ply", "b": "ball.ply", "pose_b": [0.3 * k, 0, 0, 1, 0, 0, 0]} for k in range(8)]
    jobs = tg.fleet.Jobs("clash", rows, base=tmp_path, depth=False)
    tg.fleet.run(jobs, tmp_path / "here", threads=1)
    report = tg.fleet.run(jobs, tmp_path / "there", tg.fleet.RayCluster(workers=2))
    assert report.failed == 0
    assert bits(tmp_path / "there") == bits(tmp_path / "here")


def test_other_addresses_are_refused(cluster, tmp_path):
    with pytest.raises(InputError, match="connected to Ray already"):
        tg.fleet.run(squares(), tmp_path / "out", tg.fleet.RayCluster(address="elsewhere:6379"))
    with pytest.raises(InputError, match="workers must be"):
        tg.fleet.RayCluster(workers=0)
    assert Path(tmp_path / "out" / "lock").exists()  # nothing but the empty folder
    assert not list((tmp_path / "out" / "shards").iterdir())


def test_ray_is_started_and_ended_where_none_runs(tmp_path, monkeypatch):
    if ray.is_initialized():
        ray.shutdown()
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    check_whole(tg.fleet.run(squares(), tmp_path / "out", tg.fleet.RayCluster(workers=2)))
    assert not ray.is_initialized()
    monkeypatch.setenv("RAY_ADDRESS", "")
    with pytest.raises(InputError, match="Ray at 'auto' cannot be reached"):
        tg.fleet.run(squares(), tmp_path / "other", tg.fleet.RayCluster("auto"))
