"""Steps driven by first contact: a cloth falls on a ball and over itself and never goes through anything."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.families.moving_meshes import grid
from oracles.mesh_contacts import overlaps
from tangere.motion import Linear
from tangere.query.contacts import Contacts, Kind
from tangere.query.first_contact import all_contacts, candidates, first_contact
from tangere.shape import generate
from tangere.shape.mesh import Mesh

STEP = 0.02  # [s]
#: How much of the way to first contact is gone.
PART = 0.9


class Cloth:
    """A sheet of unit masses and springs, explicit, that falls while one side of it is thrown over the other."""

    def __init__(self) -> None:
        sheet = grid(9, 9)
        self.mesh = sheet.replace(vertices=(sheet.vertices - [4.0, 4.0, 0.0]) * 0.25 + [0.1, 0.05, 0.75])
        self.velocity = np.zeros_like(self.mesh.vertices)
        self.velocity[self.mesh.vertices[:, 0] > 0.4] = [-6.0, 0.0, 5.0]
        self.edges = self.mesh.edges
        self.lengths = np.linalg.norm(np.subtract(*self.mesh.vertices[self.edges].swapaxes(0, 1)), axis=1)

    def predicted(self) -> np.ndarray:
        """Where the cloth would be after the step if nothing were in its way."""
        along = np.subtract(*self.mesh.vertices[self.edges].swapaxes(0, 1))
        length = np.linalg.norm(along, axis=1)
        pull = (400.0 * (length - self.lengths) / length)[:, None] * along
        force = np.zeros_like(self.velocity)
        np.add.at(force, self.edges[:, 0], -pull)
        np.add.at(force, self.edges[:, 1], pull)
        self.velocity += STEP * (force + [0.0, 0.0, -9.8])
        self.velocity *= 0.98
        return self.mesh.vertices + STEP * self.velocity

    def respond(self, contacts: Contacts, against_itself: bool) -> None:
        """Turn round the approach at every contact: impulses on the vertices, by their weights."""
        for k in range(len(contacts)):
            vertices, shares = self._shares(contacts[k : k + 1], against_itself)
            normal = contacts.normal[k]
            approach = shares @ (self.velocity[vertices] @ normal)
            if approach < 0.0:
                self.velocity[vertices] -= np.outer(1.5 * approach * shares / (shares @ shares), normal)

    def _shares(self, contact: Contacts, against_itself: bool) -> tuple[np.ndarray, np.ndarray]:
        """The cloth's vertices at a contact of cloth (a) with something (b), and their signed weights."""
        weights, face = contact.weights[0], contact.kind[0] == Kind.VERTEX_FACE
        a, b = int(contact.feature_a[0]), int(contact.feature_b[0])
        if not face:
            vertices, shares = [*self.edges[a]], [*weights[:2]]
            other, minus = [*self.edges[b]] if against_itself else [], [*-weights[2:]]
        elif contact.vertex_on[0] == 0:
            vertices, shares = [a], [1.0]
            other, minus = [*self.mesh.faces[b]] if against_itself else [], [*-weights[1:]]
        else:
            vertices, shares, other, minus = [*self.mesh.faces[a]], [*weights[1:]], [], []
        return np.array(vertices + other), np.array(shares + minus[: len(other)])


def advance(cloth: Cloth, ball: Mesh) -> list[bool]:
    """One step to shortly before first contact; whether the ball, and the cloth itself, was in the way."""
    end = cloth.predicted()
    moving = cloth.mesh.moving(Linear(end))
    hits = [first_contact(moving, other, start="trusted", device="cpu") for other in (ball, None)]
    time = min(1.0, *(PART * hit.time for hit in hits))
    for hit, other in zip(hits, (ball, None), strict=True):
        if hit:
            contacts = all_contacts(moving, other, start="trusted", device="cpu")
            assert len(np.unique(contacts.key)) == len(contacts)
            assert contacts.time[0] == hit.time
            cloth.respond(contacts, other is None)
    cloth.mesh = moving.at(time)
    return [bool(hit) for hit in hits]


def check_candidates(moving, other) -> None:
    found = candidates(moving, other, device="cpu")
    for table in (found.vertex_face, found.edge_edge, found.face_vertex):
        assert len(np.unique(table, axis=0)) == len(table)
    if other is None:
        edges = np.sort(found.edge_edge, axis=1)
        assert len(np.unique(edges, axis=0)) == len(edges)


@pytest.mark.feature("F-T-23")
def test_a_cloth_that_stops_before_first_contact_never_goes_through_a_ball_or_itself():
    cloth, ball = Cloth(), generate.icosphere(subdivisions=2)
    ball = ball.replace(vertices=ball.vertices * 0.6)
    touched = np.zeros(2, int)
    for step in range(120):
        if step % 10 == 0:
            moving = cloth.mesh.moving(Linear(cloth.mesh.vertices + STEP * cloth.velocity))
            check_candidates(moving, ball)
            check_candidates(moving, None)
        touched += advance(cloth, ball)
        assert not overlaps(cloth.mesh, ball)
        assert not overlaps(cloth.mesh)
    assert touched.min() > 5
    assert cloth.mesh.bounds[0, 2] < 0.3  # it did fall


def test_without_the_query_the_same_cloth_goes_through_the_ball():
    """The scene is one in which there is something to prevent."""
    cloth, ball = Cloth(), generate.icosphere(subdivisions=2)
    ball = ball.replace(vertices=ball.vertices * 0.6)
    through = 0
    for _ in range(20):
        cloth.mesh = cloth.mesh.replace(vertices=cloth.predicted())
        through += bool(overlaps(cloth.mesh, ball))
    assert through > 0
