"""Prepared parts: what is saved comes back bit for bit, and files that are not in order are refused with the reason."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tangere as tg
from tangere.bvh.obb import ObbTree
from tangere.bvh.prepared import PreparedPart
from tangere.bvh.prepared.part_file import mesh_digest
from tangere.bvh.recession import RecessionCones
from tangere.runtime import InputError


@pytest.fixture
def ring() -> tg.Mesh:
    return tg.generate.torus(400, bumps=0.1, name="ring")


@pytest.mark.feature("F-R-48")
def test_a_part_comes_back_as_it_was_saved(ring, tmp_path):
    PreparedPart(ring, density=7800.0).save(tmp_path / "ring.npz")
    part = PreparedPart.load(tmp_path / "ring.npz")
    tree, cones = ObbTree.of(ring, "cpu"), RecessionCones.of(ring, ObbTree.of(ring, "cpu"), device="cpu")
    assert (part.name, part.mesh.name, part.content) == ("ring", "ring", mesh_digest(ring))
    assert np.array_equal(part.mesh.vertices, ring.vertices)
    assert np.array_equal(part.mesh.faces, ring.faces)
    assert part.tree.records().tobytes() == tree.records().tobytes()
    assert part.tree.depth == tree.depth
    assert np.array_equal(part.tree.corners.numpy(), tree.corners.numpy())
    assert np.array_equal(part.cones.first.numpy(), cones.first.numpy())
    assert np.array_equal(part.cones.vectors.numpy(), cones.vectors.numpy())
    expected = ring.mass_properties(7800.0)
    assert part.mass is not None
    assert (part.mass.mass, part.mass.volume) == (expected.mass, expected.volume)
    assert np.array_equal(part.mass.centre, expected.centre)
    assert np.array_equal(part.mass.inertia, expected.inertia)


def test_queries_of_a_loaded_mesh_take_its_tree_and_cones_from_the_file(ring, tmp_path, monkeypatch):
    PreparedPart(ring).save(tmp_path / "ring.npz")
    part = PreparedPart.load(tmp_path / "ring.npz")
    monkeypatch.setattr(ObbTree, "build", lambda *a, **k: pytest.fail("the tree was built again"))
    monkeypatch.setattr(RecessionCones, "build", lambda *a, **k: pytest.fail("the cones were built again"))
    assert ObbTree.of(part.mesh, "cpu") is part.tree
    assert RecessionCones.of(part.mesh, part.tree, device="cpu").vectors is part.cones.vectors


def test_a_mapped_part_is_the_same_and_stays_in_the_pages_of_its_file(ring, tmp_path):
    path = tmp_path / "ring.npz"
    PreparedPart(ring).save(path)
    part, read = PreparedPart.load(path, mapped=True), PreparedPart.load(path)
    for array in (part.mesh.vertices, part.mesh.faces):
        assert array.ctypes.data % 64 == 0
        assert not array.flags.writeable
        assert isinstance(array if isinstance(array, np.memmap) else array.base, np.memmap)
    assert part.tree.records().tobytes() == read.tree.records().tobytes()
    assert np.array_equal(part.cones.vectors.numpy(), read.cones.vectors.numpy())
    way = tg.Twist(np.eye(4), [3.0, 0.0, 0.0], [0.0, 0.0, 0.0])
    mapped, as_read = (tg.first_contact(each.mesh.moving(way), _ball(), device="cpu") for each in (part, read))
    assert mapped.time == as_read.time < 1.0
    assert ObbTree.of(part.mesh, "cpu") is part.tree


def test_a_file_of_savez_can_be_mapped_or_is_read(ring, tmp_path):
    """Arrays of older files begin anywhere, or are compressed."""
    PreparedPart(ring).save(tmp_path / "ring.npz")
    with np.load(tmp_path / "ring.npz") as archive:
        arrays = dict(archive)
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "old.npz", **arrays)
        part = PreparedPart.load(tmp_path / "old.npz", mapped=True)
        assert np.array_equal(part.mesh.vertices, ring.vertices)
        assert part.tree.depth == ObbTree.of(ring, "cpu").depth


def _ball() -> tg.Mesh:
    ball = tg.generate.icosphere(2)
    return ball.replace(vertices=ball.vertices + (4.0, 0.0, 0.0))


def test_arrays_are_read_when_they_are_asked_for(ring, tmp_path):
    path = tmp_path / "ring.npz"
    PreparedPart(ring).save(path)
    part = PreparedPart.load(path)
    path.unlink()
    assert part.name == "ring"
    with pytest.raises(InputError, match=r"'ring.npz': there is no such file"):
        _ = part.mesh


def test_the_mass_of_an_open_mesh_is_left_out_or_refused():
    sheet = tg.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]], name="sheet")
    assert PreparedPart(sheet).mass is None
    with pytest.raises(InputError, match="sheet"):
        PreparedPart(sheet, density=1.0)


def rewritten(path, **changes) -> None:
    """The archive with some arrays replaced (None: left out), and its header kept as it is."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive}
    arrays.update(changes)
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


