"""What the demo shows and the benchmark measures: three small moving scenes and random batches, all procedural."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tangere.motion import Linear
from tangere.scene import Camera
from tangere.shape import Moving, generate
from tangere.shape.mesh import Mesh


@dataclass(frozen=True, eq=False)
class Case:
    """Bodies on their way, and from where to look at them."""

    name: str
    bodies: tuple[Mesh | Moving, ...]
    camera: Camera

    @property
    def triangles(self) -> int:
        """Of all bodies together."""
        return sum(len((b.shape if isinstance(b, Moving) else b).faces) for b in self.bodies)

    def anew(self) -> list[Mesh | Moving]:
        """The bodies as a simulation's next step brings them: same triangles, nothing prepared for these positions."""
        return [
            b.shape.replace(vertices=b.shape.vertices.copy()).moving(b.motion) if isinstance(b, Moving) else b
            for b in self.bodies
        ]


def cases() -> list[Case]:
    """Two bumpy tori that fly into each other, a sheet that falls on a ball, and a sheet that folds through itself."""
    return [_tori(), _sheet_on_ball(), _folding_sheet()]


def random_batch(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Ends of `count` queries of four vertices each, anywhere in the unit cube, shape (count, 4, 3) [m]."""
    random = np.random.default_rng(seed)
    return random.random((count, 4, 3)), random.random((count, 4, 3))


def _tori() -> Case:
    lying = generate.torus(grid=(128, 56), tube=0.36, bumps=0.18, name="torus")
    standing = lying.vertices[:, [0, 2, 1]] * (1.0, -1.0, 1.0)
    left = lying.replace(vertices=lying.vertices - (1.9, 0.0, 0.0))
    right = Mesh(standing + (1.6, 0.1, 0.25), lying.faces, name="standing torus")
    towards, back = left.vertices + (1.15, 0.0, 0.0), right.vertices - (1.0, 0.0, 0.2)
    return Case("two tori", (left.moving(Linear(towards)), right.moving(Linear(back))), Camera((0.35, -1.0, 0.55)))


def _sheet_on_ball() -> Case:
    ball = generate.icosphere(4, radius=0.6, name="ball")
    flat = generate.sheet(16_200, size=(2.0, 2.0))
    x, y, _ = flat.vertices.T
    crumple = 0.05 * np.sin(5.0 * x + 1.0) * np.cos(4.0 * y) + 0.025 * np.sin(11.0 * x - 7.0 * y)
    cloth = flat.replace(vertices=np.stack([x, y, 1.05 + crumple], axis=1))
    # The middle ends a little inside the ball, the rim hangs down: a contact is certain, its place is not obvious.
    fall = 0.52 + 0.45 * ((x - 0.1) ** 2 + (y + 0.1) ** 2)
    end = np.stack([0.92 * x, 0.92 * y, 1.05 + crumple - fall], axis=1)
    return Case("sheet on a ball", (cloth.moving(Linear(end)), ball), Camera((0.5, -1.0, 0.55)))


def _folding_sheet() -> Case:
    flat = generate.sheet(15_400, size=(2.0, 1.4))
    x, y, _ = flat.vertices.T
    crumple = 0.05 * np.sin(6.0 * x + 2.0 * y) * np.cos(3.0 * y - 1.0)
    fold = 0.25
    angle = np.clip(x / fold, -1.0, 1.0) * np.pi / 2.0
    wing = np.maximum(np.abs(x) - fold, 0.0)
    # A hairpin: half a turn round the fold, then two wings that run side by side and swing through each other.
    across, height = (fold + crumple) * np.sin(angle), -fold * np.cos(angle) + wing
    start = np.stack([across + 0.25 * wing * np.sign(x), y, height], axis=1)
    end = np.stack([across - (0.45 + 0.2 * y) * wing * np.sign(x), y, height - 0.1 * wing], axis=1)
    return Case("sheet with itself", (flat.replace(vertices=start).moving(Linear(end)),), Camera((0.55, -1.0, 0.35)))
