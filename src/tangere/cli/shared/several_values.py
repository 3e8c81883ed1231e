"""Options that take as many values as follow them: `--to A2.ply B2.ply`, which click itself does not offer."""

from __future__ import annotations

import click

_OPTIONS = ("--to", "--against")


class SeveralValues(click.Command):
    """A command whose `--to` and `--against` take every value up to the next option, as if they stood before each."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        spread: list[str] = []
        collecting = ""
        for number, word in enumerate(args):
            if word.startswith("-"):
                collecting = word if word in _OPTIONS else ""
                # The last word stays, so that click can say that a value is missing.
                if not collecting or number == len(args) - 1:
                    spread.append(word)
            else:
                spread += [collecting, word] if collecting else [word]
        return super().parse_args(ctx, spread)
