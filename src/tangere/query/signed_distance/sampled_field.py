"""A sampled distance field: a rigid tool that many points are asked about at every step.

Samples of the signed distance on a regular grid, read with trilinear interpolation (Léonard 2021, section 2.5, surveys
such fields). The distance changes by no more than the way gone, so what is read is wrong by sqrt(3) / 2 of the spacing
at most, and by much less away from the medial axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np
import warp as wp

from tangere.motion import as_poses
from tangere.query.signed_distance.api import signed_distance, usable_points
from tangere.runtime import SOUND, Arrays, CapacityError, InputError, choose_device, described, launch, using_threads
from tangere.shape.mesh import Mesh

wp.set_module_options(SOUND)

MOST_SAMPLES = 1 << 28
_OUTSIDE = wp.constant(wp.float64(float("inf")))


@dataclass(frozen=True, eq=False)
class DistanceField:
    """Signed distances on a grid around a mesh, in the frame of the mesh."""

    origin: np.ndarray  #: (3,) first sample [m]
    spacing: float  #: [m]
    margin: float  #: outside of the samples it is farther than this to the mesh [m]
    samples: np.ndarray  #: (nx, ny, nz) [m]

    @staticmethod
    def of(
        mesh: Mesh,
        spacing: float,
        *,
        margin: float | None = None,
        device: str | wp.Device | None = None,
        threads: int | None = None,
    ) -> DistanceField:
        """Sample a closed mesh.

        Args:
            spacing: of the samples [m].
            margin: how far the samples reach beyond the mesh [m]; None means four times the spacing.
            device, threads: as for `signed_distance`.
        """
        if not isinstance(mesh, Mesh):
            raise InputError(f"a field is made of a Mesh at rest, not of a {type(mesh).__name__}")
        if not (isinstance(spacing, Real) and 0.0 < spacing < np.inf):
            raise InputError(f"spacing must be a positive length, not {described(spacing)}")
        margin = 4.0 * spacing if margin is None else margin
        if not (isinstance(margin, Real) and 0.0 <= margin < np.inf):
            raise InputError(f"margin must be a length, not negative, not {described(margin)}")
        origin = mesh.bounds[0] - margin
        sizes = np.ceil((mesh.bounds[1] + margin - origin) / spacing) + 1.0  # perhaps too large for integers
        if not np.log2(sizes).sum() <= np.log2(MOST_SAMPLES):
            raise CapacityError(f"{sizes} samples along the axes are more than {MOST_SAMPLES} in all")
        counts = sizes.astype(int)
        ticks = [origin[k] + spacing * np.arange(counts[k]) for k in range(3)]
        points = np.stack(np.meshgrid(*ticks, indexing="ij"), axis=-1).reshape(-1, 3)
        distance = signed_distance(points, mesh, device=device, threads=threads).distance
        return DistanceField(origin, spacing, margin, distance.reshape(counts))

    @property
    def error(self) -> float:
        """What is read differs from the true distance by no more than this [m]."""
        return 0.5 * np.sqrt(3.0) * self.spacing

    def at(
        self,
        points: Arrays,
        pose: Arrays | None = None,
        *,
        device: str | wp.Device | None = None,
        threads: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Distance (n,) [m] and its gradient (n, 3), in the world, at points of the world.

        Args:
            points: (n, 3) [m].
            pose: (4, 4) rigid pose of the tool; None means the identity.
            device, threads: as for `signed_distance`.

        Outside of the samples the distance is inf, farther than `margin`, and the gradient zero.
        """
        device = choose_device(device, points)
        x = usable_points(points, device)
        matrix = np.eye(4) if pose is None else as_poses(pose, "pose")
        if matrix.shape != (4, 4):
            raise InputError(f"pose must have shape (4, 4), not {matrix.shape}")
        distance = wp.empty(len(x), dtype=wp.float64, device=device)
        gradient = wp.empty(len(x), dtype=wp.vec3d, device=device)
        samples = wp.array(self.samples, dtype=wp.float64, device=device)
        inputs = [x, wp.mat33d(*matrix[:3, :3].ravel()), wp.vec3d(*matrix[:3, 3])]
        inputs += [samples, wp.vec3d(*self.origin), self.spacing]
        with using_threads(threads):
            launch(_read, len(x), inputs, [distance, gradient], device=device)
        return distance.numpy(), gradient.numpy().reshape(-1, 3)


@wp.kernel
def _read(
    first: int,
    points: wp.array[wp.vec3d],
    turn: wp.mat33d,
    shift: wp.vec3d,
    samples: wp.array3d[wp.float64],
    origin: wp.vec3d,
    spacing: wp.float64,
    distance: wp.array[wp.float64],
    gradient: wp.array[wp.vec3d],
):
    q = first + wp.tid()
    at = (wp.transpose(turn) * (points[q] - shift) - origin) / spacing
    distance[q] = _OUTSIDE
    gradient[q] = wp.vec3d()
    zero = wp.float64(0.0)
    nx = samples.shape[0]
    ny = samples.shape[1]
    nz = samples.shape[2]
    inside = at[0] >= zero and at[1] >= zero and at[2] >= zero
    inside = inside and at[0] <= wp.float64(nx - 1) and at[1] <= wp.float64(ny - 1) and at[2] <= wp.float64(nz - 1)
    if not inside:
        return
    i = wp.min(int(at[0]), nx - 2)
    j = wp.min(int(at[1]), ny - 2)
    k = wp.min(int(at[2]), nz - 2)
    u = at[0] - wp.float64(i)
    v = at[1] - wp.float64(j)
    w = at[2] - wp.float64(k)
    one = wp.float64(1.0)
    s00 = samples[i, j, k] * (one - u) + samples[i + 1, j, k] * u
    s10 = samples[i, j + 1, k] * (one - u) + samples[i + 1, j + 1, k] * u
    s01 = samples[i, j, k + 1] * (one - u) + samples[i + 1, j, k + 1] * u
    s11 = samples[i, j + 1, k + 1] * (one - u) + samples[i + 1, j + 1, k + 1] * u
    d00 = samples[i + 1, j, k] - samples[i, j, k]
    d10 = samples[i + 1, j + 1, k] - samples[i, j + 1, k]
    d01 = samples[i + 1, j, k + 1] - samples[i, j, k + 1]
    d11 = samples[i + 1, j + 1, k + 1] - samples[i, j + 1, k + 1]
    low = s00 * (one - v) + s10 * v
    high = s01 * (one - v) + s11 * v
    distance[q] = low * (one - w) + high * w
    along_x = (d00 * (one - v) + d10 * v) * (one - w) + (d01 * (one - v) + d11 * v) * w
    along_y = (s10 - s00) * (one - w) + (s11 - s01) * w
    gradient[q] = turn * (wp.vec3d(along_x, along_y, high - low) / spacing)
