"""Whatever the bytes of a model file are: it is loaded, or refused with a ValueError."""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_files import JSON, members_of, write_members

from motifold import CNMF, load


@pytest.fixture(scope="module")
def good_bytes(original):
    with tempfile.TemporaryDirectory() as folder:
        original.save(Path(folder) / "m")
        return (Path(folder) / "m").read_bytes()


def load_or_value_error(content):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m"
        path.write_bytes(content)
        try:
            assert isinstance(load(path), CNMF)
        except ValueError as error:
            message = str(error)
        else:
            return
        assert message.startswith(f"Cannot load {str(path)!r}")


flips = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=6)


def flipped(content, changes):
    content = bytearray(content)
    for place, byte in changes:
        content[int(place * len(content))] = byte
    return bytes(content)


@settings(max_examples=150, deadline=None)
@given(changes=flips, keep=st.one_of(st.just(1.0), st.floats(0, 1)), tail=st.binary(max_size=9))
def test_damaged_bytes(good_bytes, changes, keep, tail):
    content = flipped(good_bytes, changes)
    load_or_value_error(content[: int(keep * len(content))] + tail)


@settings(max_examples=150, deadline=None)
@given(changes=flips, whole_directory=st.booleans())
def test_damaged_directory(good_bytes, changes, whole_directory):
    start = good_bytes.index(b"PK\x01\x02") if whole_directory else len(good_bytes) - 22
    load_or_value_error(good_bytes[:start] + flipped(good_bytes[start:], changes))


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damaged_members_in_a_sound_archive(good_bytes, data):
    members = members_of(io.BytesIO(good_bytes))
    name = data.draw(st.sampled_from(sorted(members)))
    head = members[name][: None if name == JSON else 128]
    members[name] = flipped(head, data.draw(flips)) + members[name][len(head) :]
    stream = io.BytesIO()
    write_members(stream, members)
    load_or_value_error(stream.getvalue())


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["float", "solver", "options"]), inner)
    ),
    max_leaves=6,
)


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_json_with_any_values(good_bytes, data):
    members = members_of(io.BytesIO(good_bytes))
    header = json.loads(members[JSON])
    table = header[data.draw(st.sampled_from(["params", "fitted"]))]
    table[data.draw(st.sampled_from(sorted(table)))] = data.draw(json_values)
    members[JSON] = json.dumps(header)
    stream = io.BytesIO()
    write_members(stream, members)
    load_or_value_error(stream.getvalue())