def with_header(path, **changes) -> None:
    with np.load(path) as archive:
        header = json.loads(archive["header"].tobytes())
    header.update(changes)
    rewritten(path, header=np.frombuffer(json.dumps(header).encode(), np.uint8))


def all_of(path) -> list:
    part = PreparedPart.load(path)
    return [part.mesh, part.tree, part.cones]


def bend(path) -> None:
    """A tree whose digest is right but whose links are not."""
    from tangere.bvh.prepared.part_file import _digest

    with np.load(path) as archive:
        nodes, header = archive["nodes"].copy(), json.loads(archive["header"].tobytes())
    nodes["right"][0] = 10**6
    header["arrays"]["nodes"] = _digest(nodes)
    rewritten(path, nodes=nodes, header=np.frombuffer(json.dumps(header).encode(), np.uint8))


DAMAGE = {
    "cut short": (lambda p: p.write_bytes(p.read_bytes()[: p.stat().st_size // 2]), "cut short or damaged"),
    "empty": (lambda p: p.write_bytes(b""), "cut short or damaged"),
    "text": (lambda p: p.write_text("solid ring\n"), "cut short or damaged"),
    "a plain array": (lambda p: np.save(p.open("wb"), np.zeros(3)), "not a prepared part"),
    "another archive": (lambda p: np.savez(p, positions=np.zeros(3)), "it has no header"),
    "another format": (lambda p: with_header(p, format="something"), "its header says something else"),
    "a newer version": (lambda p: with_header(p, version=99), "it has version 99"),
    "no version": (lambda p: with_header(p, version="one"), "'one' makes no sense"),
    "a header that is not JSON": (lambda p: rewritten(p, header=np.arange(5, dtype=np.uint8)), "header cannot be read"),
    "a moved vertex": (lambda p: rewritten(p, vertices=np.zeros((3, 3))), "the array 'vertices' is damaged"),
    "a header without arrays": (lambda p: with_header(p, arrays=None), "its header lacks arrays"),
    "no tree": (lambda p: rewritten(p, nodes=None), "the array 'nodes' is missing"),
    "no cones": (lambda p: rewritten(p, cone_first=None), "the array 'cone_first' is missing"),
    "bent links": (bend, "links of its tree are damaged"),
    "another mesh": (lambda p: with_header(p, content="0" * 64), "not the one its trees were built for"),
    "pickled objects": (
        lambda p: rewritten(p, cone_vectors=np.array([{"a": 1}], dtype=object)),
        "cone_vectors cannot be read",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_file_that_is_not_in_order_is_refused_with_the_reason(damage, ring, tmp_path):
    path = tmp_path / "ring.npz"
    PreparedPart(ring).save(path)
    harm, reason = DAMAGE[damage]
    harm(path)
    with pytest.raises(InputError, match=reason) as refused:
        all_of(path)
    assert "'ring.npz'" in str(refused.value)


def test_any_flipped_byte_is_found_or_harmless(ring, tmp_path, effort, rng):
    path = tmp_path / "ring.npz"
    PreparedPart(ring).save(path)
    whole = path.read_bytes()
    before = PreparedPart.load(path)
    vertices, nodes = before.mesh.vertices, before.tree.records().tobytes()
    found = 0
    for place in rng.integers(0, len(whole), effort(60)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        try:
            part = PreparedPart.load(path)
            assert np.array_equal(part.mesh.vertices, vertices)
            assert part.tree.records().tobytes() == nodes
            assert len(part.cones.sizes) == len(part.tree)
        except InputError:
            found += 1
    assert found > 0


def test_nothing_is_left_behind_when_saving_fails(ring, tmp_path, monkeypatch):
    path = tmp_path / "ring.npz"
    PreparedPart(ring).save(path)
    before = path.read_bytes()

    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(np.lib.format, "write_array", fail)
    with pytest.raises(OSError, match="disk full"):
        PreparedPart(ring).save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["ring.npz"]
    assert path.read_bytes() == before
