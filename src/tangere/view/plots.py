"""Plots by matplotlib, which is loaded when the first is drawn; every function writes one PNG file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tangere.runtime import InputError, needs_extra, writing

_INK = "#3c4048"
_CYCLE = ("#4477aa", "#ee8866", "#228877", "#aa4477", "#777777", "#bbaa33")


def plot_lines(
    path: str | Path,
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    title: str,
    x_label: str,
    y_label: str,
    logarithmic: bool = False,
    marked: bool = True,
) -> None:
    """Lines, with marked points.

    Args:
        series: for each label the x and the y values.
        logarithmic: both axes.
        marked: whether each point has a mark.
    """
    figure, axes = _figure(title)
    for colour, (label, (x, y)) in zip(_cycled(len(series)), series.items(), strict=True):
        if len(x) != len(y):
            raise InputError(f"plot {label!r}: {len(x)} x values and {len(y)} y values")
        axes.plot(x, y, marker="o" if marked else "", markersize=4, linewidth=1.8, color=colour, label=label)
    if logarithmic:
        axes.set_xscale("log")
        axes.set_yscale("log")
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.grid(True, which="major", linewidth=0.6, color="#d8dade")
    if len(series) > 1:
        axes.legend(frameon=False)
    _write(figure, path)


def plot_bars(
    path: str | Path, values: Mapping[str, float], *, title: str, x_label: str, reference: float | None = None
) -> None:
    """Horizontal bars, each with its number.

    Args:
        reference: a value to draw a line at, such as 1 for ratios.
    """
    figure, axes = _figure(title)
    labels, widths = list(values), np.array(list(values.values()), float)
    bars = axes.barh(range(len(labels)), widths, color=_CYCLE[0], height=0.65)
    axes.bar_label(bars, [f"{width:.3g}" for width in widths], padding=4, color=_INK, fontsize=9)
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xlabel(x_label)
    if reference is not None:
        axes.axvline(reference, color=_INK, linewidth=1.0, linestyle="--")
    _write(figure, path)


def _figure(title: str) -> tuple[Any, Any]:
    with needs_extra("matplotlib", "view"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    # A figure of its own rather than pyplot's: no window system is asked for and no global state is left behind.
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set_title(title, loc="left", color=_INK, fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(which="both", colors=_INK, labelsize=9)
    return figure, axes


def _cycled(count: int) -> list[str]:
    return [_CYCLE[number % len(_CYCLE)] for number in range(count)]


def _write(figure: Any, path: str | Path) -> None:
    with writing(path):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150, format="png")
