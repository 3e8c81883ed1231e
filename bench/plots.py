"""Line and bar plots and maps of benchmark pages, as SVG whose bytes depend on the figures only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Map", "Plot"]


@dataclass(frozen=True)
class Plot:
    """Curves, or bars where `x` holds names; both axes of curves are logarithmic."""

    title: str
    x_label: str
    y_label: str
    x: Sequence[float] | Sequence[str]
    series: Mapping[str, Sequence[float | None]]

    def save(self, path: Path) -> None:
        import matplotlib as mpl

        mpl.use("Agg")
        from matplotlib import pyplot as plt

        with mpl.rc_context({"svg.hashsalt": path.name, "svg.fonttype": "path", "font.size": 9}):
            figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
            if self.x and isinstance(self.x[0], str):
                self._bars(axes)
            else:
                for name, values in self.series.items():
                    points = [(x, y) for x, y in zip(self.x, values, strict=True) if y is not None]
                    axes.plot(*zip(*points, strict=True), marker="o", markersize=3, label=name)
                axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set(title=self.title, xlabel=self.x_label, ylabel=self.y_label)
            axes.grid(alpha=0.3)
            axes.legend()
            figure.savefig(path, metadata={"Date": None})
            plt.close(figure)

    def _bars(self, axes) -> None:
        width = 0.8 / len(self.series)
        for k, (name, values) in enumerate(self.series.items()):
            places = [i + (k - (len(self.series) - 1) / 2) * width for i in range(len(self.x))]
            axes.bar(places, [value or 0.0 for value in values], width, label=name)
        axes.set_xticks(range(len(self.x)), [str(x) for x in self.x])


@dataclass(frozen=True)
class Map:
    """A table of numbers as colours."""

    title: str
    x_label: str
    y_label: str
    x: Sequence[str]
    y: Sequence[str]
    values: Sequence[Sequence[float]]
    label: str  #: of the colours

    def save(self, path: Path) -> None:
        import matplotlib as mpl

        mpl.use("Agg")
        from matplotlib import pyplot as plt

        with mpl.rc_context({"svg.hashsalt": path.name, "svg.fonttype": "path", "font.size": 8}):
            figure, axes = plt.subplots(figsize=(7.4, 3.8), layout="constrained")
            shown = axes.pcolormesh(self.values, cmap="viridis", edgecolors="white", linewidth=0.5)
            axes.set_xticks([k + 0.5 for k in range(len(self.x))], self.x, fontsize=6)
            axes.set_yticks([k + 0.5 for k in range(len(self.y))], self.y)
            axes.set(title=self.title, xlabel=self.x_label, ylabel=self.y_label)
            figure.colorbar(shown, label=self.label)
            figure.savefig(path, metadata={"Date": None})
            plt.close(figure)
