"""`tangere warm` compiles everything once; `python -m tangere` is `tangere`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import warp as wp
from click.testing import CliRunner

import tangere
from tangere.cli import main
from tangere.cli.shared import kernels
from tangere.cli.shared.first_calls import FIRST_CALLS

SOURCE = Path(tangere.__path__[0])


def test_the_module_runs_as_the_command_does():
    as_module = subprocess.run([sys.executable, "-m", "tangere", "--help"], capture_output=True, text=True, check=True)
    as_command = CliRunner().invoke(main, ["--help"], prog_name="tangere")
    assert as_module.stdout.split() == as_command.stdout.split()
    wrong = subprocess.run([sys.executable, "-m", "tangere", "info", "none.stl"], capture_output=True, text=True)
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("tangere: ")


def test_every_file_with_a_kernel_is_compiled():
    """Found by reading the text: a kernel that starts in the first column belongs to its module."""
    written = {
        ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
        for room in kernels.ROOMS
        for path in (SOURCE / room).rglob("*.py")
        if re.search(r"^@wp\.kernel", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    found = {name for room in kernels.ROOMS for name, _ in kernels.modules_with_kernels(room)}
    assert written <= found
    assert len(written) > 80


def test_every_room_with_kernels_is_warmed():
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert rooms - set(kernels.ROOMS) == {"cli", "fleet", "published"}


def test_a_twin_for_cuda_is_not_compiled_for_the_cpu():
    units = kernels.compilations([wp.get_device("cpu")])
    assert not [what for _, what, _ in units if "cuda" in what.split(".")]
    assert [what for _, what, _ in units if "cpu" in what.split(".")]


def test_questions_have_names_of_their_own():
    names = [name for calls in FIRST_CALLS.values() for name, _ in calls]
    assert len(set(names)) == len(names)
    assert set(FIRST_CALLS) <= set(kernels.ROOMS)


def test_the_page_on_first_use_tells_how_long_every_question_takes():
    page = (Path(__file__).parents[2] / "docs" / "first-use.md").read_text(encoding="utf-8")
    for name in (name for calls in FIRST_CALLS.values() for name, _ in calls):
        row = rf"^\| {re.escape(name)} \| [\d.]+ s \| [\d.]+ s \|$"
        assert re.search(row, page, re.MULTILINE), name


def test_the_command_says_what_was_compiled_and_then_that_everything_is_there(monkeypatch):
    done, files = [], set()

    def compile_one(name):
        done.append(name)
        files.add(Path(name))

    units = [("bvh", name, lambda name=name: compile_one(name)) for name in ("obb", "lbvh")]
    monkeypatch.setattr(kernels, "compilations", lambda devices: units)
    monkeypatch.setattr(kernels, "compiled_files", lambda: set(files))
    first, second = (CliRunner().invoke(main, ["warm", "--device", "cpu"]) for _ in range(2))
    assert first.exit_code == second.exit_code == 0
    assert done == ["obb", "lbvh", "obb", "lbvh"]
    assert "2 modules of kernels compiled for cpu" in first.stdout
    assert re.search(r"bvh\s.*\d\.\d s", first.stdout)
    assert "everything is there" in second.stdout


@pytest.mark.slow
@pytest.mark.release
def test_after_warming_an_empty_cache_no_command_compiles_anything(tmp_path):
    """Minutes: every kernel of the main road is compiled."""
    cache, out = tmp_path / "kernels", str(tmp_path / "out")
    part, path = tmp_path / "box.ply", tmp_path / "path.csv"
    tangere.generate.box().save(part)
    path.write_text("t,x,y,z,qw,qx,qy,qz\n0,-5,0,0,1,0,0,0\n1,5,0,0,1,0,0,0\n")
    environment = os.environ | {"WARP_CACHE_PATH": str(cache)}

    def run(*words):
        done = subprocess.run(
            [sys.executable, "-m", "tangere", *words], env=environment, capture_output=True, text=True, cwd=tmp_path
        )
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    def compiled():
        return {found for found in cache.rglob("*") if found.suffix in (".o", ".cubin", ".ptx")}

    warmed = run("warm")
    print(warmed)
    assert "compiled for cpu" in warmed
    before = compiled()
    assert len(before) > 100
    assert "everything is there" in run("warm")
    commands = [
        ["demo", "--out", out, "--queries", "20000", "--width", "64"],
        ["check", str(part), "--against", str(part), "--path", str(path)],
        ["terrain", "demo", "--out", out],
        *(["soft", scene, "--steps", "5"] for scene in ("tori", "knot", "drop", "cloth")),
        *(["world", scene, "--steps", "5"] for scene in ("stack", "cradle", "body", "door")),
        *(["crowd", scene, "--seconds", "2", "--out", out] for scene in ("corridor", "city", "planet", "swarm")),
    ]
    for words in commands:
        run(*words)
        assert compiled() == before, words
