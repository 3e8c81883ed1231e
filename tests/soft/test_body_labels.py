"""Dofs of several bodies in one range of the arrays: sums go by what each dof is labelled with."""

from __future__ import annotations

import numpy as np
import warp as wp

from tangere.runtime import using_threads
from tangere.shape.tets import solid_block
from tangere.soft import Body
from tangere.soft.contact.islands import SLICES, ContactIslands, MassMoves, MeanMoves
from tangere.soft.model.assembled_bodies import AssembledBodies


def labelled(rng: np.random.Generator, device: wp.Device) -> tuple[AssembledBodies, np.ndarray]:
    """Two bodies, of which the first has lost two parts; by dof the body."""
    solid = solid_block((4, 3, 3), size=(1.0, 1.0, 1.0))
    bodies = [Body(solid, cuttable=True, name="cut"), Body(solid, name="whole")]
    assembly = AssembledBodies.of(bodies, device, growing=True)
    body, whole, end = assembly.dofs.body.numpy(), assembly.whole, len(solid.vertices)
    body[:end] = rng.choice([0, 2, 3], end)
    assembly.dofs.body.assign(body)
    for name, at, values in (("following", [0, 2], [2, 3]), ("range", [2, 3], [0, 0]), ("place", [2, 3], [1, 2])):
        column = getattr(whole, name).numpy()
        column[at] = values
        getattr(whole, name).assign(column)
    assembly.names += ["cut 2", "cut 3"]
    return assembly, body


def test_moves_are_summed_by_label(rng, device) -> None:
    assembly, body = labelled(rng, wp.get_device(device))
    after, before = (rng.normal(size=(len(body), 3)) for _ in range(2))
    islands, mean = ContactIslands(assembly), wp.zeros(assembly.body_room, dtype=wp.vec3d, device=device)
    islands.anchored.zero_()
    moves = MassMoves(assembly, *(wp.array(x, dtype=wp.vec3d, device=device) for x in (after, before)))
    find_mean, found = MeanMoves(islands, moves, mean), []
    for threads in (1, 2):
        with using_threads(threads):
            moves()
            find_mean()
        found.append((moves.sums.numpy().copy(), mean.numpy().copy()))
    sums, means = found[0]
    if wp.get_device(device).is_cpu:
        assert all(one.tobytes() == other.tobytes() for one, other in zip(*found, strict=True))
    sums, mass = sums.reshape(-1, int(SLICES), 4).sum(axis=1), assembly.dofs.mass.numpy()
    for number in range(4):
        own = body == number
        wanted = mass[own] @ (after - before)[own]
        assert np.allclose(sums[number], [*wanted, mass[own].sum()], rtol=1e-12, atol=1e-12 * mass.sum())
        assert np.allclose(means[number], wanted / mass[own].sum(), rtol=1e-11, atol=1e-12)
    assert not sums[4:].any()
    assert not means[4:].any()
