"""Columns alone, without the native library."""

from __future__ import annotations

import collections.abc
import decimal
import pickle
from typing import Any

import numpy as np
import pytest

from millrace.columns import (ArrayColumn, BytesColumn, ListColumn, MergedColumn, PixelColumn,
                              TextColumn)


def packed(*items: bytes) -> tuple[Any, Any]:
    data = np.frombuffer(b"".join(items), dtype=np.uint8)
    return data, np.cumsum([0, *map(len, items)]).astype("<u8")


def test_bytes_are_views_of_the_batch() -> None:
    data, offsets = packed(b"one", b"", b"three")
    column = BytesColumn(data, offsets, None)
    assert [bytes(item) for item in column] == [b"one", b"", b"three"]
    assert np.shares_memory(np.frombuffer(column[2], dtype=np.uint8), data)
    assert column.tolist() == [b"one", b"", b"three"]
    assert bytes(column[-1]) == b"three"
    assert [bytes(item) for item in column[1:]] == [b"", b"three"]
    for outside in (3, -4):
        with pytest.raises(IndexError, match=f"sample {outside} of 3"):
            column[outside]


def test_columns_are_left_alone_by_those_who_rebuild_sequences() -> None:
    column = BytesColumn(*packed(b"one"), None)
    assert not isinstance(column, collections.abc.Sequence | collections.abc.Mapping)


def test_a_sample_without_the_field_has_none() -> None:
    data, offsets = packed(b"one", b"", b"")
    column = BytesColumn(data, offsets, np.array([1, 0, 1], dtype=np.uint8))
    assert column.tolist() == [b"one", None, b""]


def test_texts_become_what_they_stand_for() -> None:
    def column(kind: str, *items: str) -> list[Any]:
        return TextColumn(*packed(*(item.encode() for item in items)), None, kind).tolist()

    assert column("str", "a", "ä€") == ["a", "ä€"]
    assert column("json", '{"a": [1, null]}', "2") == [{"a": [1, None]}, 2]
    assert column("str_int", str(10**30)) == [10**30]
    assert column("str_decimal", "0.10") == [decimal.Decimal("0.10")]


def test_arrays_of_different_shapes() -> None:
    arrays = [np.arange(6, dtype="<i2").reshape(2, 3), np.arange(4, dtype="<i2"),
              np.zeros((0, 2), dtype="<i2")]
    all_ones = 2**64 - 1
    shapes = np.array([[2, 3], [4, all_ones], [0, 2]], dtype="<u8")
    column = ArrayColumn(*packed(*(array.tobytes() for array in arrays)), None, "<i2", shapes)
    for item, array in zip(column, arrays):
        np.testing.assert_array_equal(item, array)
    kept = column.owned(0)
    assert not np.shares_memory(kept, column.data)


def test_pixels_have_channels() -> None:
    rgb = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    column = PixelColumn(*packed(rgb.tobytes()), None, "RGB", np.array([[2, 4]], dtype="<u8"))
    np.testing.assert_array_equal(column[0], rgb)
    bits = np.array([[1, 0, 1], [0, 0, 1]], dtype=bool)
    column = PixelColumn(*packed(np.packbits(bits, axis=1).tobytes()), None, "1",
                         np.array([[2, 3]], dtype="<u8"))
    np.testing.assert_array_equal(column[0], bits)


def test_lists_hold_items() -> None:
    data, item_offsets = packed(b"a", b"bc", b"def")
    column = ListColumn(data, np.array([0, 2, 2, 3], dtype="<u8"), None, item_offsets)
    assert [column.owned(index) for index in range(3)] == [[b"a", b"bc"], [], [b"def"]]


def test_a_field_may_have_other_types_in_other_samples() -> None:
    first = BytesColumn(*packed(b"x", b""), np.array([1, 0], dtype=np.uint8))
    second = TextColumn(*packed(b"", b"7"), np.array([0, 1], dtype=np.uint8), "str_int")
    column = MergedColumn([first, second])
    assert [column.owned(index) for index in range(2)] == [b"x", 7]


@pytest.mark.parametrize("column", [
    BytesColumn(*packed(b"one", b"two"), np.array([1, 0], dtype=np.uint8)),
    TextColumn(*packed(b"1", b"2"), None, "str_int"),
    ArrayColumn(*packed(b"ab", b"c"), None, "|u1", np.array([[2], [1]], dtype="<u8")),
    PixelColumn(*packed(b"abc"), None, "RGB", np.array([[1, 1]], dtype="<u8")),
    ListColumn(*packed(b"", b""), None, np.array([0], dtype="<u8")),
])
def test_a_pickled_column_is_the_same(column: Any) -> None:
    again = pickle.loads(pickle.dumps(column))
    assert type(again) is type(column)
    assert [again.owned(i) is None or str(again.owned(i)) for i in range(len(again))] == [
        column.owned(i) is None or str(column.owned(i)) for i in range(len(column))]
