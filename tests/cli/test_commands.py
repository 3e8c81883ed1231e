"""The command line: answers, exit codes, and one sentence for everything that can be wrong."""

from __future__ import annotations

import json
import socket
import subprocess
import sys

import click
import numpy as np
import pytest
from click.testing import CliRunner

from tangere.cli import main
from tangere.motion import Linear
from tangere.scene import Scene
from tangere.shape.generate import icosphere, sheet
from tangere.shape.mesh import Mesh


def call(*arguments) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of one command."""
    result = CliRunner().invoke(main, [str(word) for word in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def test_every_command_that_help_lists_is_there():
    context = click.Context(main)
    listed = main.list_commands(context)
    assert [main.get_command(context, name).name for name in listed] == listed
    assert main.get_command(context, "fly") is None
    assert call("fly")[0] == 2


def strictly_parsed(text: str):
    """JSON as its standard has it: Python's parser alone would also take NaN and Infinity."""

    def refuse(word: str):
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def saved(folder, name, vertices, faces) -> str:
    path = folder / name
    Mesh(vertices, faces).save(path)
    return str(path)


@pytest.fixture
def falling(tmp_path) -> list[str]:
    """A ball of radius 1 that falls from height 3 by 4, and a floor: they touch at t = (3 - 1) / 4."""
    ball, floor = icosphere(2, radius=1.0), sheet(8, size=(6.0, 6.0))
    start, end = ball.vertices + (0.1, 0.2, 3.0), ball.vertices + (0.1, 0.2, -1.0)
    lowest = start[:, 2].min()
    return [
        saved(tmp_path, "ball.ply", start, ball.faces),
        saved(tmp_path, "floor.ply", floor.vertices, floor.faces),
        saved(tmp_path, "ball_later.ply", end, ball.faces),
        str(lowest / 4.0),
    ]


def test_first_contact_says_when_and_exits_with_1(falling):
    ball, floor, later, expected = falling
    code, out, err = call("first-contact", ball, floor, "--to", later, floor)
    assert (code, err) == (1, "")
    assert "contact at t = " in out
    assert "floor.ply" in out
    assert float(out.split("t = ")[1].split(",")[0].split()[0]) == pytest.approx(float(expected), abs=1e-5)


def test_json_holds_the_same_answer_with_every_column(falling):
    ball, floor, later, expected = falling
    code, out, _ = call("first-contact", ball, floor, "--to", later, "--json")  # a mesh without an end file rests
    answer = json.loads(out)
    assert code == 1
    assert answer["status"] == "contact"
    assert float(expected) - 1e-5 < answer["time"] <= float(expected)
    assert {"point_a", "normal", "gap", "kind"} <= answer["contacts"][0].keys()
    assert abs(answer["contacts"][0]["normal"][2]) == pytest.approx(1.0, abs=1e-6)


def test_free_exits_with_0_and_infinity_is_null(falling):
    ball, floor, *_ = falling
    code, out, _ = call("first-contact", ball, floor, "--to", ball, floor, "--json")
    answer = json.loads(out)
    assert code == 0
    assert (answer["status"], answer["time"], answer["time_upper"], answer["contacts"]) == ("free", None, None, [])


def test_an_overlap_at_the_start_is_json_that_a_strict_parser_takes(falling, tmp_path):
    ball, floor, *_ = falling
    pierced = Mesh.load(ball)
    through = saved(tmp_path, "through.ply", pierced.vertices - (0.0, 0.0, 3.0), pierced.faces)
    for extra in ([], ["--all"]):
        code, out, _ = call("first-contact", through, floor, "--json", *extra)
        answer = strictly_parsed(out)
        assert (code, answer["status"], answer["time"]) == (1, "start", 0.0)
        assert answer["contacts"][0]["kind"] == "overlap"
        assert answer["contacts"][0]["weights"] == [None] * 4


def test_all_lists_more_contacts_than_the_first(falling):
    ball, floor, later, _ = falling
    first = json.loads(call("first-contact", ball, floor, "--to", later, "--json")[1])["contacts"]
    every = json.loads(call("first-contact", ball, floor, "--to", later, "--json", "--all")[1])["contacts"]
    assert len(every) > len(first) >= 1
    code, out, _ = call("first-contact", ball, floor, "--to", later, "--all")
    assert code == 1
    assert f"and {len(every) - 20} more" in out


def test_one_mesh_is_tested_against_itself(tmp_path):
    flat = sheet(128, size=(2.0, 2.0))
    x, y, _ = flat.vertices.T
    folded = np.stack([np.abs(x) - 0.2 * (x > 0), y, 0.4 * np.sign(x) * np.abs(x)], axis=1)
    through = folded * (1.0, 1.0, -1.0)
    start, end = (saved(tmp_path, n, v, flat.faces) for n, v in (("a.ply", folded), ("b.ply", through)))
    code, out, _ = call("first-contact", start, "--to", end, "--json")
    assert code == 1
    assert 0.0 <= json.loads(out)["time"] <= 0.5
    assert call("first-contact", start, "--to", start, "--json")[0] == 0


