"""`tangere check --robot`: can a robot follow a trajectory without touching itself or anything around it?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tangere.cli.check.printed import printed_time
from tangere.cli.shared.json_text import json_text

if TYPE_CHECKING:
    import numpy as np

    from tangere.robot import Robot, RobotCheck
    from tangere.scene import Scene

#: A joint that turns by more in a segment is doubted [rad].
_WHOLE_TURN = 2.0 * math.pi
_ROWS = 20  #: segments listed on the screen; --json lists all


@dataclass(frozen=True)
class RobotQuestion:
    """What the command line asks about a robot."""

    robot: Path
    trajectory: Path
    srdf: Path | None
    allow: tuple[str, ...]
    against: tuple[Path, ...]
    units: str | None
    separation: float
    tolerance: float | None
    clearance: float | None
    accuracy: float
    as_json: bool
    png: Path | None
    out: Path | None
    look: bool
    threads: int | None
    device: str | None


def check_robot(asked: RobotQuestion) -> bool:
    """Check the trajectory, tell and show what was found; whether anything touches."""
    import tangere as tg
    from tangere.cli.shared.extras import check_view_extra
    from tangere.cli.shared.mesh_files import load_mesh, tell_doubted_units
    from tangere.cli.shared.page import open_page
    from tangere.robot import read_trajectory
    from tangere.runtime import check_out_file
    from tangere.scene.export import check_export_file, export

    check_out_file(asked.png, "--png", ".png")
    if asked.out is not None:
        check_export_file(asked.out)
    check_view_extra(pillow=asked.png is not None, viser=asked.look)
    robot = tg.Robot.load(asked.robot)
    times, q = read_trajectory(asked.trajectory, robot.joint_names)
    _tell_turns(robot, q, asked.trajectory)
    short = [file.name for file in asked.against]
    world = {
        file.name if short.count(file.name) == 1 else str(file): load_mesh(file, asked.units) for file in asked.against
    }
    tell_doubted_units(list(world.values()))
    allowed: Any = None
    if asked.srdf is not None or asked.allow:
        allowed = robot.allowed([_pair(text) for text in asked.allow], srdf=asked.srdf)
        if asked.srdf is None:  # beside what is left out anyway
            allowed = robot.default_allowed() | allowed
    found = robot.check(
        q,
        world,
        allowed,
        times=times,
        separation=asked.separation,
        tolerance=asked.tolerance,
        clearance=asked.clearance,
        accuracy=asked.accuracy,
        device=asked.device,
        threads=asked.threads,
    )
    scene = robot.scene(q, world, found, times=times)
    click.echo(json_text(_as_data(found))) if asked.as_json else _print(found, scene, asked)
    at = _share(scene, found.time)
    if asked.png is not None:
        _write_picture(found, scene, at, asked.png)
    if asked.out is not None:
        export(scene, asked.out)
        click.echo(f"wrote {asked.out}", err=True)
    if asked.look:
        open_page(scene, at)
    return bool(found)


def _tell_turns(robot: Robot, q: np.ndarray, file: Path) -> None:
    """Say on stderr if a joint turns by more than a whole turn in a segment: such files are in degrees as a rule."""
    import numpy as np

    kinds = {joint.name: joint.kind for joint in robot.joints}
    turning = np.array([kinds[name] == "turning" for name in robot.joint_names], bool)
    if q.ndim < 2 or q.shape[-1] != len(turning) or not turning.any():
        return  # what is wrong the check says
    most = np.where(turning, np.abs(np.diff(q, axis=-2)).max(axis=tuple(range(q.ndim - 1)), initial=0.0), 0.0)
    joint = int(most.argmax())
    if not most[joint] > _WHOLE_TURN:
        return
    click.echo(
        f"tangere: {file.name} turns joint {robot.joint_names[joint]!r} by {most[joint]:.4g} rad in one segment:"
        " are these degrees?",
        err=True,
    )


def _pair(text: str) -> list[str]:
    """Two names with a comma between them."""
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2:
        raise click.UsageError(f"--allow takes two names, as in --allow base_link,table.stl, not {text!r}")
    return names


def _share(scene: Scene, time: float) -> float:
    """A time of the trajectory's clock as the scene has it, in [0, 1]."""
    return min(max(scene.off_clock(time), 0.0), 1.0) if math.isfinite(time) else time


