"""Job tables: what is wrong is told before any work; shards follow from the jobs alone; answers are the library's."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import tangere as tg
from fleet.work import ANSWERS, square, squares
from tangere.query.contacts import Status
from tangere.runtime import InputError

pa = pytest.importorskip("pyarrow")
pytestmark = pytest.mark.release  # the kernels have tests of their own


@pytest.fixture
def meshes(tmp_path):
    """A ball and a box, in a folder with a name of its own."""
    folder = tmp_path / "Teile für Ärger"
    folder.mkdir()
    tg.generate.icosphere(2, radius=0.5).save(folder / "ball.ply")
    tg.generate.box((0.4, 0.4, 0.4)).save(folder / "box.stl")
    return folder


def pose(x: float, y: float = 0.0) -> np.ndarray:
    found = np.eye(4)
    found[:2, 3] = x, y
    return found


CLASHES = [{"a": "ball.ply", "b": "box.stl", "pose_b": pose(0.1 * k)} for k in range(10)]


def test_clash_jobs_tell_what_assemblies_do(meshes, tmp_path):
    report = tg.fleet.run(tg.fleet.Jobs("clash", CLASHES, base=meshes, clearance=0.15), tmp_path / "out")
    table = report.table().to_pydict()
    ball, box = tg.Mesh.load(meshes / "ball.ply"), tg.Mesh.load(meshes / "box.stl")
    for k, row in enumerate(CLASHES):
        parts = {"a: ball.ply": ball, "b: box.stl": box.moving(tg.Rest(row["pose_b"]))}
        found = tg.Assembly(parts).clashes(0.15, device="cpu")
        assert table["status"][k] == (str(found[0].kind) if len(found) else "free")
        if len(found):
            assert table["depth_lower"][k] == pytest.approx(found[0].depth_lower, abs=0.0, nan_ok=True)
            assert table["point"][k] == found[0].point.tolist()
        assert table["skin_used"][k] == found.skin
    assert {"free", "hard", "near"} <= report.counts.keys()
    assert report.found == 10 - report.counts["free"] - report.counts["touching"]
    assert len(report.to_look_at()) == report.found
    assert len(list((tmp_path / "out" / "parts").iterdir())) == 2


@pytest.mark.parametrize("threads", [1, 2])
def test_clash_jobs_are_the_same_bits_for_any_threads_and_workers(threads, meshes, tmp_path):
    from fleet.work import bits

    jobs = tg.fleet.Jobs("clash", CLASHES, base=meshes)
    tg.fleet.run(jobs, tmp_path / "here", threads=threads)
    tg.fleet.run(jobs, tmp_path / "there", 1)
    assert bits(tmp_path / "there") == bits(tmp_path / "here")


@pytest.mark.cuda
def test_clash_jobs_on_cards_tell_the_same_kinds(meshes, tmp_path):
    jobs = tg.fleet.Jobs("clash", CLASHES, base=meshes, clearance=0.15)
    here = tg.fleet.run(jobs, tmp_path / "here").table()
    cards = tg.fleet.run(jobs, tmp_path / "cards", 2, device="cuda").table()
    assert cards["status"].to_pylist() == here["status"].to_pylist()


def test_poses_come_as_matrices_lists_and_quaternions(meshes, tmp_path):
    rows = [
        {"a": "ball.ply", "b": "box.stl", "pose_b": pose(0.6)},
        {"a": "ball.ply", "b": "box.stl", "pose_b": pose(0.6).reshape(-1).tolist()},
        {"a": "ball.ply", "b": "box.stl", "pose_b": [0.6, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0]},
        {"a": "ball.ply", "b": "box.stl", "pose_b": [0.6]},
        {"a": "ball.ply", "b": "box.stl", "pose_b": [np.nan] * 16},
    ]
    table = tg.fleet.run(tg.fleet.Jobs("clash", rows, base=meshes), tmp_path / "out").table().to_pydict()
    assert table["status"] == ["hard", "hard", "hard", "error", "error"]
    assert table["depth_lower"][0] == table["depth_lower"][1] == table["depth_lower"][2]
    assert table["error"][3].startswith("pose_b must be 16 numbers by rows, or 7")
    assert table["error"][4].startswith("pose_b")


def test_assemblies_are_folders_and_files(meshes, tmp_path):
    jobs = tg.fleet.Jobs("clash", [{"assembly": str(meshes)}], units="mm")
    table = tg.fleet.run(jobs, tmp_path / "out").table().to_pydict()
    assert (table["status"], table["clashes"]) == (["inside"], [1])
    assert tg.Assembly.load(meshes, units="mm").clashes(device="cpu").counts["inside"] == 1


def test_check_jobs_tell_what_path_checks_do(meshes, tmp_path):
    ways = [np.stack([pose(-2.0, y), pose(2.0, y)]) for y in (0.0, 0.5, 0.9)]
    tg.Path(ways[1], clock=(0.0, 10.0)).save(meshes / "way.csv")
    rows = [{"part": "ball.ply", "against": ["box.stl"], "poses": way} for way in ways]
    rows.append({"part": "ball.ply", "against": ["box.stl"], "path": "way.csv"})
    report = tg.fleet.run(tg.fleet.Jobs("check", rows, base=meshes), tmp_path / "out")
    table = report.table().to_pydict()
    ball, box = tg.Mesh.load(meshes / "ball.ply"), tg.Mesh.load(meshes / "box.stl")
    for k, way in enumerate(ways):
        found = tg.check_path(ball, box, tg.Path(way), device="cpu")
        assert table["status"][k] == found.status.name.lower()
        assert (table["time"][k], table["clearance_upper"][k]) == (found.time, found.clearance.least)
        assert table["obstacle"][k] == ("box.stl" if found else None)
    assert table["status"] == ["contact", "contact", "free", "contact"]
    assert table["time"][3] == pytest.approx(10.0 * table["time"][1])
    assert (report.fine, report.found, report.failed) == (1, 3, 0)


URDF = """<robot name="arm">
<link name="base"><collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision></link>
<link name="arm"><collision><origin xyz="0.3 0 0"/><geometry><box size="0.4 0.05 0.05"/></geometry></collision></link>
<joint name="turn" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
<limit lower="-3" upper="3" effort="1" velocity="1"/></joint></robot>"""


def test_check_jobs_of_robots_tell_what_robots_do(meshes, tmp_path):
    pytest.importorskip("yourdfpy")
    (meshes / "arm.urdf").write_text(URDF)
    tg.generate.box((0.1, 0.1, 0.1)).at(pose(0.0, 0.4)).save(meshes / "post.ply")
    (meshes / "q.csv").write_text("t,turn\n0,0\n2,1\n4,2\n")
    rows = [
        {"robot": "arm.urdf", "q": [0.0, 1.0, 2.0], "against": ["post.ply"]},
        {"robot": "arm.urdf", "trajectory": "q.csv", "against": ["post.ply"]},
        {"robot": "arm.urdf", "q": [0.0, 1.0], "against": ["post.ply"], "clearance": 0.1},
        {"robot": "arm.urdf", "q": [0.0, -3.2]},
    ]
    table = tg.fleet.run(tg.fleet.Jobs("check", rows, base=meshes), tmp_path / "out").table().to_pydict()
    robot, post = tg.Robot.load(meshes / "arm.urdf"), tg.Mesh.load(meshes / "post.ply")
    found = robot.check([[0.0], [1.0], [2.0]], {"post.ply": post}, device="cpu")
    assert table["status"] == ["contact", "contact", "free", "free"]
    assert (table["time"][0], table["body"][0], table["obstacle"][0]) == (found.time, *found.pair)
    assert table["time"][1] == pytest.approx(4.0 * found.time)
    assert table["clearance_lower"][2] > 0.0
    assert table["limits_broken"][3] == ["turn"]
    assert found.status == Status.CONTACT


def test_crowd_jobs_tell_what_simulations_do(tmp_path):
    pytest.importorskip("shapely")
    (tmp_path / "hall.wkt").write_text("POLYGON ((0 0, 8 0, 8 4, 0 4, 0 0))")
    way_out = "POLYGON ((7 1, 8 1, 8 3, 7 3, 7 1))"
    rows = [{"plan": "hall.wkt", "exits": [way_out], "people": 8, "seconds": 40.0, "seed": seed} for seed in (0, 1)]
    rows[0]["exits"] = ["7, 1, 8, 3"]  # the same, as the command line has it
    rows.append({"scenario": "field", "people": 20, "seconds": 0.5})
    rows.append({"scenario": "field", "people": 20, "seconds": 0.5, "behaviour": "magic"})
    rows.append({"scenario": "nowhere", "people": 20, "seconds": 0.5})
    rows.append({"plan": "hall.wkt", "exits": ["1,2,3"], "people": 8, "seconds": 1.0})
    jobs = tg.fleet.Jobs("crowd", rows, base=tmp_path)
    report = tg.fleet.run(jobs, tmp_path / "out", threads=1)
    table = report.table().to_pydict()
    assert table["status"] == ["done", "done", "done", "error", "error", "error"]
    assert "a box is x0,y0,x1,y1, not 1,2,3" in table["error"][5]
    simulation = tg.crowd.Simulation(tg.crowd.FloorPlan.load(tmp_path / "hall.wkt"), dt=0.02, seed=1, device="cpu")
    simulation.add_people(8, to=[simulation.add_exit(way_out)])
    run = simulation.run(40.0, until="empty", record=0.2)
    assert (table["arrived"][1], table["last_arrival"][1]) == (8, run.evacuation_time)
    assert table["last_arrival"][0] != table["last_arrival"][1]
    assert table["mean_speed"][2] > 0.0
    assert "behaviour must be one of" in table["error"][3]
    assert "scenario must be one of" in table["error"][4]


def test_parts_are_prepared_once_and_made_anew_when_damaged(meshes, tmp_path):
    from tangere.fleet import part_store

    jobs = tg.fleet.Jobs("clash", CLASHES, base=meshes)
    tg.fleet.run(jobs, tmp_path / "out")
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "parts").iterdir()}
    assert len(kept) == 2
    part_store._opened.clear()
    first = next(iter(kept))
    whole = first.read_bytes()
    first.write_bytes(whole[: len(whole) // 2])
    for shard in (tmp_path / "out" / "shards").iterdir():
        shard.unlink()
    assert tg.fleet.run(jobs, tmp_path / "out").failed == 0
    assert [path.stat().st_mtime_ns == kept[path] for path in kept] == [False, True]
    assert len(first.read_bytes()) == len(whole)


def test_a_folder_that_is_removed_is_made_anew_by_the_same_process(meshes, tmp_path):
    jobs = tg.fleet.Jobs("clash", CLASHES[:3], base=meshes)
    for _ in range(2):
        assert tg.fleet.run(jobs, tmp_path / "out").failed == 0
        shutil.rmtree(tmp_path / "out")


def test_lists_in_csv_files_have_semicolons(meshes, tmp_path):
    (meshes / "jobs.csv").write_text("a,b,pose_b\nball.ply,box.stl,2;0;0;1;0;0;0\nball.ply,box.stl,0.6;0;0;1;0;0;0\n")
    report = tg.fleet.run(tg.fleet.Jobs("clash", meshes / "jobs.csv"), tmp_path / "out")
    assert report.table()["status"].to_pylist() == ["free", "hard"]


def test_files_that_have_changed_are_told_and_only_their_jobs_done_again(meshes, tmp_path):
    rows = [{"a": "ball.ply", "b": "box.stl"}, {"a": "ball.ply", "b": "ball.ply"}]
    tg.fleet.run(tg.fleet.Jobs("clash", rows, base=meshes), tmp_path / "out")
    tg.generate.box((0.5, 0.5, 0.5)).save(meshes / "box.stl")
    jobs = tg.fleet.Jobs("clash", rows, base=meshes)
    with pytest.raises(InputError, match="1 of 2 shards are of something else"):
        tg.fleet.run(jobs, tmp_path / "out")
    assert tg.fleet.run(jobs, tmp_path / "out", changed="redo").done == 1
    elsewhere = meshes.rename(meshes.with_name("elsewhere"))  # where files lie does not count
    assert tg.fleet.run(tg.fleet.Jobs("clash", rows, base=elsewhere), tmp_path / "out").done == 0


def test_a_damaged_mesh_is_an_error_of_its_jobs_and_units_are_doubted(meshes, tmp_path):
    (meshes / "bad.stl").write_bytes(b"solid nothing")
    tg.generate.box((400.0, 400.0, 400.0)).save(meshes / "mm.stl")
    rows = [{"a": "ball.ply", "b": name} for name in ("box.stl", "bad.stl", "mm.stl")]
    table = tg.fleet.run(tg.fleet.Jobs("clash", rows, base=meshes), tmp_path / "out").table().to_pydict()
    assert table["status"] == ["inside", "error", "inside"]
    assert "bad.stl" in table["error"][1]
    assert "are both in metres?" in table["note"][2]
    assert table["note"][0] is None


def test_robots_change_with_their_meshes(tmp_path):
    from tangere.fleet.file_stamps import stamp

    (tmp_path / "package" / "meshes").mkdir(parents=True)
    (tmp_path / "package" / "meshes" / "link.stl").write_bytes(b"one")
    urdf = tmp_path / "package" / "robot.urdf"
    urdf.write_text('<robot><mesh filename="package://package/meshes/link.stl"/><mesh filename="absent.stl"/></robot>')
    before = stamp(urdf)
    (tmp_path / "package" / "meshes" / "link.stl").write_bytes(b"two")
    assert stamp(urdf) != before


def test_shards_follow_from_the_jobs_alone():
    jobs = squares(1000)
    shards = jobs.shards(0.35)
    assert np.array_equal(np.sort(np.concatenate([shard.jobs for shard in shards])), np.arange(1000))
    assert {len(shard.jobs) for shard in shards[:-1]} == {3}  # of 0.1 s each
    assert [jobs.digest(shard, "cpu") for shard in shards] == [squares(1000).digest(shard, "cpu") for shard in shards]
    assert len({jobs.digest(shard, "cpu") for shard in shards}) == len(shards)
    assert jobs.digest(shards[0], "cpu") != jobs.digest(shards[0], "cuda")
    assert len(squares(1000).shards(1000.0)) >= 64  # so that workers end at about the same time
    costly = tg.fleet.Jobs(square, {"x": [1.0] * 100, "cost": [50.0] + [0.1] * 99}, answers=ANSWERS)
    assert [len(shard.jobs) for shard in costly.shards(5.0)][:1] == [1]
    assert max(shard.cost for shard in costly.shards(5.0)) == 50.0


def test_jobs_come_from_files_tables_columns_and_rows(tmp_path):

    table = pa.table({"x": [1.0, 2.0], "name": ["é", None]})
    pa.parquet.write_table(table, tmp_path / "jobs.parquet")
    pa.csv.write_csv(table, tmp_path / "jobs.csv")
    given = [tmp_path / "jobs.parquet", str(tmp_path / "jobs.csv"), table, table.to_pydict(), table.to_pylist()]
    for rows in given:
        jobs = tg.fleet.Jobs(square, rows, answers=ANSWERS, labels=["name"])
        assert [row["x"] for row in jobs.rows([1, 0])] == [2.0, 1.0]
    report = tg.fleet.run(jobs, tmp_path / "out")
    assert report.table()["name"].to_pylist() == ["é", None]
    report.save(tmp_path / "answers.csv")
    assert pa.csv.read_csv(tmp_path / "answers.csv")["y"].to_pylist() == [1.0, 4.0]
    report.save(tmp_path / "answers.parquet")
    assert pa.parquet.read_table(tmp_path / "answers.parquet").equals(report.table())
    with pytest.raises(InputError, match=r"answers are written as"):
        report.save(tmp_path / "answers.xlsx")


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([], "jobs: there are none"),
        (3, "jobs must be a file, a table, columns by name or a list of rows, not 3"),
        ([{"a": "ball.ply"}], "clash jobs have the columns a and b, or assembly; there are a"),
        ([{"a": "ball.ply", "b": "box.stl", "assembly": "."}], "both are given"),
        ([{"assembly": ".", "pose_a": [1.0]}], "'pose_a' does not go with"),
        ([{"a": "ball.ply", "b": "box.stl", "clearence": 1.0}], "know no column 'clearence'; known are a, b"),
        ([{"a": "ball.ply", "b": "box.stl", "clearance": "wide"}], "'clearance' must hold a number, not string"),
        ([{"a": "ball.ply", "b": "box.stl", "depth": 1.5}], "'depth' must hold true or false, not double"),
        ([{"a": "ball.ply", "b": "box.stl", "pose_a": 3.0}], "'pose_a' must hold a list of numbers, not double"),
        ([{"a": 3, "b": "box.stl"}], "'a' must hold the name of a file, not int64"),
        ([{"a": "ball.ply", "b": "bux.stl"}], r"row 0: b: there is no file '.*bux.stl'"),
        ([{"a": "ball.ply", "b": "."}], r"row 0: b: there is no file"),
        ([{"a": "ball.ply", "b": "box.stl"}, {"a": "ball.ply"}], r"there are a \(row 1\)"),
        ([{"a": "ball.ply", "b": "box.stl"}, {"a": 3, "b": "box.stl"}], "'a' holds different kinds of values"),
        ([{"a": "ball.ply", "b": "box.stl", "cost": -1.0}], "row 0: cost must be"),
        ({"a": ["ball.ply"] * 2, "b": ["box.stl"]}, "columns must be of one length, not a 2, b 1"),
        ([{"a": "ball.ply", "b": "box.stl", "pose_b": "1;x"}], "'pose_b' must hold a list of numbers: could not"),
        ("jobs.xlsx", r"jobs.xlsx: jobs are read from .parquet and .csv files"),
        ("jobs.parquet", r"jobs.parquet: there is no such file"),
    ],
)
def test_wrong_tables_are_told_before_any_work(rows, told, meshes):
    with pytest.raises(InputError, match=told):
        tg.fleet.Jobs("clash", rows, base=meshes).shards(5.0)


def test_wrong_jobs_are_told(meshes, tmp_path):
    with pytest.raises(InputError, match="question must be 'clash', 'check', 'crowd' or a function, not 'clsh'"):
        tg.fleet.Jobs("clsh", CLASHES)
    with pytest.raises(InputError, match="units must be one of"):
        tg.fleet.Jobs("clash", CLASHES, base=meshes, units="feets")
    with pytest.raises(InputError, match="clash jobs know no 'colour'"):
        tg.fleet.Jobs("clash", CLASHES, base=meshes, colour="red")
    with pytest.raises(InputError, match="no column 'id' to label"):
        tg.fleet.Jobs("clash", CLASHES, base=meshes, labels=["id"])
    with pytest.raises(InputError, match="labels: 'a' is a column of clash jobs, which would not be read"):
        tg.fleet.Jobs("clash", CLASHES, base=meshes, labels=["a"])
    for against, told in (([], "there are no obstacles"), ([None], None)):
        rows = [{"part": "ball.ply", "against": against, "poses": np.stack([pose(0.0), pose(1.0)])}]
        if told is None:
            with pytest.raises(InputError, match="row 0: against: a name is missing in the list"):
                tg.fleet.Jobs("check", rows, base=meshes)
            continue
        report = tg.fleet.run(tg.fleet.Jobs("check", rows, base=meshes), tmp_path / "out")
        assert report.answers["error"].to_pylist() == [told]
    with pytest.raises(InputError, match="answers must say"):
        tg.fleet.Jobs(square, {"x": [1.0]})
    with pytest.raises(InputError, match="answers: 'y' must be one of float"):
        tg.fleet.Jobs(square, {"x": [1.0]}, answers={"y": dict})
    with pytest.raises(InputError, match="answers have a column 'x'"):
        tg.fleet.Jobs(square, {"x": [1.0]}, answers={"x": float})
    with pytest.raises(InputError, match="answers: 'status' is told of every job"):
        tg.fleet.Jobs(square, {"x": [1.0]}, answers={"status": str})
    with pytest.raises(InputError, match="of jobs that a function of your own answers"):
        tg.fleet.Jobs("clash", CLASHES, base=meshes, answers=ANSWERS)
    (tmp_path / "jobs.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(InputError, match=r"jobs.parquet: cannot be read"):
        tg.fleet.Jobs("clash", tmp_path / "jobs.parquet")


def _extent(row, tools):
    return {"extent": tools.part(row["mesh"]).extent}


def test_functions_of_ones_own_open_prepared_parts(meshes, tmp_path):
    jobs = tg.fleet.Jobs(_extent, {"mesh": ["ball.ply"]}, base=meshes, files=["mesh"], answers={"extent": float})
    report = tg.fleet.run(jobs, tmp_path / "out")
    assert report.table()["extent"].to_pylist() == [tg.Mesh.load(meshes / "ball.ply").extent]
    assert len(list(Path(tmp_path / "out" / "parts").iterdir())) == 1
    with pytest.raises(InputError, match="files: jobs have no column 'part'"):
        tg.fleet.Jobs(_extent, {"mesh": ["ball.ply"]}, base=meshes, files=["part"], answers={"extent": float})


def test_a_report_tells_itself(tmp_path):
    report = tg.fleet.run(squares(3), tmp_path / "out")
    assert repr(report) == "FleetReport(square: 3 done; 3 done now, 0 kept)"
    assert "done" in report._repr_html_()
    assert len(report) == 3
    assert repr(squares(3)) == "Jobs('square', 3 jobs, 0 files)"
