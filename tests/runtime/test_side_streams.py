"""Streams are lent to one owner at a time, never destroyed, and nobody sets the stream of a device."""

from __future__ import annotations

import re
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
import warp as wp

import tangere
from tangere.broad_phase.triangles import Surfaces
from tangere.query.proximity.cuda import detector, lbvh
from tangere.query.proximity.search_plan import Branch, PlannedSearch, PlannedSide, SearchPlan
from tangere.runtime import kernel_launch
from tangere.shape import generate


class Owner:
    """Borrows a stream."""


class Stream:
    """Stands for one of CUDA; knows who waits for whom."""

    def __init__(self, device: wp.Device) -> None:
        self.device, self.waits_for = device, []

    def wait_stream(self, other: Stream) -> None:
        self.waits_for.append(other)


@pytest.fixture
def lent(monkeypatch):
    """The pool, with streams that need no GPU."""
    monkeypatch.setattr(kernel_launch.wp, "Stream", Stream)
    monkeypatch.setattr(kernel_launch, "_free", type(kernel_launch._free)(list))
    return kernel_launch


def test_a_stream_has_one_owner_and_comes_back_when_that_is_gone(lent):
    device, owners = wp.get_device("cpu"), [Owner() for _ in range(3)]
    streams = [lent.side_stream(owner, device) for owner in owners]
    assert len(set(map(id, streams))) == 3
    gone = streams[1]
    del owners[1], streams
    assert [lent.side_stream(owner, device) for owner in (Owner(),)] == [gone]
    assert lent._free["cpu"] == [gone]


def test_what_goes_beside_begins_after_the_device_and_ends_before_it_even_when_it_fails(lent):
    device = type("Device", (), {"stream": Stream(None)})()
    aside = Stream(None)

    def failing():
        with lent.beside(device, aside):
            assert aside.waits_for == [device.stream]
            assert not device.stream.waits_for
            raise KeyError

    with pytest.raises(KeyError):
        failing()
    assert device.stream.waits_for == [aside]


def test_nobody_sets_the_stream_of_a_device():
    sources = Path(tangere.__file__).parent.rglob("*.py")
    setting = re.compile(r"ScopedStream\(|\bset_stream\(|\bstream_from_|\.stream\s*=[^=]")
    assert not [path for path in sources if setting.search(path.read_text())]


def test_the_detector_of_cuda_tells_every_launch_its_stream(monkeypatch):
    """Launches are listed, not run: their kernels are for CUDA."""
    used, inside = [], []

    @contextmanager
    def beside(device, stream):
        inside.append(stream)
        yield stream

    for module in (detector, lbvh):
        monkeypatch.setattr(module, "launch", lambda kernel, *_, stream=None, **__: used.append((kernel.key, stream)))
    monkeypatch.setattr(detector, "side_stream", lambda owner, device: "aside")
    monkeypatch.setattr(detector, "beside", beside)
    monkeypatch.setattr(detector.warp.utils, "radix_sort_pairs", lambda *_: used.append(("sort", None)))
    surfaces = Surfaces.of([generate.icosphere(subdivisions=1)], "cpu")
    of_vertices, of_edges = (
        Branch([_side(kind)], [PlannedSearch(SimpleNamespace(key=kind), 1, [], 1)]) for kind in ("faces", "edges")
    )
    plan = SearchPlan({}, edges=of_edges, vertices=of_vertices)
    found = detector.CudaDetector(surfaces, plan, surfaces.positions, 0.1, None)
    found._run(found._make_room(64))
    assert inside == ["aside"]
    assert [key for key, stream in used if stream] == ["_find_unusable", "_fit_clusters", "_climb", "faces"]
    assert [key for key, stream in used if not stream] == [
        "_fit_clusters",
        "_climb",
        "edges",
        "sort",
        "fill_one_by_one",
    ]


def _side(kind: str) -> PlannedSide:
    """A side whose boxes are fitted."""
    numbers, nodes = wp.zeros(1, dtype=wp.int32, device="cpu"), wp.zeros((1, 8), dtype=wp.int32, device="cpu")
    names = ("first", "last", "skip", "items", "clusters", "parent")
    tree = SimpleNamespace(**dict.fromkeys(names, numbers) | {"items": nodes})
    of = lbvh.CudaLbvh(tree, numbers, numbers)
    boxes = lbvh.CudaLbvhBoxes(of, items=numbers, nodes=nodes, records=nodes)
    return PlannedSide(None, SimpleNamespace(vertices=boxes), kind, boxes)
