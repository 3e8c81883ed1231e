"""Bounds as they are told: in few digits, and still bounds."""

from decimal import Decimal

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import tangere as tg
from tangere.query.clearance import LeastClearance
from tangere.query.depth import Depth
from tangere.runtime import text_below

DIGITS = st.integers(1, 9)


@given(st.floats(allow_nan=False), DIGITS)
def test_a_bound_that_is_told_in_few_digits_is_still_a_bound(value, digits):
    assert float(text_below(value, digits)) <= value


@given(st.floats(-1e12, 1e12).filter(bool), DIGITS)
def test_what_is_told_is_the_nearest_number_of_so_many_digits_below(value, digits):
    step = Decimal(1).scaleb(Decimal(repr(value)).adjusted() - digits + 1)
    assert 0 <= Decimal(repr(value)) - Decimal(text_below(value, digits)) < step


def test_what_has_few_digits_is_told_as_it_is():
    assert [text_below(x) for x in (0.1, 0.3, 1e-7, 123456.0, -2.5)] == ["0.1", "0.3", "1e-07", "123456", "-2.5"]
    assert [text_below(x) for x in (np.inf, -np.inf, np.nan, 0.0)] == ["inf", "-inf", "nan", "0"]


def test_answers_do_not_tell_more_than_is_certain():
    clearance = LeastClearance(0.12345678999, 0.12345679001, 0.5, 0, 0)
    assert repr(clearance) == "LeastClearance(0.123456789 to 0.12345679 m at t=0.5)"
    deep = Depth(0.1234569, 0.1234571, np.zeros(3), np.zeros(3), np.array([0.25, 0.0, 0.0]), True)
    assert repr(deep) == "Depth(0.123456 to 0.123457 m, parted by 0.25 m)"


def test_a_time_of_contact_is_not_told_late():
    at = np.eye(4)
    at[0, 3] = 3.0
    moved = np.eye(4)
    moved[0, 3] = 3.7
    hit = tg.first_contact(tg.generate.box().moving(tg.Screw(np.eye(4), moved)), tg.generate.box().at(at), device="cpu")
    assert float(repr(hit).split("t=")[1].split(",")[0]) <= hit.time
