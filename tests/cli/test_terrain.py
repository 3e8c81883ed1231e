"""`tangere terrain`: the demo leaves what it promises, and the check tells where bodies touch a ground of one's own."""

from __future__ import annotations

import json
import math
import sys
from contextlib import contextmanager

import numpy as np
import pytest
from click.testing import CliRunner

import tangere as tg
from tangere.cli import main
from tangere.cli.shared.ground_patch import patch
from tangere.cli.shared.terrain_showcase import article_barrels
from tangere.shape.generate import terrain

UPRIGHT, ON_ITS_SIDE = "1,0,0,0", "0.5,0,0.5,0"


@pytest.fixture
def folder(tmp_path):
    """Level ground of 20 x 20 m, and a barrel (0.3, 0.9) upright 5 mm in it, one on its side, one above it."""
    terrain.flat(cell=0.5).save(tmp_path / "yard.npz")
    np.save(tmp_path / "yard.npy", np.zeros((41, 41)))
    lines = [f"5,5,0.445,{UPRIGHT}", f"9,9,0.3,{ON_ITS_SIDE}", f"12,12,2,{UPRIGHT}"]
    (tmp_path / "barrels.csv").write_text("\n".join(["x,y,z,qw,qx,qy,qz", *lines]) + "\n")
    (tmp_path / "above.csv").write_text(f"t,x,y,z,qw,qx,qy,qz\n0,12,12,2,{UPRIGHT}\n")
    return tmp_path


def check(folder, *more: str, ground: str = "yard.npz", poses: str = "barrels.csv"):
    words = ["terrain", "check", str(folder / ground), "--poses", str(folder / poses), *more]
    return CliRunner().invoke(main, words)


