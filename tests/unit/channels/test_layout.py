"""Schema to bytes: no two fields overlap, none shares a cache line, both ends agree."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tianji.channels.layout import ALIGN, STANDARD_FIELDS, Layout
from tianji.types import Field

SHAPES = st.lists(st.integers(1, 4), max_size=2).map(tuple)
FIELDS = st.lists(
    st.builds(
        Field,
        st.text("abcdefgh", min_size=1, max_size=4),
        st.sampled_from(["bool", "uint8", "int32", "float32", "int64"]),
        SHAPES,
        st.sampled_from(["step", "obs", "row", "unroll"]),
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda field: field.name,
).map(tuple)
LAYOUTS = st.builds(Layout, FIELDS, num_rows=st.integers(1, 5), num_envs=st.integers(1, 4))


@pytest.mark.parametrize(
    ("per", "shape"),
    [("step", (5, 3, 2)), ("obs", (6, 3, 2)), ("row", (5, 2)), ("unroll", (3, 2))],
)
def test_a_field_has_the_axes_of_its_kind(per, shape):
    field = Field("x", "float32", (2,), per)
    layout = Layout((field,), num_rows=5, num_envs=3)
    assert layout.shape(field) == shape
    assert layout.arrays(bytearray(layout.slot_bytes * 7), 7)["x"].shape == (7, *shape)


def test_the_example_of_the_docstring_is_right():
    assert Layout((Field("reward", "float32"),), num_rows=32, num_envs=8).slot_bytes == 1024


def test_offsets_follow_one_another():
    fields = (Field("a", "uint8"), Field("b", "float32", (17,)), Field("c", "bool"))
    layout = Layout(fields, num_rows=1, num_envs=1)
    assert layout.offsets() == {"a": 0, "b": 64, "c": 192}
    assert layout.slot_bytes == 256


@given(LAYOUTS)
def test_every_field_begins_on_a_cache_line_of_its_own(layout):
    ends = 0
    for field in layout.fields:
        begin = layout.offsets()[field.name]
        assert begin % ALIGN == 0
        assert begin >= ends
        ends = begin + int(np.prod(layout.shape(field))) * np.dtype(field.dtype).itemsize
    assert ends <= layout.slot_bytes
    assert layout.slot_bytes % ALIGN == 0


@given(LAYOUTS, st.integers(1, 3))
def test_what_is_written_to_one_field_of_one_slot_is_seen_nowhere_else(layout, num_slots):
    memory = bytearray(layout.slot_bytes * num_slots)
    arrays = layout.arrays(memory, num_slots)
    places = [(array, slot) for array in arrays.values() for slot in range(num_slots)]
    for array, slot in places:
        array[slot] = 1
        assert array[slot].all()
        assert sum(np.count_nonzero(a[s]) for a, s in places) == array[slot].size
        array[slot] = 0


@given(LAYOUTS)
def test_a_layout_survives_json_and_keeps_its_fingerprint(layout):
    other = Layout.from_json(json.loads(json.dumps(layout.to_json())))
    assert other == layout
    assert other.fingerprint() == layout.fingerprint()


@pytest.mark.parametrize(
    "other",
    [
        Layout((Field("a", "float32", (2,)), Field("b", "bool")), 5, 2),
        Layout((Field("a", "float32", (2,)), Field("b", "bool")), 4, 3),
        Layout((Field("a", "float32", (3,)), Field("b", "bool")), 4, 2),
        Layout((Field("a", "int32", (2,)), Field("b", "bool")), 4, 2),
        Layout((Field("a", "float32", (2,), "obs"), Field("b", "bool")), 4, 2),
        Layout((Field("c", "float32", (2,)), Field("b", "bool")), 4, 2),
        Layout((Field("b", "bool"), Field("a", "float32", (2,))), 4, 2),
    ],
)
def test_another_layout_has_another_fingerprint(other):
    layout = Layout((Field("a", "float32", (2,)), Field("b", "bool")), 4, 2)
    assert other.fingerprint() != layout.fingerprint()


def test_a_fingerprint_fits_into_a_word_of_shared_memory():
    assert 0 <= Layout(tuple(STANDARD_FIELDS), 2, 2).fingerprint() < 2**63
