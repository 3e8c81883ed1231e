"""One table for the screen and for a Markdown file."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table


def screen_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A rich table; all columns but the first are numbers and stand to the right."""
    table = Table(title=title, title_justify="left")
    for number, name in enumerate(header):
        table.add_column(name, justify="right" if number else "left")
    for row in rows:
        table.add_row(*row)
    return table


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same as Markdown."""
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def quantity(value: float) -> str:
    """A count or rate for people: 950, 12.3 k, 4.57 M."""
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"
