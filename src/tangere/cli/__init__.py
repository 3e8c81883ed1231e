"""The command line: thin, every command is one library call. Commands and Warp load only when a command runs.

Exit codes: 0 fine (for first-contact, check, clash and terrain check: free), 1 contact, 2 bad input, told in one
sentence on stderr; 130 a fleet that was interrupted.
"""

from __future__ import annotations

from importlib.metadata import version

import click

__all__ = ["main"]

_COMMANDS = {
    "bench": "Measure the main queries on this machine, in about a minute.",
    "check": "Can a part, or a robot, be moved along a path without touching anything?",
    "clash": "Which parts of an assembly clash, how, and how deep?",
    "convert": "Prepare parts: a mesh with its trees, cones and mass in one file.",
    "crowd": "Crowds in corridors, cities, on floor plans, planets and in space: run, measure, draw.",
    "demo": "See it work: contacts, a picture and speeds, in about a minute.",
    "first-contact": "When do two moving meshes, or one and itself, first touch?",
    "fleet": "Thousands of clash, check or crowd jobs from a table: on all cores, on a Ray cluster.",
    "hand": "Hold a part with mouse, SpaceMouse or a driver of your own, feel it touch, take it out.",
    "info": "What is in a mesh file, and what is unusual about it?",
    "needle": "Needles into tissue: drive them, feel the force, see what is near.",
    "soft": "Soft bodies that fall, touch and never pass through: run, watch and pull, record, draw.",
    "terrain": "Wheels, barrels and other bodies on height grids: a demo, and a check of your own.",
    "view": "Look at meshes, or at a recorded scene, in the browser.",
    "warm": "Compile all kernels now, so that no first use waits for them.",
    "world": "Rigid bodies that fall, slide, bounce and never pass through: run, watch and pull, record, draw.",
}


class _CommandGroup(click.Group):
    """Loads a command's module when it is called, and turns the library's errors into one sentence and exit code 2."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return _loaded(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def invoke(self, ctx: click.Context):
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            # Imported here, because it loads Warp, which a mere --help should not wait for.
            from tangere.runtime import TangereError

            if not isinstance(error, TangereError):
                raise
            click.echo(f"tangere: {' '.join(str(error).split())}", err=True)
            ctx.exit(2)


def _loaded(name: str) -> click.Command | None:
    """The command of that name, and no other: most load rooms of their own."""
    match name:
        case "bench":
            from tangere.cli.bench import bench as command
        case "check":
            from tangere.cli.check import check as command
        case "clash":
            from tangere.cli.clash import clash as command
        case "convert":
            from tangere.cli.convert import convert as command
        case "crowd":
            from tangere.cli.crowd import crowd as command
        case "demo":
            from tangere.cli.demo import demo as command
        case "first-contact":
            from tangere.cli.first_contact import first_contact as command
        case "fleet":
            from tangere.cli.fleet import fleet as command
        case "hand":
            from tangere.cli.hand import hand as command
        case "info":
            from tangere.cli.info import info as command
        case "needle":
            from tangere.cli.needle import needle as command
        case "soft":
            from tangere.cli.soft import soft as command
        case "terrain":
            from tangere.cli.terrain import terrain as command
        case "view":
            from tangere.cli.view import view as command
        case "warm":
            from tangere.cli.warm import warm as command
        case "world":
            from tangere.cli.world import world as command
        case _:
            return None
    return command


@click.group(cls=_CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("tangere"), prog_name="tangere")
def main() -> None:
    """When, where and how do moving things first touch?"""
