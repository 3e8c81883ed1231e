"""A scene as a video: GIF by pillow, MP4 (H.264) by imageio-ffmpeg; every frame is a picture of the ray caster."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import warp as wp

from tangere.runtime import InputError, check_out_file, needs_extra, positive, using_threads, whole, writing
from tangere.scene import Drawable, Scene
from tangere.view.pictures import Picture, frames_at

_RATE = 25  #: frames per second; GIF counts in hundredths of a second
_SECONDS = 4.0  #: of a video whose scene has no clock, or one that is not to be watched
_WATCHED = (1.0, 60.0)  #: seconds of a clock that a video follows
_INSTANTS = 33  #: at which the camera sees everything


def save_video(
    scene: Scene | Drawable,
    path: str | Path,
    *,
    frames: int | None = None,
    seconds: float | None = None,
    size: tuple[int, int] = (640, 480),
    samples: int = 2,
    device: str | wp.Device | None = None,
    threads: int | None = None,
) -> None:
    """Write a video of the whole time range; a .gif is repeated for ever.

    Args:
        scene: what to draw; a body stands for a scene of it alone.
        path: a .gif or .mp4 file in a folder that exists.
        frames: how many; None means 25 a second.
        seconds: how long it plays; None means as long as the clock of the scene says, if that is 1 to 60 s, else 4 s.
        size: width and height in pixels; of .mp4 both even.
        samples, device, threads: as of `picture`.
    """
    scene, path = Scene.around(scene), Path(path)
    suffix = path.suffix.lower()
    if suffix not in (".gif", ".mp4"):
        raise InputError(f"{path}: a video is a .gif or a .mp4 file")
    check_out_file(path, "a video", suffix)
    length = _length(scene) if seconds is None else positive(seconds, "seconds")
    count = max(2, math.ceil(_RATE * length)) if frames is None else whole(frames, "frames", least=1)
    if suffix == ".mp4" and (size[0] % 2 or size[1] % 2):
        raise InputError(f"{path}: width and height of a .mp4 file must be even, not {size}")
    times = np.linspace(*scene.time_range, count).tolist()
    images = _images(scene, times, size, samples, device)
    with writing(path), using_threads(threads):
        write_frames(path, images, size, length / count)


def write_frames(path: Path, images: Iterator[Picture], size: tuple[int, int], seconds: float) -> None:
    """Write pictures of one size, width and height, as a .gif or .mp4 file, each shown for so many seconds."""
    write = _write_gif if path.suffix.lower() == ".gif" else _write_mp4
    write(path, images, size, seconds)


def _length(scene: Scene) -> float:
    length = scene.clock[1] - scene.clock[0] if scene.clock is not None else 0.0
    return length if _WATCHED[0] <= length <= _WATCHED[1] else _SECONDS


def _images(
    scene: Scene, times: list[float], size: tuple[int, int], samples: int, device: str | wp.Device | None
) -> Iterator[Picture]:
    """Seen from where things stay in the picture all the time, not at the ends only."""
    instants = np.linspace(*scene.time_range, _INSTANTS)
    seen = [scene.points]
    for thing in scene.things:
        if thing.moves:
            for time in instants:
                vertices = thing.vertices(float(time))
                seen.append(vertices[np.concatenate([vertices.argmin(axis=0), vertices.argmax(axis=0)])])
    return frames_at(scene, times, size=size, samples=samples, points=np.concatenate(seen), device=device)


def _write_gif(path: Path, images: Iterator[Picture], size: tuple[int, int], seconds: float) -> None:
    with needs_extra("pillow", "view"):
        from PIL import Image
    first, *others = (Image.fromarray(np.asarray(image)) for image in images)
    shown = max(20, 10 * round(100.0 * seconds))  # browsers slow down what is faster than 50 frames a second
    first.save(path, format="GIF", save_all=True, append_images=others, duration=shown, loop=0)


def _write_mp4(path: Path, images: Iterator[Picture], size: tuple[int, int], seconds: float) -> None:
    with needs_extra("imageio-ffmpeg", "video"):
        import imageio_ffmpeg
    options = ["-movflags", "+faststart", "-crf", "18", "-preset", "medium"]
    writer = imageio_ffmpeg.write_frames(
        str(path),
        size,
        fps=1.0 / seconds,
        codec="libx264",
        pix_fmt_out="yuv420p",
        macro_block_size=2,
        quality=None,
        output_params=options,
        ffmpeg_log_level="error",
    )
    writer.send(None)
    try:
        for image in images:
            writer.send(np.ascontiguousarray(image))
    finally:
        writer.close()
