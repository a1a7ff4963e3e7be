"""CSV that any reader takes back, whatever the names are."""

from __future__ import annotations

import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from motifold.files import csv_text

# Surrogates cannot be written to a file; a NUL byte ends Python's reader.
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(st.lists(st.tuples(NAMES, NAMES), min_size=1))
def test_names_are_read_back_as_they_were(rows):
    text = io.StringIO(csv_text(["a", "b"], rows), newline="")
    assert [tuple(row) for row in csv.reader(text)][1:] == rows


def test_numbers_have_nine_digits_and_none_is_empty():
    rows = [(1, 1 / 3, None), (True, float("nan"), 1e-12)]
    assert csv_text(["i", "x", "y"], rows) == "i,x,y\n1,0.333333333,\nTrue,nan,1e-12\n"
