"""Options that the commands share, and those that take as many values as follow: `--to A2.ply B2.ply`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

#: Options that take several values, which click itself does not offer.
_SEVERAL = ("--to", "--against")


def machine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--threads and --device."""
    threads = click.option("--threads", type=click.IntRange(min=1), help="CPU threads; default: every core.")
    device = click.option("--device", help="cpu, cuda, cuda:0 …; default: CUDA if present, else the CPU.")
    return threads(device(command))


def width_option(default: int, what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """--width of pictures."""
    pixels = click.IntRange(16, 10_000)
    return click.option("--width", default=default, show_default=True, type=pixels, help=f"Of one {what}, in pixels.")


def query_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--mode, --separation and --tolerance."""
    modes = click.Choice(["sound", "exact", "published"])
    mode = click.option("--mode", type=modes, default="sound", show_default=True, help="How contacts are decided.")
    separation = click.option(
        "--separation", type=float, default=0.0, show_default=True, help="Distance that already counts as contact [m]."
    )
    tolerance = click.option("--tolerance", type=float, help="How early the time may be, as a length [m].")
    return mode(separation(tolerance(command)))


def out_folder_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """--out."""
    folder, told = click.Path(path_type=Path), "Folder to write to."
    return click.option("--out", type=folder, default=Path("out"), show_default=True, help=told)(command)


def quaternion_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """--quaternion."""
    told = "Order of quaternions in a file without header (xyzw: TUM, ROS); default: as the header says."
    return click.option("--quaternion", type=click.Choice(["wxyz", "xyzw"]), help=told)(command)


def units_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """--units."""
    told = "Unit of files that do not say theirs (.stl, .ply, .obj, .off); default: m."
    return click.option("--units", type=click.Choice(["m", "mm", "cm", "um", "km", "inch", "ft"]), help=told)(command)


class SeveralValues(click.Command):
    """A command whose `--to` and `--against` take every value up to the next option, as if they stood before each."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        spread: list[str] = []
        collecting = ""
        for number, word in enumerate(args):
            if word.startswith("-"):
                collecting = word if word in _SEVERAL else ""
                # The last word stays, so that click can say that a value is missing.
                if not collecting or number == len(args) - 1:
                    spread.append(word)
            else:
                spread += [collecting, word] if collecting else [word]
        return super().parse_args(ctx, spread)
