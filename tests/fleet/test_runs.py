"""Runs of fleets: every job is answered once, whatever happens to workers, files and whoever asked."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

import tangere as tg
from fleet.work import ANSWERS, Power, bits, check_whole, faults, faulty, power, square, squares
from tangere.fleet.run_folder import RunFolder
from tangere.fleet.shard_files import shard_path
from tangere.fleet.worker_pools import _serve
from tangere.runtime import InputError, TangereError

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.release  # no kernel runs here
_LIMIT = 2.0  #: of jobs that hang [s]; others take no time, but may wait for a core


@pytest.fixture
def pool():
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor:
        yield executor


def test_all_jobs_are_done_here_and_none_a_second_time(tmp_path):
    first = tg.fleet.run(squares(), tmp_path / "out")
    check_whole(first)
    assert (first.done, first.kept, first.shards >= 64) == (130, 0, True)
    before = bits(tmp_path / "out")
    again = tg.fleet.run(squares(), tmp_path / "out")
    check_whole(again)
    assert (again.done, again.kept) == (0, 130)
    assert bits(tmp_path / "out") == before
    assert not list((tmp_path / "out" / "unfinished").iterdir())
    assert tg.fleet.FleetReport.load(tmp_path / "out").counts == {"done": 130}


@pytest.mark.parametrize("workers", [1, 3, 8])
def test_any_number_of_workers_writes_the_same_bits(workers, tmp_path):
    tg.fleet.run(squares(), tmp_path / "here")
    report = tg.fleet.run(squares(), tmp_path / "there", workers)
    check_whole(report)
    assert bits(tmp_path / "there") == bits(tmp_path / "here")
    assert 1 <= len(report.workers) <= workers


def test_a_worker_that_is_killed_half_way_loses_and_doubles_nothing(tmp_path):
    jobs = faults("die once", marker=tmp_path / "died")
    report = tg.fleet.run(jobs, tmp_path / "there", 2)
    check_whole(report)
    assert (tmp_path / "died").exists()
    assert report.deaths == 1
    tg.fleet.run(jobs, tmp_path / "here")  # it dies only once
    assert bits(tmp_path / "there") == bits(tmp_path / "here")


def test_a_job_that_kills_every_worker_is_lost_and_no_other(tmp_path):
    report = tg.fleet.run(faults("die"), tmp_path / "out", 2, retries=1)
    check_whole(report, {50: "lost"})
    assert report.deaths == 2
    row = report.table().to_pydict()
    assert row["error"][50] == "its process was ended by SIGKILL, 2 times"


def test_a_pool_that_breaks_loses_and_doubles_nothing(tmp_path, pool):
    jobs = faults("die once", "die", marker=tmp_path / "died")
    report = tg.fleet.run(jobs, tmp_path / "out", pool, retries=1)
    check_whole(report, {87: "lost"})
    with pytest.raises(Exception, match=r"terminated abruptly|broken"):
        pool.submit(os.getpid).result()


def test_jobs_that_raise_are_errors_and_never_free(tmp_path):
    report = tg.fleet.run(faults("raise", "exit", "text", "more", "missing", "no text"), tmp_path / "out")
    check_whole(report, {50: "error", 87: "error", 124: "error", 31: "error", 68: "error", 105: "error"})
    told = report.table().to_pydict()["error"]
    assert told[50] == "RuntimeError: no such thing as this"
    assert told[87] == "SystemExit: 3"
    assert "must return values by name" in told[124]
    assert "returned 'z'" in told[31]
    assert "status must be" in told[68]
    assert told[105] == "RuntimeError: cannot read ?.stl"
    assert report.counts == {"done": 124, "error": 6}


def test_an_answer_of_another_type_is_an_error_of_its_job_alone(tmp_path):
    check_whole(tg.fleet.run(faults("wrong type"), tmp_path / "out"), {50: "error"})


@pytest.mark.parametrize("executor", [None, 1])
def test_a_job_that_sleeps_is_ended_in_time(executor, tmp_path):
    report = tg.fleet.run(faults("sleep"), tmp_path / "out", executor, seconds_per_job=_LIMIT)
    check_whole(report, {50: "timeout"})
    assert report.deaths == 0


def test_a_job_that_hangs_in_native_code_is_ended_with_its_worker(tmp_path):
    report = tg.fleet.run(faults("native", "sleep"), tmp_path / "out", 2, seconds_per_job=_LIMIT)
    check_whole(report, {50: "timeout", 87: "timeout"})
    assert report.deaths == 1
    assert "had to be ended" in report.table().to_pydict()["error"][50]


def test_the_alarm_of_the_caller_is_left_as_it_was(tmp_path):
    before = signal.getsignal(signal.SIGALRM)
    tg.fleet.run(faults("sleep"), tmp_path / "out", seconds_per_job=_LIMIT)
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_warnings_are_notes(tmp_path):
    report = tg.fleet.run(faults("warn"), tmp_path / "out")
    notes = report.table().to_pydict()["note"]
    assert [k for k, note in enumerate(notes) if note] == [50]
    assert notes[50] == "mind the gap"


def test_failed_jobs_are_repeated_when_asked_to(tmp_path):
    assert tg.fleet.run(faults("sleep"), tmp_path / "out", seconds_per_job=_LIMIT).failed == 1
    assert tg.fleet.run(faults("sleep"), tmp_path / "out", seconds_per_job=_LIMIT).done == 0
    again = tg.fleet.run(faults("sleep"), tmp_path / "out", seconds_per_job=_LIMIT, repeat_failed=True)
    assert 1 <= again.done <= 3
    check_whole(again, {50: "timeout"})


class _InterruptedError(Exception):
    pass


@pytest.mark.parametrize("executor", [None, 2])
@pytest.mark.parametrize("how", [KeyboardInterrupt, _InterruptedError])
def test_an_interrupted_run_goes_on_where_it_was(executor, how, tmp_path):
    def stop(done: int, count: int) -> None:
        if done > count / 2:
            raise how

    with pytest.raises(how):
        tg.fleet.run(squares(), tmp_path / "out", executor, progress=stop)
    assert not multiprocessing.active_children()
    part = tg.fleet.FleetReport.load(tmp_path / "out")
    assert 65 < 130 - part.counts["missing"] < 130
    assert part  # what is missing is not free
    assert part.table()["status"].to_pylist().count("missing") == part.counts["missing"]
    rest = tg.fleet.run(squares(), tmp_path / "out", executor)
    check_whole(rest)
    assert rest.kept == 130 - part.counts["missing"]
    tg.fleet.run(squares(), tmp_path / "whole")
    assert bits(tmp_path / "out") == bits(tmp_path / "whole")


SCRIPT = """
import sys
sys.path[:0] = {paths}
from fleet.work import *
if __name__ == "__main__":
    import tangere as tg
    rows = [{{"x": float(k), "do": "wait"}} for k in range(130)]
    tg.fleet.run(tg.fleet.Jobs(faulty, rows, answers=ANSWERS), sys.argv[1], 2)
