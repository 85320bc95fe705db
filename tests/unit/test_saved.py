"""Saved models: what goes in comes out, and nothing else is believed."""

from __future__ import annotations

import json
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from scipy.sparse import csr_matrix

from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.core.saved_arrays import WIDEST, get_matrix, load_arrays, put_matrix, save_arrays


@settings(max_examples=60, deadline=None)
@given(
    array=st.one_of(
        arrays_of.arrays(
            st.sampled_from(["<f8", "<i8", "<f4", "?", "<U5"]),
            arrays_of.array_shapes(min_dims=0, min_side=0, max_dims=3),
        )
    ),
    words=st.lists(st.text(max_size=9), max_size=4),
)
def test_round_trip(tmp_path_factory, array, words):
    path = tmp_path_factory.mktemp("saved") / "model"
    save_arrays(path, "thing", {"words": words}, {"a": array, "transposed": array.T})
    header, back = load_arrays(path, "thing")
    assert header == {"words": words}
    assert back["a"].dtype == array.dtype
    np.testing.assert_array_equal(back["a"], array)
    np.testing.assert_array_equal(back["transposed"], array.T)


def test_same_content_same_bytes(tmp_path):
    for name in "ab":
        save_arrays(tmp_path / name, "thing", {"x": 1}, {"a": np.arange(5)})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_objects_are_refused(tmp_path):
    with pytest.raises(ParameterError, match="'a' of type object"):
        save_arrays(tmp_path / "x", "thing", {}, {"a": np.array([{}, None])})
    assert not (tmp_path / "x").exists()


class Trap:
    """Runs code where it is unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("unpickled",))


@pytest.mark.parametrize(
    "content", ["pickle", "object array", "text", "truncated", "compressed", "huge shape", "nothing"]
)
def test_foreign_files(tmp_path, content):
    path = tmp_path / "model"
    save_arrays(path, "thing", {}, {"a": np.arange(100)})
    whole = path.read_bytes()
    if content == "pickle":
        path.write_bytes(pickle.dumps(Trap()))
    elif content == "text":
        path.write_text("hello")
    elif content == "truncated":
        path.write_bytes(whole[: len(whole) // 2])
    elif content == "nothing":
        path.write_bytes(b"")
    else:
        about = json.dumps({"format": 1, "kind": "thing", "header": {}})
        packing = zipfile.ZIP_DEFLATED if content == "compressed" else zipfile.ZIP_STORED
        with zipfile.ZipFile(path, "w", packing) as archive:
            archive.writestr("header.json", about)
            with archive.open("a.npy", "w") as member:
                if content == "object array":
                    np.lib.format.write_array(member, np.array([Trap()], dtype=object), allow_pickle=True)
                elif content == "huge shape":
                    shape = {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
                    np.lib.format.write_array_header_1_0(member, shape)
                else:
                    np.lib.format.write_array(member, np.zeros(1000))
    with pytest.raises(InputError, match="is not a thing saved by sdretrieval, or is damaged"):
        load_arrays(path, "thing")


def test_other_kind_newer_format_and_no_file(tmp_path):
    save_arrays(tmp_path / "m", "classifier", {}, {})
    with pytest.raises(InputError, match="holds a classifier, expected a topic model"):
        load_arrays(tmp_path / "m", "topic model")
    with zipfile.ZipFile(tmp_path / "new", "w") as archive:
        archive.writestr("header.json", json.dumps({"format": 99, "kind": "x", "header": {}, "sdretrieval": "9"}))
    with pytest.raises(InputError, match="format 99"):
        load_arrays(tmp_path / "new", "x")
    with pytest.raises(InputError, match="no such file"):
        load_arrays(tmp_path / "none", "x")


def test_a_matrix_that_claims_to_be_wider_than_memory_is_refused():
    arrays: dict[str, np.ndarray] = {}
    assert put_matrix(arrays, "X", csr_matrix((2, WIDEST))) == [2, WIDEST]
    assert get_matrix(arrays, "X", [2, WIDEST]).shape == (2, WIDEST)
    with pytest.raises(ValueError, match="'X' claims 134217729 columns"):
        get_matrix(arrays, "X", [2, WIDEST + 1])