def test_a_soup_of_triangles_is_welded_only_where_both_files_agree(tmp_path):
    """An STL file repeats every vertex; two files must be welded alike, or their triangles would not match."""
    flat = sheet(32, size=(2.0, 2.0))
    collapsed = flat.vertices * (1.0, 0.0, 1.0)  # many vertices coincide here that are apart at the start
    start, end = (saved(tmp_path, n, v, flat.faces) for n, v in (("a.stl", flat.vertices), ("b.stl", collapsed)))
    code, out, _ = call("first-contact", start, "--to", end, "--json")
    assert code in (0, 1)
    assert json.loads(out)["status"] != "start"


def test_picture_and_recording_are_left_where_asked(falling, tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    ball, floor, later, _ = falling
    png, npz = tmp_path / "out.png", tmp_path / "scene.npz"
    code, *_ = call("first-contact", ball, floor, "--to", later, "--png", png, "--save", npz)
    assert code == 1
    assert image_module.open(png).size[0] > 1000
    scene = Scene.load(npz)
    assert [thing.moves for thing in scene.things] == [True, False]
    assert len(scene.contacts) >= 1
    code, out, _ = call("view", npz, "--png", tmp_path / "again.png", "--time", 0.4)
    assert code == 0
    assert "again.png" in out
    assert image_module.open(tmp_path / "again.png").size == (960, 640)


def test_prepared_parts_are_meshes_like_others(falling, tmp_path, monkeypatch):
    ball, floor, later, _ = falling
    assert call("convert", ball, floor, later, "--out", tmp_path / "parts")[0] == 0
    parts = [tmp_path / "parts" / name for name in ("ball.npz", "floor.npz", "ball_later.npz")]
    code, out, _ = call("first-contact", parts[0], parts[1], "--to", parts[2], "--json")
    assert code == 1
    assert out == call("first-contact", ball, floor, "--to", later, "--json")[1]
    pytest.importorskip("PIL", reason="pictures need the extra [view]")
    png, shown = tmp_path / "parts.png", []
    monkeypatch.setattr("tangere.view.picture", lambda scene, time, path: shown.append(len(scene.things)))
    for words in ((parts[0],), (parts[0], parts[1]), (parts[0], "--to", parts[2])):
        assert call("view", *words, "--png", png)[0] == 0
    assert shown == [1, 2, 1]
    assert "a recorded scene" not in complaint("view", parts[0], "--to", floor, "--png", png)


def test_the_view_option_serves_the_scene_at_the_contact(falling, monkeypatch):
    pytest.importorskip("viser", reason="the viewer needs the extra [view]")
    from tangere.view import Viewer

    shown = []
    monkeypatch.setattr(Viewer, "wait", lambda self: shown.append((self.time, self.url)))
    ball, floor, later, expected = falling
    code, _, err = call("first-contact", ball, floor, "--to", later, "--view")
    assert code == 1
    assert shown[0][0] == pytest.approx(float(expected), abs=1e-5)
    assert shown[0][1] in err
    assert shown[0][1].startswith("http://127.0.0.1:")


def test_info_counts_what_is_there_and_names_what_is_unusual(tmp_path):
    open_mesh = saved(tmp_path, "open.ply", *(lambda m: (m.vertices, m.faces[:-2]))(icosphere(1)))
    code, out, _ = call("info", open_mesh, "--json")
    data = json.loads(out)
    assert code == 0
    assert (data["triangles"], data["closed"]) == (78, False)
    code, out, _ = call("info", open_mesh)
    assert code == 0
    assert "78" in out
    assert "one triangle only" in out


BAD_FILES = {
    "text.ply": "hello",
    "empty.ply": "ply\nformat ascii 1.0\nelement vertex 0\nproperty float x\nproperty float y\nproperty float z\n"
    "element face 0\nproperty list uchar int vertex_indices\nend_header\n",
    "nan.ply": "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
    "element face 1\nproperty list uchar int vertex_indices\nend_header\n0 0 0\n1 0 nan\n0 1 0\n3 0 1 2\n",
    "wild.obj": "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n",
    "unknown.xyz123": "1 2 3",
}


def complaint(*arguments) -> str:
    """What a command that must fail with 2 says: one line, and no traceback."""
    code, out, err = call(*arguments)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_gets_one_sentence_and_exit_code_2(name, tmp_path, falling):
    bad = tmp_path / name
    bad.write_text(BAD_FILES[name])
    for words in (["info", bad], ["first-contact", bad, falling[1]], ["view", bad, "--png", tmp_path / "x.png"]):
        assert name in complaint(*words)


def test_other_bad_input_gets_one_sentence_too(tmp_path, falling):
    ball, floor, later, _ = falling
    assert "no file" in complaint("info", tmp_path / "absent.ply")
    assert "vertices" in complaint("first-contact", ball, "--to", floor)
    flipped = Mesh.load(ball)
    turned = saved(tmp_path, "turned.ply", flipped.vertices, flipped.faces[::-1])
    assert "triangles differ" in complaint("first-contact", ball, "--to", turned)
    assert "one or two meshes" in complaint("first-contact", ball, ball, ball)
    assert "must not be more" in complaint("first-contact", ball, "--to", later, later)
    assert "separation" in complaint("first-contact", ball, floor, "--to", later, "--separation", "-1")
    assert "device" in complaint("first-contact", ball, floor, "--to", later, "--device", "abacus")
    assert "scene" in complaint("view", saved_text(tmp_path / "scene.npz"))
    assert "--to" in complaint("view", tmp_path / "scene.npz", "--to", later)


def saved_text(path):
    path.write_text("no arrays here")
    return path


def test_wrong_words_are_explained_by_click_with_exit_code_2(falling):
    for words in (["first-contact"], ["first-contact", falling[0], "--to"], ["dance"], ["bench", "--threads", "0"]):
        code, out, err = call(*words)
        assert (code, out) == (2, "")
        assert "Error: " in err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--png", "picture.jpg"], ".png"),
        (["--png", "absent/picture.png"], "no folder"),
        (["--png", "folder.png"], "folder"),
        (["--save", "scene.npy"], ".npz"),
        (["--save", "absent/scene.npz"], "no folder"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_the_work(words, reason, falling, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.png").mkdir()
    monkeypatch.setattr("tangere.first_contact", lambda *_, **__: pytest.fail("the work was begun"))
    before = sorted(tmp_path.rglob("*"))
    commands = [["first-contact", falling[0], falling[1]]]
    if words[0] == "--png":
        commands += [["view", falling[0]], ["bench", "--seconds", "0"]]
    for command in commands:
        message = complaint(*command, *words)
        assert reason in message
        assert words[1] in message
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(("option", "module"), [("--png", "PIL"), ("--view", "viser")])
def test_a_missing_package_is_told_before_the_work(option, module, falling, tmp_path, monkeypatch):
    monkeypatch.setattr("tangere.first_contact", lambda *_, **__: pytest.fail("the work was begun"))
    monkeypatch.setitem(sys.modules, module, None)
    words = [option, tmp_path / "x.png"] if option == "--png" else [option]
    assert "pip install 'tangere[view]'" in complaint("first-contact", falling[0], falling[1], *words)


@pytest.mark.parametrize("time", [-0.5, 1.5, float("nan"), float("inf")])
def test_a_time_outside_the_scene_is_refused_even_where_nothing_moves(time, falling, tmp_path):
    png = tmp_path / "x.png"
    assert "from 0 to 1" in complaint("view", falling[1], "--png", png, "--time", time)
    assert "from 0 to 1" in complaint("view", falling[1], "--time", time)
    assert not png.exists()


def test_an_address_that_cannot_be_bound_is_refused(falling):
    pytest.importorskip("viser", reason="the viewer needs the extra [view]")
    for host in ("192.0.2.1", "no-such-host.invalid", "a..b"):  # 192.0.2.0/24 is nobody's, for documentation only
        assert host in complaint("view", falling[1], "--host", host)


def test_a_taken_port_is_refused_if_asked_for_and_told_if_it_is_the_default(falling, monkeypatch):
    pytest.importorskip("viser", reason="the viewer needs the extra [view]")
    from tangere.view import Viewer

    monkeypatch.setattr(Viewer, "wait", lambda self: None)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"port {port} is taken" in complaint("view", falling[1], "--port", port)
        for place in ("tangere.view.address.DEFAULT_PORT", "tangere.view.DEFAULT_PORT"):
            monkeypatch.setattr(place, port)
        code, out, err = call("view", falling[1])
    assert code == 0
    assert f"port {port} is taken" in err
    assert f"http://127.0.0.1:{port} " not in out
    assert "http://127.0.0.1:" in out


def test_the_page_shows_the_time_asked_for(falling, monkeypatch):
    pytest.importorskip("viser", reason="the viewer needs the extra [view]")
    from tangere.view import Viewer

    shown = []
    monkeypatch.setattr(Viewer, "wait", lambda self: shown.append(self.time))
    assert call("view", falling[0], "--to", falling[2], "--time", "0.25")[0] == 0
    assert call("view", falling[0], "--to", falling[2])[0] == 0
    assert shown == [0.25, 0.0]


def test_a_recorded_scene_is_served_until_it_is_closed(tmp_path, monkeypatch):
    pytest.importorskip("viser", reason="the viewer needs the extra [view]")
    from tangere.view import Viewer

    mesh = icosphere(1)
    Scene.of(mesh.moving(Linear(mesh.vertices + 1.0))).save(tmp_path / "scene.npz")
    monkeypatch.setattr(Viewer, "wait", lambda self: None)
    code, out, _ = call("view", tmp_path / "scene.npz")
    assert code == 0
    assert "http://127.0.0.1:" in out


def test_help_comes_at_once_without_loading_warp():
    script = "import sys; from tangere.cli import main; main(['--help'], standalone_mode=False);"
    script += "print('warp' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "first-contact" in out
    assert out.rstrip().endswith("False")