def _as_data(found: RobotCheck) -> dict[str, Any]:
    """The answer in the types of JSON; times are those of the file."""
    from tangere.query.contacts import Status

    rows, contact, valid = found.segments, found.contact, found.last_valid
    return {
        "status": found.status.name.lower(),
        "time": found.time,
        "time_upper": found.time_upper,
        "segment": found.segment,
        "pair": found.pair,
        "point": contact.point_b[0].tolist() if len(contact) else None,
        "normal": contact.normal[0].tolist() if len(contact) else None,
        "gap": float(contact.gap[0]) if len(contact) else None,
        "limits_broken": list(found.limits_broken),
        "last_valid": None
        if valid is None
        else {"time": valid.time, "segment": valid.segment, "configuration": valid.configuration.tolist()},
        "segments": [
            {
                "status": Status(int(rows.status[k])).name.lower(),
                "time": float(rows.time[k]),
                "pair": rows.pair[k],
                "limit_broken": bool(rows.limit_broken[k]),
                "clearance_lower": float(rows.clearance_lower[k]),
                "clearance_upper": float(rows.clearance_upper[k]),
                "clearance_pair": rows.clearance_pair[k],
            }
            for k in range(len(rows))
        ],
        "compared": found.compared,
        "ignored": [{"pair": list(pair), "reason": reason} for pair, reason in found.ignored.reasons.items()],
    }


def _print(found: RobotCheck, scene: Scene, asked: RobotQuestion) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from tangere.query.contacts import Status
    from tangere.runtime import text_below

    console = Console()
    verdict = found.status.name.lower()
    if found.pair is not None:
        verdict += f" at t = {printed_time(scene, found.time, 9, down=True)}: {found.pair[0]} and {found.pair[1]}"
    console.print(
        f"[bold]{escape(verdict)}[/bold]   ({escape(asked.trajectory.name)})", highlight=False, soft_wrap=True
    )

    def tell(line: str) -> None:
        console.print(line, highlight=False, markup=False, soft_wrap=True)

    if asked.clearance is not None:
        low, high = found.clearance
        far = f"no two come as near as {asked.clearance:g} m" if math.isinf(high) else f"{high:.6g} m"
        tell(f"clearance: {far}; certainly {text_below(low)} m all the way")
    if found.limits_broken:
        tell(f"beyond their limits: {', '.join(found.limits_broken)}")
    left = ", ".join(f"{count} {reason}" for reason, count in found.ignored.counts().items()) or "none"
    tell(f"{found.compared} pairs of bodies compared; not compared: {left}")
    touching = [k for k, status in enumerate(found.segments.status) if status != Status.FREE]
    if not touching:
        return
    table, pairs = Table("segment", "verdict", "at", "bodies"), found.segments.pair
    for k in touching[:_ROWS]:
        status = Status(int(found.segments.status[k])).name.lower()
        at = printed_time(scene, found.segments.time[k], down=True)
        table.add_row(str(k), status, at, escape(" and ".join(pairs[k])))
    console.print(table)
    more = f"; {len(touching) - _ROWS} more touch, --json lists them" if len(touching) > _ROWS else ""
    tell(f"{len(found.segments) - len(touching)} of {len(found.segments)} segments are free{more}")


def _write_picture(found: RobotCheck, scene: Scene, at: float, path: Path) -> None:
    from tangere.view import strip

    middle = at if math.isfinite(at) else 0.5
    shown = found.time if math.isfinite(found.time) else scene.on_clock(middle)
    label = f"t = {printed_time(scene, shown, down=True)}: {found.status.name.lower()}"
    begin, end = (printed_time(scene, scene.on_clock(time)) for time in (0.0, 1.0))
    labels = [f"t = {begin}", label, f"t = {end}"]
    strip(scene, [0.0, middle, 1.0], labels=labels, size=(560, 520), path=path)
    click.echo(f"wrote {path}", err=True)
