"""What the host writes into its copies comes to the device in one packet, and goes back where it is undone."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import warp as wp

from tangere.shape.tets import solid_block
from tangere.soft import Body, Simulation
from tangere.soft.cutting import cuts
from tangere.soft.incremental import InPlaceUpdate, host_mirror
from tangere.soft.incremental.host_mirror import HostMirror
from tangere.soft.incremental.undo_log import UndoLog, flat, host


def mirrored() -> tuple[HostMirror, list[wp.array], list[wp.array]]:
    """A mirror beside the same device, arrays, and its flat copies of them."""
    mirror = HostMirror(wp.get_device("cpu"), apart=True)
    rng = np.random.default_rng(5)
    there = [
        wp.array(rng.integers(-9, 9, (40, 2)), dtype=wp.vec2i, device="cpu"),
        wp.array(rng.normal(size=(30, 3)), dtype=wp.vec3d, device="cpu"),
        wp.array(rng.integers(-9, 9, 500), dtype=wp.int32, device="cpu"),
        wp.array(rng.normal(size=200), dtype=wp.float64, device="cpu"),
    ]
    return mirror, there, [flat(mirror.of(array)) for array in there]


def write(mirror: HostMirror, copies: list[wp.array], which: int, places: np.ndarray, values, log: UndoLog) -> None:
    """Write some numbers of one copy, as a kernel with a log does."""
    views = [host(copy) for copy in copies]
    log.keep(views[which], places)[places] = values
    noted = np.stack([np.full(len(places), which), places], axis=1)
    mirror.note(copies[which].dtype, mirror.numbers(views), noted, log)


def numbers(arrays: list[wp.array]) -> list[list[float]]:
    return [array.numpy().ravel().tolist() for array in arrays]


def test_what_is_written_is_on_the_device_and_nothing_else(rng) -> None:
    mirror, there, copies = mirrored()
    before, log = numbers(there), UndoLog()
    write(mirror, copies, 0, np.array([3, 79, 3]), -(2**31), log)  # one place twice
    write(mirror, copies, 1, np.array([0, 89]), [np.nextafter(1.0, 2.0), -0.0], log)
    write(mirror, copies, 2, np.arange(0, 500, 7), rng.integers(0, 2**31 - 1, 72), log)
    write(mirror, copies, 3, np.array([199]), np.inf, log)
    assert numbers(there) == before
    mirror.send(log)
    assert numbers(there) == numbers(copies)
    assert np.signbit(there[1].numpy()[-1, -1])
    written = [sum(a != b for a, b in zip(*both, strict=True)) for both in zip(numbers(there), before, strict=True)]
    assert written == [2, 2, 72, 1]
    log.undo()
    assert numbers(there) == numbers(copies) == before


def test_packets_of_one_step_are_put_back_last_first_and_used_again_after_it() -> None:
    mirror, there, copies = mirrored()
    before, log = numbers(there), UndoLog()
    for value in (1, 2, 3):
        write(mirror, copies, 2, np.array([4, 5 + value]), value, log)
        mirror.send(log)
    assert there[2].numpy()[4] == 3
    packets = list(mirror._packets)
    assert len(packets) == 3
    log.undo()
    assert numbers(there) == before
    mirror.commit()
    for _ in range(3):
        write(mirror, copies, 3, np.array([1]), 7.0, log)
        mirror.send(log)
    assert mirror._packets == packets
    mirror.send(log)  # nothing was written
    assert mirror._used == 3


def test_more_than_a_packet_has_room_for_gets_a_larger_one(monkeypatch) -> None:
    monkeypatch.setattr(host_mirror, "_LEAST_ROOM", 8)
    mirror, there, copies = mirrored()
    for count in (5, 400):
        log = UndoLog()
        write(mirror, copies, 2, np.arange(count), count, log)
        mirror.send(log)
        assert numbers(there) == numbers(copies)
        mirror.commit()
    (packet,) = mirror._packets
    assert packet.room >= 400


def test_what_is_only_written_is_forgotten_on_the_host() -> None:
    mirror = HostMirror(wp.get_device("cpu"), apart=True)
    there = wp.full(6, 5, dtype=wp.int32, device="cpu")
    copy, log = mirror.of(there, read=False), UndoLog()
    write(mirror, [copy], 0, np.array([2]), 9, log)
    mirror.send(log)
    assert there.numpy().tolist() == [5, 5, 9, 5, 5, 5]
    assert copy.numpy().tolist() == [0] * 6
    log.undo()
    assert there.numpy().tolist() == [5] * 6


def test_a_cut_reads_five_arrays_sends_five_times_and_allocates_nothing(monkeypatch) -> None:
    """On the road of CUDA: places, velocities, surface and boxes come; a packet and four lists go."""
    monkeypatch.setattr(cuts, "InPlaceUpdate", partial(InPlaceUpdate, apart=True))
    solid = solid_block((8, 4, 4), size=(2.0, 1.0, 1.0))
    simulation = Simulation([Body(solid, cuttable=True, density=1.0)], gravity=(0.0, 0.0, 0.0), device="cpu")
    z = np.linspace(-0.9, 0.9, 6)
    way = [np.stack([0.03 + 0 * z, y + 0 * z, z], axis=1) for y in np.linspace(-0.6, 0.2, 9)]
    for start, end in itertools.pairwise(way[:6]):
        simulation.cut(0, start, end)
    called: list[str] = []

    def counted(name, plain, *arguments, **options):
        called.append(name)
        return plain(*arguments, **options)

    for name in ("copy", "clone", "empty", "zeros", "full"):
        monkeypatch.setattr(wp, name, partial(counted, name, getattr(wp, name)))
    assert simulation.cut(0, way[5], way[6])
    assert called == ["copy"] * 10
