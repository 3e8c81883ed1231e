"""`tangere fleet`: tables in, answers in a folder, exit codes, and one sentence for what is wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

import tangere as tg
from tangere.cli import main

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A ball beside and in a box; names of files are relative to the table."""
    monkeypatch.setenv("TANGERE_THREADS", "1")
    (tmp_path / "jobs").mkdir()
    tg.generate.icosphere(1, radius=0.5, name="ball").save(tmp_path / "jobs" / "Kügel.ply")
    tg.generate.box((0.4, 0.4, 0.4)).save(tmp_path / "jobs" / "box.stl")
    columns = {
        "a": ["Kügel.ply"] * 3,
        "b": ["box.stl"] * 3,
        "pose_b": [[x, 0, 0, 1.0, 0, 0, 0] for x in (0.6, 2.0, 3.0)],
    }
    parquet.write_table(pa.table(columns | {"id": ["é", "f", "g"]}), tmp_path / "jobs" / "jobs.parquet")
    return tmp_path / "jobs" / "jobs.parquet"


def call(*words: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, ["fleet", *(str(word) for word in words)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def test_clashes_of_a_table_are_told_written_and_not_done_twice(table, tmp_path):
    words = ("clash", table, "--out", tmp_path / "out", "--label", "id", "--workers", 1)
    code, told, _ = call(*words, "--table", tmp_path / "answers.csv")
    assert code == 1
    assert told.startswith("2 free, 1 hard   (3 clash jobs)")
    assert "a: Kügel.ply and b: box.stl" in told
    assert "é" in (tmp_path / "answers.csv").read_text(encoding="utf-8")
    code, told, _ = call(*words, "--json")
    data = json.loads(told)
    assert (code, data["done"], data["kept"], data["counts"]) == (1, 0, 3, {"free": 2, "hard": 1})
    assert [row["id"] for row in data["look"]] == ["é"]
    code, told, _ = call("report", tmp_path / "out")
    assert (code, told.splitlines()[0]) == (1, "2 free, 1 hard   (3 clash jobs)")


def test_free_is_0_and_a_job_without_an_answer_is_2(table, tmp_path):
    jobs = parquet.read_table(table).drop_columns(["id"])
    parquet.write_table(jobs.slice(1), table)
    assert call("clash", table, "--out", tmp_path / "free", "--workers", 1)[0] == 0
    (table.parent / "box.stl").write_bytes(b"solid nothing")
    code, told, _ = call("clash", table, "--out", tmp_path / "failed", "--workers", 1)
    assert code == 2
    assert told.startswith("2 error")
    (tmp_path / "free" / "shards" / "shard-00001.parquet").unlink()
    code, told, _ = call("report", tmp_path / "free")
    assert code == 2
    assert told.startswith("1 free, 1 missing")


def test_columns_are_listed():
    for kind, word in (("clash", "assembly"), ("check", "trajectory"), ("crowd", "exits")):
        code, told, _ = call(kind, "--columns")
        assert code == 0
        assert word in told


def test_what_is_wrong_is_told_in_one_sentence(table, tmp_path):
    assert call("clash", table, "--out", tmp_path / "out")[2] == (
        "tangere: jobs: clash jobs know no column 'id'; known are a, b, pose_a, pose_b, assembly, clearance, skin,"
        " tolerance, depth, accuracy, cost; a column of your own is kept where labels (--label) names it\n"
    )
    assert "Missing argument 'JOBS'" in call("clash")[2]
    assert "there is no such file" in call("clash", tmp_path / "none.parquet")[2]
    assert "no fleet has been here" in call("report", tmp_path)[2]
    assert "its name must end in .parquet" in call("clash", table, "--label", "id", "--table", tmp_path / "x.xlsx")[2]
    blocked = tmp_path / "file"
    blocked.touch()
    assert call("clash", table, "--label", "id", "--out", blocked / "out")[0] == 2


def test_ctrl_c_ends_a_run_and_its_workers_and_the_same_command_goes_on(tmp_path):
    rows = [{"scenario": "field", "people": 1000, "seconds": 8.0, "seed": k} for k in range(40)]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "jobs.parquet")
    command = [sys.executable, "-m", "tangere", "fleet", "crowd", "jobs.parquet", "--out", "out", "--workers", "1"]
    # Who starts tests in the background ignores Ctrl-C, and what they start inherits that.
    heard = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    command = [sys.executable, "-c", heard, *command]
    where = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    pipes = {"stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    asked = subprocess.Popen(command, cwd=tmp_path, env=where, **pipes)
    until = time.monotonic() + 300.0
    while asked.poll() is None and len(list((tmp_path / "out" / "shards").glob("*"))) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    os.killpg(asked.pid, signal.SIGINT)  # as a terminal does
    _, told = asked.communicate(timeout=300.0)
    assert asked.returncode == 130
    assert "interrupted; what is done is in out: the same command goes on" in told
    assert "Traceback" not in told
    there = tg.fleet.FleetReport.load(tmp_path / "out")
    assert 0 < there.counts["missing"] < 40
    assert not list((tmp_path / "out" / "unfinished").glob("*.parquet*"))