"""


def test_workers_end_with_a_run_that_is_killed_and_the_next_goes_on(tmp_path):
    script, out = tmp_path / "script.py", tmp_path / "out"
    script.write_text(SCRIPT.format(paths=sys.path))
    asked = subprocess.Popen([sys.executable, str(script), str(out)], stderr=subprocess.DEVNULL)
    until = time.monotonic() + 120.0
    while len(list((out / "shards").glob("*"))) < 3 and time.monotonic() < until:
        time.sleep(0.05)
    children = Path(f"/proc/{asked.pid}/task/{asked.pid}/children").read_text().split()
    assert len(children) >= 2
    asked.kill()
    asked.wait()
    while any(Path(f"/proc/{child}/cmdline").exists() for child in children) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(Path(f"/proc/{child}/cmdline").exists() for child in children)
    there = tg.fleet.FleetReport.load(out)
    assert 0 < there.counts["missing"] < 130
    rows = [{"x": float(k), "do": "wait"} for k in range(130)]
    rest = tg.fleet.run(tg.fleet.Jobs(faulty, rows, answers=ANSWERS), out)
    check_whole(rest)
    assert rest.kept == 130 - there.counts["missing"]


def test_a_script_needs_a_guard_only_for_functions_of_its_own(tmp_path):
    script, text = (
        tmp_path / "script.py",
        SCRIPT.format(paths=sys.path).replace('if __name__ == "__main__":', "if True:"),
    )
    script.write_text(text)
    ended = subprocess.run([sys.executable, script, tmp_path / "out"], capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    own = "\ndef own(row, tools):\n    return {'y': row['x']}\n"
    script.write_text(text.replace("if True:", own + "if True:").replace("Jobs(faulty", "Jobs(own"))
    ended = subprocess.run([sys.executable, script, tmp_path / "own"], capture_output=True, text=True, timeout=300)
    assert ended.returncode != 0
    assert "must call run below if __name__ == '__main__'" in ended.stderr.splitlines()[-1]
    script.write_text(script.read_text().replace("if True:", "if __name__ == '__main__':"))
    ended = subprocess.run([sys.executable, script, tmp_path / "guarded"], capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr


def _cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def _flip(path: Path) -> None:
    """One bit in the pages, of which the footer knows nothing."""
    data = bytearray(path.read_bytes())
    data[60] ^= 4
    path.write_bytes(data)


def _flip_name(path: Path) -> None:
    """One bit in the name of a column, in the footer."""
    data = bytearray(path.read_bytes())
    data[data.index(b"status", data.index(b"schema")) + 1] ^= 2
    path.write_bytes(data)


def _flip_to_no_text(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[data.index(b"status", data.index(b"schema")) + 1] ^= 128
    path.write_bytes(data)


def _from_elsewhere(path: Path) -> None:
    path.write_bytes(path.with_name("shard-00003.parquet").read_bytes())


@pytest.mark.parametrize(
    "harm", [_cut_short, _flip, _flip_name, _flip_to_no_text, _from_elsewhere, lambda path: path.write_bytes(b"")]
)
def test_a_damaged_shard_is_done_again(harm, tmp_path):
    tg.fleet.run(squares(), tmp_path / "out")
    before = bits(tmp_path / "out")
    harm(shard_path(tmp_path / "out", 7))
    assert tg.fleet.FleetReport.load(tmp_path / "out").counts["missing"] > 0
    again = tg.fleet.run(squares(), tmp_path / "out")
    check_whole(again)
    assert again.damaged == 1
    assert 0 < again.done < 5
    assert bits(tmp_path / "out") == before


def test_jobs_that_have_changed_are_told_and_done_when_asked_to(tmp_path):
    tg.fleet.run(squares(), tmp_path / "out")
    table = squares().table.to_pydict()
    table["x"][77] = 0.5
    other = tg.fleet.Jobs(square, table, answers=ANSWERS)
    with pytest.raises(InputError, match=r"have changed since: 1 of \d+ shards are of something else"):
        tg.fleet.run(other, tmp_path / "out")
    report = tg.fleet.run(other, tmp_path / "out", changed="redo")
    check_whole(report)
    assert 0 < report.done < 5
    assert report.table()["y"][77].as_py() == 0.25
    with pytest.raises(InputError, match="have changed"):
        tg.fleet.run(squares(129), tmp_path / "out")
    with pytest.raises(InputError, match="have changed"):
        tg.fleet.run(other, tmp_path / "out", device="cuda")


def test_a_function_that_has_changed_is_told(tmp_path):
    tg.fleet.run(squares(), tmp_path / "out")
    jobs = tg.fleet.Jobs(faulty, squares().table, answers=ANSWERS)
    with pytest.raises(InputError, match="have changed"):
        tg.fleet.run(jobs, tmp_path / "out")


@pytest.mark.parametrize("function", [lambda k: partial(power, exponent=k), Power, lambda k: partial(power, k)])
def test_what_a_function_holds_is_part_of_it(function, tmp_path):
    table = squares().table
    first = tg.fleet.run(tg.fleet.Jobs(function(2.0), table, answers=ANSWERS), tmp_path / "out")
    again = tg.fleet.run(tg.fleet.Jobs(function(2.0), table, answers=ANSWERS), tmp_path / "out")
    assert again.done == 0
    assert again.table() == first.table()
    with pytest.raises(InputError, match="have changed"):
        tg.fleet.run(tg.fleet.Jobs(function(3.0), table, answers=ANSWERS), tmp_path / "out")


def test_another_length_of_shards_changes_nothing_that_has_begun(tmp_path):
    tg.fleet.run(squares(), tmp_path / "out")
    assert tg.fleet.run(squares(), tmp_path / "out", seconds_per_shard=0.01).done == 0


def test_two_runs_in_one_folder_at_once_are_refused(tmp_path):
    with (
        RunFolder(tmp_path / "out").held(),
        pytest.raises(InputError, match="another run is going on in it, by process"),
    ):
        tg.fleet.run(squares(), tmp_path / "out")
    check_whole(tg.fleet.run(squares(), tmp_path / "out"))


def test_a_second_process_is_refused_while_the_first_runs(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(paths=sys.path))
    seen = []

    def ask(done: int, count: int) -> None:
        if not seen:
            seen.append(subprocess.run([sys.executable, script, tmp_path / "out"], capture_output=True, text=True))

    check_whole(tg.fleet.run(squares(), tmp_path / "out", progress=ask))
    assert f"another run is going on in it, by process {os.getpid()} on" in seen[0].stderr


def test_a_full_disk_is_told_and_the_run_goes_on_later(tmp_path, monkeypatch):
    import pyarrow.parquet

    write, calls = pyarrow.parquet.write_table, []

    def fill_up(table, where, **options):
        calls.append(where)
        if len(calls) > 20:
            Path(where).write_bytes(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")
        write(table, where, **options)

    monkeypatch.setattr(pyarrow.parquet, "write_table", fill_up)
    with pytest.raises(InputError, match=r"shard-\d+.parquet: cannot be written: No space left on device"):
        tg.fleet.run(squares(), tmp_path / "out")
    monkeypatch.undo()
    assert not list((tmp_path / "out" / "unfinished").glob("*.parquet*"))
    rest = tg.fleet.run(squares(), tmp_path / "out")
    check_whole(rest)
    assert rest.kept > 0


def test_folders_that_cannot_be_are_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be written: Not a directory"):
        tg.fleet.run(squares(), tmp_path / "file" / "out")
    with pytest.raises(InputError, match="folder must be a path"):
        tg.fleet.run(squares(), 3)
    with pytest.raises(InputError, match=r"no fleet has been here"):
        tg.fleet.FleetReport.load(tmp_path)
    (tmp_path / "fleet.json").write_text("{}")
    with pytest.raises(InputError, match=r"fleet.json: is not of a fleet of ours"):
        tg.fleet.FleetReport.load(tmp_path)
    (tmp_path / "other" / "shards").mkdir(parents=True)
    (tmp_path / "other" / "shards" / "shard-00000.parquet").touch()
    with pytest.raises(InputError, match=r"has shards but no fleet.json"):
        tg.fleet.run(squares(), tmp_path / "other")


def test_threads_are_refused_because_jobs_have_their_own(tmp_path):
    with ThreadPoolExecutor(2) as executor, pytest.raises(InputError, match="workers in processes of their own"):
        tg.fleet.run(squares(), tmp_path / "out", executor)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"executor": "slurm"}, "executor must be None, a number of processes, 'ray' or an Executor, not 'slurm'"),
        ({"executor": 0}, "executor must be a whole number of at least 1"),
        ({"executor": True}, "executor must be None"),
        ({"retries": -1}, "retries must be"),
        ({"seconds_per_shard": 0.0}, "seconds_per_shard must be"),
        ({"seconds_per_job": -1.0}, "seconds_per_job must be"),
        ({"changed": "yes"}, "changed must be"),
        ({"device": "cuda:1"}, "device must be"),
        ({"cards_per_worker": 0.0}, "cards_per_worker must be"),
        ({"threads": 0}, "threads must be"),
    ],
)
def test_wrong_arguments_are_told_before_anything_is_written(given, told, tmp_path):
    with pytest.raises(InputError, match=told):
        tg.fleet.run(squares(), tmp_path / "out", **given)
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="jobs must be a Jobs"):
        tg.fleet.run([1, 2], tmp_path / "out")


def test_functions_that_workers_cannot_import_are_told(tmp_path, pool):
    local = tg.fleet.Jobs(lambda row, tools: {}, {"x": [1.0]}, answers={})
    for executor in (2, pool):
        with pytest.raises(InputError, match="must be able to import"):
            tg.fleet.run(local, tmp_path / "out", executor)
    assert tg.fleet.run(local, tmp_path / "out").fine == 1


def test_a_time_limit_needs_the_main_thread_or_workers(tmp_path):
    told = []

    def ask() -> None:
        try:
            tg.fleet.run(squares(), tmp_path / "out", seconds_per_job=1.0)
        except TangereError as error:
            told.append(str(error))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert told == ["seconds_per_job goes with an executor, or with the main thread"]


def test_a_worker_whose_answer_nobody_reads_ends_without_a_word(capfd):
    """Who asked was interrupted just then: the pipe breaks with an answer in it."""
    spawn = multiprocessing.get_context("spawn")
    mine, theirs = spawn.Pipe()
    worker = spawn.Process(target=_serve, args=(theirs, os.getpid()), daemon=True)
    worker.start()
    theirs.close()
    mine.send("no shard")
    assert mine.poll(60.0)
    mine.close()
    worker.join(60.0)
    assert worker.exitcode == 0
    assert capfd.readouterr().err == ""
