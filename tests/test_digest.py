"""Are the answers those that were recorded? A quick digest of every system against `data/digest.npz`.

Statuses, counts and other integers must be equal, other numbers to 1e-12 of themselves or of the largest of their
column. `python -m tools.digest` has many more questions and compares bits.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from tools import digest, lines, turns

pytestmark = pytest.mark.release

ANEW = "If the answers are meant to be others now, record them anew: python -m tools.digest --record"


@pytest.mark.parametrize("section", digest.SECTIONS)
def test_answers_are_those_that_were_recorded(section):
    book = digest.take(section, quick=True)
    if book.skipped:
        pytest.skip(book.skipped)
    assert not book.failures, "\n".join(book.failures)
    recorded = {key: kept for key, kept in digest.load_record().items() if key.startswith(f"{section}/")}
    assert recorded, f"section {section} is not in the record. {ANEW}"
    told = digest.check(book.columns, recorded)
    assert not told, "\n".join([*told, ANEW])


def test_the_record_is_small_and_holds_every_system():
    assert digest.RECORD.stat().st_size < 300_000
    assert {key.partition("/")[0] for key in digest.load_record()} == set(digest.SECTIONS)


def columns():
    return {
        "rigid/spin/time": np.linspace(0.0, 1.0, 300),
        "rigid/spin/status": np.arange(300, dtype=np.uint8) % 3,
        "soft/ring/positions": np.arange(600.0).reshape(200, 3),
        "soft/ring/free": np.array([np.inf, np.nan, 0.5]),
        "crowd/field/nobody": np.zeros((0, 3)),
    }


def altered(key, index, value):
    changed = columns()
    changed[key][index] = value
    return changed


def test_what_is_recorded_is_read_back_and_compares_equal_to_itself(tmp_path):
    digest.record(columns(), tmp_path / "record.npz")
    recorded = digest.load_record(tmp_path / "record.npz")
    assert digest.check(columns(), recorded) == []
    assert digest.check(altered("soft/ring/positions", (0, 1), 1.0 + 1e-10), recorded) == []  # 2e-13 of the largest


@pytest.mark.parametrize(
    ("key", "index", "value", "told"),
    [
        ("rigid/spin/time", -1, 1.0 + 1e-9, r"section rigid, case spin, column time, index \[299\]: .*recorded"),
        ("rigid/spin/status", 7, 0, "section rigid, case spin, column status: an integer between"),
        ("rigid/spin/status", 0, 1, r"section rigid, case spin, column status, index \[0\]: .*1.*, recorded .*0"),
        ("soft/ring/positions", (199, 2), np.inf, r"section soft, case ring, column positions, index \[199, 2\]"),
        ("soft/ring/free", 0, 1.0, r"column free, index \[0\]"),
    ],
)
def test_a_change_is_told_with_section_case_column_and_index(key, index, value, told, tmp_path):
    digest.record(columns(), tmp_path / "record.npz")
    lines = digest.check(altered(key, index, value), digest.load_record(tmp_path / "record.npz"))
    assert len(lines) == 1
    assert re.search(told, lines[0])


def test_columns_that_are_gone_new_or_of_another_shape_are_told(tmp_path):
    digest.record(columns(), tmp_path / "record.npz")
    now = columns()
    now["rigid/spin/time"] = now["rigid/spin/time"][:5]
    now["rigid/spin/gap"] = now.pop("soft/ring/free")
    lines = digest.check(now, digest.load_record(tmp_path / "record.npz"))
    assert [line.partition(": ")[2] for line in lines] == [
        "float64 of shape (5,), recorded float64 of (300,)",
        "not there any more",
        "not in the record",
    ]


def test_comparing_tells_bits_from_rounding_and_lists_what_only_one_has(capsys):
    assert digest.compare(columns(), columns())
    after = altered("rigid/spin/time", 5, columns()["rigid/spin/time"][5] * (1.0 + 4e-16))
    after["rigid/spin/status"][3] = 2
    after["soft/new/gap"] = after.pop("soft/ring/free")
    assert not digest.compare(columns(), after)
    out = capsys.readouterr().out
    assert "close     rigid/spin/time: worst at [5]" in out
    assert "different rigid/spin/status: 1 of 300 integers, first at [3]: 0 and 2" in out
    assert "only in the first: 1 columns\n    soft/ring/free" in out
    assert "only in the second: 1 columns\n    soft/new/gap" in out


def test_a_row_is_slower_only_beyond_five_percent_and_beyond_the_spread():
    assert turns.verdict([1.0] * 2, [2.0] * 2)[2] == "too few rounds"
    assert turns.verdict([1.0] * 5, [1.04] * 5)[2] == "same"
    assert turns.verdict([1.0] * 5, [1.06] * 5)[2] == "slower"
    assert turns.verdict([1.0] * 5, [0.9] * 5)[2] == "faster"
    assert turns.verdict([0.8, 0.9, 1.0, 1.1, 1.2], [0.9, 1.0, 1.1, 1.2, 1.3])[2] == "same"


def test_where_a_machine_is_shared_the_least_counts():
    busy = [1.0, 1.01, 3.0, 9.0, 5.0]
    assert turns.verdict(busy, [2.0, 1.0, 1.0, 4.0, 8.0], shared=True)[2] == "same"
    assert turns.verdict(busy, [1.2, 1.2, 1.3, 1.2, 1.2], shared=True)[2] == "slower"
    assert turns.verdict(busy, [1.2, 4.0, 5.0, 6.0, 7.0], shared=True)[2] == "same"  # seen once only


def test_lines_of_code_are_neither_blank_nor_comments_nor_docstrings():
    text = '''"""A module.

Told at length.
"""

x = 1  # one


# nothing
def f():
    """Said."""
    return """a

b"""


class C:
    "Short."
    y = (
        2
    )
'''
    assert lines.code_lines(text) == 8
    rooms = lines.lines_by_room()
    assert rooms["query"] > rooms["runtime"] > 0
