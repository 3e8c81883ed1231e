"""Plots are files one can open, and they show what was given."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from tangere.runtime import InputError, MissingExtraError
from tangere.view import plot_lines
from tangere.view.plots import plot_bars

Image = pytest.importorskip("PIL.Image")
pytest.importorskip("matplotlib")


def pixels(path) -> np.ndarray:
    return np.asarray(Image.open(path).convert("RGB")).astype(int)


def near(image, colour) -> int:
    return int((np.abs(image - colour).max(axis=2) < 12).sum())


def test_each_series_is_drawn_in_a_colour_of_its_own(tmp_path):
    series = {"slow": ([1, 10, 100], [1.0, 2.0, 3.0]), "fast": ([1, 10, 100], [10.0, 20.0, 40.0])}
    plot_lines(tmp_path / "a.png", series, title="t", x_label="x", y_label="y", logarithmic=True)
    image = pixels(tmp_path / "a.png")
    assert near(image, (0x44, 0x77, 0xAA)) > 100
    assert near(image, (0xEE, 0x88, 0x66)) > 100


def test_a_bar_twice_as_long_has_twice_the_pixels(tmp_path):
    plot_bars(tmp_path / "b.png", {"one": 1.0, "two": 2.0}, title="t", x_label="ratio", reference=1.5)
    blue = np.abs(pixels(tmp_path / "b.png") - (0x44, 0x77, 0xAA)).max(axis=2) < 12
    rows = blue.sum(axis=1)
    lengths = sorted({int(rows[: len(rows) // 2].max()), int(rows[len(rows) // 2 :].max())})
    assert lengths[1] / lengths[0] == pytest.approx(2.0, rel=0.05)


def test_uneven_series_and_a_missing_matplotlib_are_told(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="3 x values and 2 y values"):
        plot_lines(tmp_path / "a.png", {"s": ([1, 2, 3], [1, 2])}, title="", x_label="", y_label="")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"tangere\[view\]"):
        plot_bars(tmp_path / "b.png", {"one": 1.0}, title="", x_label="")
