"""Options that the commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


def machine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--threads and --device."""
    threads = click.option("--threads", type=click.IntRange(min=1), help="CPU threads; default: every core.")
    device = click.option("--device", help="cpu, cuda, cuda:0 …; default: CUDA if present, else the CPU.")
    return threads(device(command))


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
    return click.option("--units", type=click.Choice(["m", "mm", "cm", "um", "inch", "ft"]), help=told)(command)
