"""The three views of a rigid contact, without a browser: the contact, a body one sees through, the intended pose."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oracles.families.drawn_scenes import FROM_THE_FRONT
from tangere.motion import Twist
from tangere.query.first_contact.rigid.api import rigid_first_contact
from tangere.scene import Scene, Thing
from tangere.shape import generate
from tangere.view import picture

SIZE = (240, 160)
BLUE, ORANGE = (0.2, 0.3, 0.9), (0.95, 0.5, 0.1)


def pixel(scene: Scene, point) -> tuple[int, int]:
    """Row and column where a point of the world is seen."""
    viewpoint = scene.camera.placed(scene.points, SIZE[0] / SIZE[1])
    offset = np.asarray(point) - viewpoint.eye
    half = np.tan(np.radians(viewpoint.field_of_view) / 2.0) * (offset @ viewpoint.forward)
    x, y = offset @ viewpoint.right / (half * SIZE[0] / SIZE[1]), offset @ viewpoint.up / half
    return int((1.0 - y) / 2.0 * SIZE[1]), int((1.0 + x) / 2.0 * SIZE[0])


def warmth(colour) -> int:
    """How much more red than blue."""
    return int(colour[0]) - int(colour[2])


@pytest.mark.feature("F-R-80")
def test_contact_transparency_and_the_intended_pose_are_drawn(device, tmp_path):
    """A ball (orange) flies at a block (blue) and wants to go on through it."""
    ball, block = generate.icosphere(triangles=320, radius=0.4), generate.box((0.6, 1.2, 1.2))
    start = np.eye(4)
    start[0, 3] = -2.0
    flying = ball.moving(Twist(start, [3.6, 0.0, 0.0], [0.0, 1.0, 0.0]))
    hit = rigid_first_contact(flying, block, device="cpu")
    touch, wanted = hit.contacts.point_a[0], np.array([1.6, 0.0, 0.0])

    # All views share one camera: the intended pose belongs to the scene in each of them, invisible at first.
    things = (
        Thing("block", block, BLUE),
        Thing("ball", flying, ORANGE),
        Thing("intended", flying.at(1.0), ORANGE, opacity=0.0),
    )
    plain = Scene(things, camera=FROM_THE_FRONT)
    marked = replace(plain, contacts=hit.contacts)
    glass = replace(plain, things=(replace(things[0], opacity=0.2), things[1], things[2]))
    ghost = replace(plain, things=(things[0], things[1], replace(things[2], opacity=0.4)))

    def drawn(scene: Scene, time: float, name: str) -> np.ndarray:
        return picture(scene, time, size=SIZE, path=tmp_path / f"{name}.png", device=device).astype(int)

    without = drawn(plain, hit.time, "plain")
    # 1: the contact is marked where it is, and nowhere far from it
    changed = np.abs(drawn(marked, hit.time, "contact") - without).sum(axis=2) > 60
    row, column = pixel(plain, touch)
    assert changed[row - 3 : row + 4, column - 3 : column + 4].any()
    rows, columns = np.nonzero(changed)
    assert np.hypot(rows - row, columns - column).max() < 60

    # 2: through the block one sees the ball that is inside it at the time it wanted to be there
    inside = 2.0 / 3.6
    spot = pixel(plain, (0.0, -0.4, 0.0))
    assert warmth(drawn(plain, inside, "solid")[spot]) < -30
    assert warmth(drawn(glass, inside, "glass")[spot]) > 0

    # 3: the intended pose is a ghost: fainter than the ball, and the block and the ball are as before
    shown = drawn(ghost, hit.time, "intended")
    aim = pixel(plain, wanted)
    body = warmth(shown[pixel(plain, flying.at(hit.time).vertices.mean(axis=0))])
    assert warmth(without[aim]) + 20 < warmth(shown[aim]) < body - 20
    assert np.array_equal(shown[:, : SIZE[0] // 2], without[:, : SIZE[0] // 2])
    assert {path.name for path in tmp_path.iterdir()} >= {"contact.png", "glass.png", "intended.png"}
