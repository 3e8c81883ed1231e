"""Pictures of a scene without a browser: `picture` at one time, `strip` at several side by side.

A `Picture` is an array of pixels that saves and, in a notebook, shows itself.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import warp as wp

from tangere.runtime import (
    InputError,
    MissingExtraError,
    check_out_file,
    choose_device,
    needs_extra,
    using_threads,
    writing,
)
from tangere.scene import Drawable, Scene, Viewpoint, contact_markers, marker_radius, vertex_normals
from tangere.view.ray_caster import Surface, cast

_GAP = 6  #: white pixels between the frames of a strip


class Picture(np.ndarray):
    """Pixels, shape (height, width, 3) uint8: an array in every respect, that can be saved and shows itself."""

    @property
    def is_image(self) -> bool:
        """Whether it still is one: parts of it and what is computed from it may be numbers like any other."""
        return self.ndim == 3 and self.shape[2] == 3 and self.dtype == np.uint8 and self.size > 0

    def save(self, path: str | Path) -> None:
        """Write a .png file."""
        check_out_file(path, "a picture", ".png")
        if not self.is_image:
            raise InputError(f"{path}: {self.dtype} of shape {self.shape} are no pixels of a picture")
        with writing(path):
            Path(path).write_bytes(png_bytes(self))

    def __repr__(self) -> str:
        return f"Picture({self.shape[1]} x {self.shape[0]})" if self.is_image else super().__repr__()

    def _repr_png_(self) -> bytes | None:
        """For notebooks; None, and so text, where it is no image or pillow is not there."""
        if not self.is_image:
            return None
        try:
            return png_bytes(self)
        except MissingExtraError:
            return None


def picture(
    scene: Scene | Drawable,
    time: float = 0.0,
    *,
    size: tuple[int, int] = (960, 640),
    path: str | Path | None = None,
    samples: int = 2,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> Picture:
    """The scene at `time` with the contacts that have happened by then, shape (height, width, 3) uint8.

    Args:
        scene: what to draw; a body stands for a scene of it alone.
        time: in the scene's time range.
        size: width and height in pixels.
        path: also write it there, a .png file in a folder that exists.
        samples: samples per pixel along each side of the pixel: 1 is a draft, 3 is fine.
        device: where to compute; None means CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.
    """
    check_out_file(path, "picture", ".png")
    with using_threads(threads):
        (image,) = frames_at(scene, [time], size=size, samples=samples, device=device)
    if path is not None:
        image.save(path)
    return image


def strip(
    scene: Scene | Drawable,
    times: Sequence[float],
    *,
    size: tuple[int, int] = (480, 480),
    labels: Sequence[str] | None = None,
    path: str | Path | None = None,
    samples: int = 2,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> Picture:
    """Frames at several times side by side, all seen by one camera, uint8.

    Args:
        scene: what to draw; a body stands for a scene of it alone.
        times: one for each frame, in the scene's time range.
        size: width and height of one frame in pixels.
        labels: a line of text under the upper edge of each frame; needs the extra [view].
        path: also write it there, a .png file in a folder that exists.
        samples, device, threads: as of `picture`.
    """
    if not len(times) or (labels is not None and len(labels) != len(times)):
        raise InputError(f"strip: {len(times)} times and {len(labels or times)} labels must be equally many, and some")
    check_out_file(path, "strip", ".png")
    with using_threads(threads):
        images = list(frames_at(scene, times, size=size, samples=samples, device=device))
    if labels is not None:
        images = [_labelled(image, label) for image, label in zip(images, labels, strict=True)]
    image = stacked(images, axis=1)
    if path is not None:
        image.save(path)
    return image


def stacked(images: Sequence[np.ndarray], axis: int = 0) -> Picture:
    """Images of one size under each other (axis 0) or beside each other (axis 1), a white gap between them."""
    shape = list(images[0].shape)
    shape[axis] = _GAP
    gap = np.full(shape, 255, np.uint8)
    return np.concatenate([part for image in images for part in (gap, image)][1:], axis=axis).view(Picture)


def frames_at(
    scene: Scene | Drawable,
    times: Sequence[float],
    *,
    size: tuple[int, int] = (960, 640),
    samples: int = 2,
    points: np.ndarray | None = None,
    device: str | wp.Device | None = None,
) -> Iterator[Picture]:
    """A picture at each time, one after the other, all seen from one place; what is wrong is said at once.

    Args:
        points: what the camera has to see, (n, 3) [m]; None means the things at both ends of the time range.
    """
    scene = Scene.around(scene)
    if min(size) < 1 or samples < 1:
        raise InputError(f"a picture's size {size} and samples {samples} must be positive")
    times = [scene.checked_time(time) for time in times]
    viewpoint = scene.camera.placed(scene.points if points is None else points, size[0] / size[1])
    return (_render(scene, time, viewpoint, size, samples, device) for time in times)


def _render(
    scene: Scene, time: float, viewpoint: Viewpoint, size: tuple[int, int], samples: int, device: str | wp.Device | None
) -> Picture:
    extent = max(scene.extent, np.finfo(np.float32).tiny)
    half = np.tan(np.radians(viewpoint.field_of_view) / 2.0)
    linear = cast(
        _bodies(scene, time, viewpoint.target, extent),
        _marks(scene, time, viewpoint.target, extent),
        (viewpoint.eye - viewpoint.target) / extent,
        viewpoint.right * half * size[0] / size[1],
        viewpoint.up * half,
        viewpoint.forward,
        size,
        samples,
        choose_device(device),
    )
    return np.round(255.0 * np.clip(linear, 0.0, 1.0) ** (1 / 2.2)).astype(np.uint8).view(Picture)


def _bodies(scene: Scene, time: float, origin: np.ndarray, unit: float) -> Surface:
    """All things at `time`, around `origin` and `unit` long."""
    vertices, normals, faces, colours = [], [], [], []
    count = 0
    for thing in scene.things:
        x, f = ((thing.vertices(time) - origin) / unit)[thing.creased.source], thing.creased.faces
        vertices.append(x)
        normals.append(vertex_normals(x, f))
        faces.append(f + count)
        colours.append(np.tile([*np.power(thing.colour, 2.2), thing.opacity], (len(f), 1)))
        count += len(x)
    return Surface(*(np.concatenate(parts) for parts in (vertices, normals, faces, colours)))


def _marks(scene: Scene, time: float, origin: np.ndarray, unit: float) -> Surface:
    """Marks of the contacts that have happened by `time`, in the same coordinates; nearer cameras see smaller marks."""
    contacts = scene.contacts_by(time)
    drawn = contact_markers(contacts, scene.mark_size * marker_radius(len(contacts), scene.extent) / scene.camera.zoom)
    colours = np.concatenate([drawn.colours**2.2, np.ones((len(drawn.colours), 1))], axis=1)
    return Surface((drawn.vertices - origin) / unit, drawn.normals, drawn.faces, colours)


def _labelled(frame: np.ndarray, label: str) -> np.ndarray:
    with needs_extra("pillow", "view"):
        from PIL import Image, ImageDraw, ImageFont
    image = Image.fromarray(np.asarray(frame))
    height = max(12, frame.shape[0] // 26)
    ImageDraw.Draw(image).text((height, height * 3 // 4), label, fill=(60, 64, 72), font=ImageFont.load_default(height))
    return np.asarray(image)


def png_bytes(image: np.ndarray) -> bytes:
    """An (h, w, 3) uint8 image as a PNG file."""
    with needs_extra("pillow", "view"):
        from PIL import Image
    buffer = io.BytesIO()
    Image.fromarray(np.asarray(image)).save(buffer, format="PNG")
    return buffer.getvalue()