def test_the_demo_leaves_pictures_and_a_table_of_real_answers(tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    words = ["terrain", "demo", "--out", str(tmp_path / "out"), "--wheels", "300", "--width", "120", "--device", "cpu"]
    result = CliRunner().invoke(main, words)
    assert result.exception is None, result.output
    text = (tmp_path / "out" / "terrain.md").read_text()
    rows = {line.split("|")[1].strip(): [cell.strip() for cell in line.split("|")[2:-1]] for line in text.splitlines()
            if line.startswith("|")}  # fmt: skip
    assert rows["on its base"][:2] == ["4", "0.00 0.00 1.00"]
    assert rows["on its side"][:2] == ["2", "0.00 0.00 1.00"]
    assert rows["on road and kerb"][1] == "-0.33 0.00 0.94; 0.00 0.00 1.00"
    assert rows["touching"][0] == "300 touch"
    assert rows["first contact"][0] == "300 times"
    assert int(rows["manifold"][0].removesuffix(" contacts")) >= 300
    assert all(float(rows[name][2].removesuffix(" us")) > 0.0 for name in ("touching", "manifold", "first contact"))
    for name, frames in (("barrels.png", 3), ("wheels.png", 3)):
        image = np.asarray(image_module.open(tmp_path / "out" / name).convert("RGB"))
        assert image.shape[1] >= frames * 120
        assert image.std() > 10


def test_the_demo_shows_the_scene_that_was_asked_for(tmp_path, monkeypatch):
    shown = []

    @contextmanager
    def page(scene, block):
        shown.append(scene)
        yield type("Page", (), {"url": "address", "set_time": lambda _, time: None, "wait": lambda _: None})()

    monkeypatch.setattr("tangere.view.show", page)
    words = ["terrain", "demo", "--out", str(tmp_path), "--wheels", "20", "--width", "32", "--view"]
    for more in ([], ["kerb"]):
        assert CliRunner().invoke(main, [*words, *more]).exit_code == 0
    assert [scene.title for scene in shown] == ["Wheels lowered on dunes", "A barrel on road and kerb"]


def test_the_demo_refuses_a_folder_that_cannot_be_made_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr("tangere.manifold", lambda *_, **__: pytest.fail("the work was begun"))
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(main, ["terrain", "demo", "--out", str(tmp_path / "file" / "out")])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "folder cannot be made" in result.stderr


@pytest.mark.parametrize(
    "words", [("demo",), ("demo", "--view"), ("check", "--png"), ("check", "--view")], ids=" ".join
)
def test_a_missing_package_is_told_before_the_work(words, folder, monkeypatch):
    monkeypatch.setattr("tangere.manifold", lambda *_, **__: pytest.fail("the work was begun"))
    monkeypatch.setitem(sys.modules, "viser" if "--view" in words else "PIL", None)
    if words[0] == "demo":
        result = CliRunner().invoke(main, ["terrain", *words, "--out", str(folder / "out")])
    else:
        more = [] if "--view" in words else [str(folder / "x.png")]
        result = check(folder, "--cylinder", "0.3", "0.9", words[1], *more)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "pip install 'tangere[view]'" in result.stderr
    assert not (folder / "out").exists()


def test_the_barrels_of_the_article_just_rest_on_the_ground():
    reach = {
        "base": [[1.7, 8.7, 0.0], [2.3, 9.3, 0.0]],
        "side": [[1.55, 6.0, 0.0], [2.45, 6.0, 0.0]],
        # The rim is on the road; the kerb, 0.45 m along the base from there, is a chord 0.15 m beyond the centre.
        "kerb": [[4.0 - math.sqrt(0.45**2 - 0.15**2), 3.0 - math.sqrt(0.09 - 0.0225), 0.0],
                 [4.0, 3.0 + math.sqrt(0.09 - 0.0225), 0.15]],
    }  # fmt: skip
    for name, barrel in article_barrels().items():
        found = tg.manifold(barrel.body, barrel.ground, device="cpu")
        assert np.abs(found.gap).max() < 1e-9
        ends = np.stack([found.point_a.min(axis=0), found.point_a.max(axis=0)])
        assert ends == pytest.approx(np.array(reach[name]), abs=1e-9)


def test_a_patch_has_the_heights_and_holes_of_the_whole(rng):
    holes = rng.random((20, 30)) < 0.2
    whole = tg.Heightfield(rng.normal(size=(21, 31)), (0.5, 0.25), (1.0, 2.0, 3.0), holes)
    part = patch(whole, np.array([6.0, 4.0]), (2.0, 1.0))
    points = rng.uniform([4.0, 3.0], [8.0, 5.0], (200, 2))
    assert part.height_at(points) == pytest.approx(whole.height_at(points), nan_ok=True)
    assert part.shape[0] < 20
    assert part.shape[1] < 30


def test_a_patch_of_a_huge_grid_has_vertices_of_it_and_few_of_them(rng):
    whole = tg.Heightfield(rng.normal(size=(2, 5001)), 0.5)
    part = patch(whole, np.array([1000.0, 0.0]), (900.0, 5.0))
    assert part.shape[1] <= 900
    assert part.bounds[:, 0] == pytest.approx([100.0, 1900.0], abs=2.0)
    corners = part.vertices.reshape(-1, 3)
    assert whole.height_at(corners) == pytest.approx(corners[:, 2])


def test_a_patch_beside_the_ground_is_its_nearest_cell():
    ground = tg.Heightfield(np.arange(16.0).reshape(4, 4))
    part = patch(ground, np.array([-50.0, 70.0]), (1.0, 1.0))
    assert part.shape == (1, 1)
    assert part.origin == (0.0, 2.0, 0.0)
    assert part.heights.tolist() == [[8.0, 9.0], [12.0, 13.0]]


def test_a_check_tells_each_contact_and_exits_with_1(folder):
    result = check(folder, "--cylinder", "0.3", "0.9")
    assert result.exit_code == 1, result.output
    assert "2 of 3 touch, 6 contacts" in result.stdout
    assert "yard.npz" in result.stdout


def test_json_has_points_normals_and_gaps(folder):
    answer = json.loads(check(folder, "--cylinder", "0.3", "0.9", "--json", "--device", "cpu").stdout)
    assert (answer["bodies"], answer["touching"]) == (3, 2)
    assert [contact["body"] for contact in answer["contacts"]] == [0, 0, 0, 0, 1, 1]
    assert [contact["gap"] for contact in answer["contacts"]] == pytest.approx([-0.005] * 4 + [0.0] * 2, abs=1e-9)
    ends = sorted(contact["point"] for contact in answer["contacts"] if contact["body"] == 1)
    assert np.array(ends) == pytest.approx(np.array([[8.55, 9.0, 0.0], [9.45, 9.0, 0.0]]))
    for contact in answer["contacts"]:
        assert contact["normal"] == pytest.approx([0.0, 0.0, 1.0])


def test_free_bodies_exit_with_0_and_a_margin_sees_farther(folder):
    free = check(folder, "--cylinder", "0.3", "0.9", poses="above.csv")
    assert (free.exit_code, free.stdout.split()[0]) == (0, "free")
    near = check(folder, "--cylinder", "0.3", "0.9", "--margin", "1.6", poses="above.csv")
    assert near.exit_code == 1
    assert "1 of 1 touches" in near.stdout


@pytest.mark.parametrize(
    ("sizes", "bodies"),
    [
        (("--sphere", "0.45"), tg.Sphere(0.45)),
        (("--capsule", "0.2", "0.5"), tg.Capsule(0.2, 0.5)),
        (("--cone", "0.3", "0.9"), tg.Cone(0.3, 0.9)),
        (("--box", "0.5", "0.6", "0.9"), tg.Box([0.25, 0.3, 0.45])),
    ],
)
def test_other_bodies_have_the_sizes_that_are_given(folder, sizes, bodies, monkeypatch):
    asked = []
    monkeypatch.setattr("tangere.manifold", lambda *given, **_: asked.append(given) or tg.Contacts())
    assert check(folder, *sizes).exit_code == 0
    given, ground = asked[0]
    assert type(given) is type(bodies)
    assert given.records == bodies.records
    assert given.poses[:, :3, 3].tolist() == [[5.0, 5.0, 0.445], [9.0, 9.0, 0.3], [12.0, 12.0, 2.0]]
    assert ground.spacing == (0.5, 0.5)


def test_spacing_and_scale_are_those_of_the_command(folder):
    np.save(folder / "yard.npy", np.ones((9, 9), np.uint16))
    sizes = ["--cylinder", "0.3", "0.9", "--json", "--scale", "0.005"]
    answer = json.loads(check(folder, *sizes, "--spacing", "2", "2", ground="yard.npy").stdout)
    assert min(contact["gap"] for contact in answer["contacts"]) == pytest.approx(-0.01)
    beside = json.loads(check(folder, *sizes, "--spacing", "0.5", "0.5", ground="yard.npy").stdout)
    assert beside["touching"] == 0


def test_a_check_draws_its_picture(folder):
    image_module = pytest.importorskip("PIL.Image")
    result = check(folder, "--cylinder", "0.3", "0.9", "--png", str(folder / "yard.png"))
    assert result.exit_code == 1
    assert np.asarray(image_module.open(folder / "yard.png").convert("RGB")).std() > 5


@pytest.mark.parametrize(
    ("more", "names", "reason"),
    [
        (("--cylinder", "0.3", "0.9"), {"ground": "none.npy"}, "no file"),
        (("--cylinder", "0.3", "0.9"), {"poses": "none.csv"}, "no such file"),
        (("--cylinder", "0.3", "0.9"), {"poses": "yard.npy"}, "cannot be read as a CSV file"),
        (("--cylinder", "-1", "0.9"), {}, "radius"),
        (("--cylinder", "0.3", "0.9", "--scale", "0"), {}, "scale"),
        (("--cylinder", "1", "1", "--sphere", "1"), {}, "2 were given"),
        ((), {}, "0 were given"),
        (("--sphere", "1", "--png", "x.jpg"), {}, ".png"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(folder, more, names, reason):
    result = check(folder, *more, **names)
    assert result.exit_code == 2
    assert reason in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "begin with the line"),
        ("x,y,z\n1,2,3\n", "begin with the line"),
        ("x,y,z,qw,qx,qy,qz\n", "no poses"),
        ("x,y,z,qw,qx,qy,qz\n1,2,3,1,0,0\n", "line 2 has 6 columns"),
        ("x,y,z,qw,qx,qy,qz\n1,2,3,1,0,0,0\n1,2,three,1,0,0,0\n", "line 3"),
        ("x,y,z,qw,qx,qy,qz\n1,2,nan,1,0,0,0\n", "not finite"),
        ("x,y,z,qw,qx,qy,qz\n1,2,3,0,0,0,0\n", "quaternions"),
    ],
)
def test_poses_that_make_no_sense_are_refused_with_their_line(folder, text, reason):
    (folder / "bad.csv").write_text(text)
    result = check(folder, "--sphere", "1", poses="bad.csv")
    assert result.exit_code == 2
    assert reason in result.stderr
