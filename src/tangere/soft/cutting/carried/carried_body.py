"""A coarse solid that carries finer material, which is cut.

Question: a blade goes through material that is finer than the dofs; what moves what then?
Method:   the material is cut as other solids are (`SimplicialComplex`). Each of its tetrahedra is in a copy of a coarse
          one (`coarse_copies`), which bears the share of mass and stiffness of all that is in it (`Body.fractions`). A
          point of the surface is carried by the copy beside it that has it best.
Sound:    copies begin where what they are copies of was, as fast: volume, mass, momentum and elastic energy are kept to
          rounding. Parts of the material have no dof in common. Weights add up to 1.
Known as: virtual nodes by connectivity (Molino, Bao and Fedkiw 2004; Teran et al. 2005; Sifakis et al. 2007).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tangere.shape.mesh import Mesh
from tangere.shape.tets import TetMesh
from tangere.soft.body import Body
from tangere.soft.contact.wall_inset import inset_carriers
from tangere.soft.cutting.carried.coarse_copies import copies_of
from tangere.soft.cutting.cut_body import CutBody, Places
from tangere.soft.cutting.simplicial_complex import ComplexChange


class CarriedCutBody(CutBody):
    """A body with `material` that is cut; its dofs are the corners of copies of the tetrahedra of its shape.

    Everything is found anew after each cut that changes something.
    """

    def __init__(self, number: int, body: Body, kerf: float) -> None:
        super().__init__(number, body, kerf)
        assert isinstance(body.shape, TetMesh)
        self._coarse = body.shape
        every = np.arange(len(body.shape.vertices))
        self.dofs = Places(np.full(len(every), number), every)
        corners = body.shape.vertices[body.shape.tets]
        self._origins = corners[:, 0]
        self._inverses = np.linalg.inv(np.moveaxis(corners[:, 1:] - corners[:, :1], 1, 2))
        self._home = body.homes  # (n,) the coarse tetrahedron of each one of the material
        self._nodes = body.shape.tets[body.homes].astype(np.int64)  # (n, 4) the dofs at the corners of its copy
        self._source = every  # (m,) the vertex of the coarse shape that each dof is a copy of
        self._embed()

    # -- what changes ------------------------------------------------------------------------------------------------

    def carried_over(self, changes: list[ComplexChange], *columns: np.ndarray) -> list[np.ndarray]:
        """What the dofs carry (m, …) after changes: copies have what was there; notes what is a copy of what."""
        before = len(self._home)
        parent = self._parents(before)
        home, nodes = self._home[parent], self._nodes[parent]
        copies = copies_of(home, self.complex.neighbours, self._coarse.tets)
        of = np.zeros(copies.max() + 1, np.int64)
        of[copies] = nodes
        self._home, self._nodes, self._source = home, copies, self._source[of]
        self._fixed = self.fixed[of]
        self._fixed_count = len(of)
        self._embed()
        return [column[of] for column in columns]

    def fixed_after(self, changes: list[ComplexChange]) -> np.ndarray:
        """(m,) bool: which dofs are fixed: they are carried over by now."""
        return self.fixed

    def take_notes(self, changes: list[ComplexChange]) -> None:
        """Nothing more: it is noted where dofs are carried over."""

    def layout(self, fixed: np.ndarray) -> dict[int, Body]:
        """The bodies of all parts by numbers; `fixed` (m,) dofs. Notes the places of their rows."""
        dof_body, dof_place = np.full(len(self._source), -1), np.zeros(len(self._source), np.int64)
        names = len(self.surface_dofs)
        vertex_body, vertex_place = np.full(names, -1), np.zeros(names, np.int64)
        bodies, of_numbers = {}, {number: own for own, number in self.numbers.items()}
        for number, body, seen, _ in self.shapes(fixed):
            used = np.unique(self._nodes[self._part == of_numbers[number]])
            dof_body[used], dof_place[used] = number, np.arange(len(used))
            vertex_body[seen], vertex_place[seen] = number, np.arange(len(seen))
            bodies[number] = body
        self.dofs, self.vertices = Places(dof_body, dof_place), Places(vertex_body, vertex_place)
        return bodies

    def shapes(self, fixed: np.ndarray) -> list[tuple[int, Body, np.ndarray, np.ndarray]]:
        """Of all parts: the number, the body, its surface vertices, and the places of its triangles."""
        assert self.surface is not None
        corners, rest, part, name = self.complex.corners, self.complex.rest, self._part, str(self.given.name)
        triangles, owners, walls = self._triangles()
        places = np.flatnonzero(self.surface.triangles[:, 0] >= 0)
        dofs, facets = self.surface_dofs, self._wall_facets(triangles, owners, walls)
        owners = owners >> 2
        seen = np.unique(triangles)
        insets = self.insets(len(dofs))[: len(dofs)]
        fine = inset_carriers(facets, seen, dofs, rest, corners, 0.5 * self.kerf, insets)
        points = np.einsum("ij,ijk->ik", fine[1], rest[fine[0]])
        best, weights = self._best(triangles.ravel(), np.repeat(owners, 3), points)
        carriers = np.zeros((len(dofs), 4), np.int64)
        carriers[seen], shares = self._nodes[best], np.zeros((len(dofs), 4))
        shares[seen] = weights
        at_wall = np.zeros(len(dofs), bool)
        at_wall[facets.corners] = True
        volumes = TetMesh(rest, corners).volumes
        found = []
        for own, number in self.numbers.items():
            mine, ours = part == own, part[owners] == own
            used, seen = np.unique(self._nodes[mine]), np.unique(triangles[ours])
            tets, piece = np.unique(self._nodes[mine], axis=0, return_inverse=True)
            home = np.zeros(len(tets), np.int64)
            home[piece.ravel()] = self._home[mine]
            fractions = np.bincount(piece.ravel(), volumes[mine], len(tets)) / self._coarse.volumes[home]
            inner = np.unique(corners[mine])
            title = self.name_of(own)
            body = self.given.piece(
                TetMesh(self._coarse.vertices[self._source[used]], np.searchsorted(used, tets), name=name),
                Mesh(points[seen], np.searchsorted(seen, triangles[ours]), name=name),
                (np.searchsorted(used, carriers[seen]).astype(np.int32), shares[seen]),
                fixed=fixed[used],
                walls=(at_wall[seen], walls[ours]),
                name=title,
                material=(TetMesh(rest[inner], np.searchsorted(inner, corners[mine]), name=title), fractions),
            )
            found.append((number, body, seen, places[ours]))
        return found

    # -- where it is -------------------------------------------------------------------------------------------------

    def world(self, values: np.ndarray) -> np.ndarray:
        """(v, …) what the vertices of the material carry, from what dofs carry (m, …)."""
        return np.einsum("ij,ij...->i...", self._embedding[1], values[self._embedding[0]])

    # -- going back --------------------------------------------------------------------------------------------------

    def state(self) -> tuple[Any, ...]:
        """All that later steps depend on (`restore`)."""
        return *super().state(), self._notes()

    def restore(self, state: tuple[Any, ...]) -> None:
        """As it was."""
        super().restore(state[:-1])
        self._take(state[-1])

    def begin_history(self) -> tuple[Any, ...]:
        """From here on all can be taken back."""
        return *super().begin_history(), self._notes()

    def undo_history(self, notes: tuple[Any, ...]) -> None:
        """As it was at `begin_history`."""
        super().undo_history(notes[:-1])
        self._take(notes[-1])

    # -- inside ------------------------------------------------------------------------------------------------------

    def _notes(self) -> tuple[np.ndarray, ...]:
        return self._home, self._nodes, self._source, self._fixed, *self._embedding

    def _take(self, notes: tuple[np.ndarray, ...]) -> None:
        self._home, self._nodes, self._source, self._fixed = notes[:4]
        self._fixed_count, self._embedding = len(self._fixed), notes[4:]

    def _parents(self, before: int) -> np.ndarray:
        """(n,) of each tetrahedron of the material the one that there was before, which it was bisected from, or is.

        A new one comes right after the one that it is bisected from, in the list of those with the same ancestor.
        """
        count = self.complex.counts[0]
        following, parent = self.complex.view("next")[:count], np.arange(count)
        previous = np.full(count, -1)
        previous[following[following >= 0]] = np.flatnonzero(following >= 0)
        waiting = np.arange(before, count)
        parent[waiting] = previous[waiting]
        while (parent >= before).any():
            late = parent >= before
            parent[late] = previous[parent[late]]
        return parent

    def _embed(self) -> None:
        """The dofs that carry each vertex of the material, and their weights."""
        corners = self.complex.corners
        owner = np.repeat(np.arange(len(corners)), 4)
        best, weights = self._best(corners.ravel(), owner, self.complex.rest)
        carriers, shares = np.zeros((len(self.complex.rest), 4), np.int64), np.zeros((len(self.complex.rest), 4))
        used = np.unique(corners)
        carriers[used], shares[used] = self._nodes[best], weights
        self._embedding = carriers, shares

    def _best(self, things: np.ndarray, owner: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of each thing, rising, the one of its tetrahedra whose coarse one has its point best, and the weights there.

        Args:
            things, owner: pairs of a thing and a tetrahedron of the material.
            points: at rest, by thing [m].
        """
        home = self._home[owner]
        inner = np.einsum("mij,mj->mi", self._inverses[home], points[things] - self._origins[home])
        weights = np.column_stack([1.0 - inner.sum(axis=1), inner])
        order = np.lexsort((owner, -weights.min(axis=1).round(9), things))
        best = order[np.unique(things[order], return_index=True)[1]]
        return owner[best], weights[best]
