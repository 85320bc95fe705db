"""Fitted models and states on disk: one file of plain arrays and a JSON header, never a pickle.

A saved file is a zip archive of ``header.json`` and one ``.npy`` per array, not compressed, so that nothing in it can
claim to be larger than the file is; numpy opens it too (``numpy.load``). A file from elsewhere can be wrong, but it
cannot run anything: whoever loads it checks what the header says as they would any other input.
"""

from __future__ import annotations

import io
import json
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from sdretrieval import __version__
from sdretrieval.core.errors import InputError, ParameterError, SdretrievalError
from sdretrieval.core.files import atomic_writer
from sdretrieval.core.safe_json import parse_json

FORMAT = 1  # raise it when old programs would misread new files
WIDEST = 1 << 27  # columns of a sparse matrix: no file has so many words, and models make arrays of one for each
_HEADER = "header.json"
_KINDS = "biufSU"  # numbers, truth values and fixed-width text: what an array may hold
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same content gives the same bytes
# What zipfile, json and numpy raise on files that are none of ours (RuntimeError: encrypted, or nested too deeply).
_BROKEN = (OSError, zipfile.BadZipFile, ValueError, KeyError, TypeError, EOFError, SyntaxError, RuntimeError)
_BROKEN += (zlib.error, struct.error, OverflowError, IndexError, MemoryError)  # type: ignore[assignment]

Header = dict[str, Any]
Arrays = dict[str, np.ndarray]
Model = TypeVar("Model")


def save_arrays(
    path: str | os.PathLike[str], kind: str, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> None:
    """Write ``header`` (anything JSON can say) and ``arrays`` as one file, all or nothing.

    ``kind`` says what it is ("classifier", "topic model"); :func:`load_arrays` refuses any other.
    """
    text = json.dumps(
        {"sdretrieval": __version__, "format": FORMAT, "kind": kind, "header": dict(header)}, ensure_ascii=False
    )
    with atomic_writer(path, binary=True) as out, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(_HEADER, _EPOCH), text.encode("utf-8", "surrogatepass"))
        for name, array in arrays.items():
            array = np.asanyarray(array)
            if array.dtype.kind not in _KINDS:
                raise ParameterError(f"array {name!r} of type {array.dtype} cannot be saved: numbers and text can")
            with archive.open(zipfile.ZipInfo(f"{name}.npy", _EPOCH), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)


def load_model(
    path: str | os.PathLike[str], kind: str, make: Callable[[Header, Arrays], Model], remedy: str = "Save it again."
) -> Model:
    """What ``make`` makes of a file's header and arrays; an :class:`InputError` where they do not fit together."""
    header, arrays = load_arrays(path, kind)
    try:
        return make(header, arrays)
    except Exception as error:  # a file from elsewhere can be wrong in any way; its cause is kept
        told: Any = error.message if isinstance(error, SdretrievalError) else error
        told = f"{error.args[0]} is missing" if isinstance(error, KeyError) and error.args else told
        raise InputError(
            f"is not a {kind} this version can use ({str(told)[:300]}), or it is damaged", file=path, remedy=remedy
        ) from error


def load_arrays(path: str | os.PathLike[str], kind: str) -> tuple[Header, Arrays]:
    """The header and the arrays of a file of this ``kind``; an :class:`InputError` for any other file."""
    try:
        with zipfile.ZipFile(path) as archive:
            header = _header(archive, path, kind)
            members = [info for info in archive.infolist() if info.filename != _HEADER]
            arrays = {info.filename.removesuffix(".npy"): _array(archive, info) for info in members}
    except FileNotFoundError:
        raise InputError("no such file", file=path, remedy="Check the path.") from None
    except _BROKEN as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise InputError(f"cannot be read ({error.strerror})", file=path) from None
        raise InputError(
            f"is not a {kind} saved by sdretrieval, or is damaged ({error})",
            file=path,
            remedy="Save it again, or check the path.",
        ) from None
    return header, arrays


def put_matrix(arrays: Arrays, name: str, X: Any) -> list[int] | None:
    """A dense or sparse matrix into ``arrays``; its shape where it is sparse, as :func:`get_matrix` wants it."""
    from scipy.sparse import issparse  # topic models and trackers save arrays without scipy

    if not issparse(X):
        arrays[name] = np.asarray(X)
        return None
    for part in ("data", "indices", "indptr"):
        arrays[f"{name}.{part}" if name else part] = getattr(X, part)
    return [int(size) for size in X.shape]


def get_matrix(arrays: Mapping[str, np.ndarray], name: str, shape: list[int] | None) -> Any:
    """The matrix that :func:`put_matrix` put there; ValueError where it is none."""
    from scipy.sparse import csr_matrix  # as above

    if shape is None:
        X = arrays[name]
        if X.ndim != 2 or X.dtype.kind != "f":
            raise ValueError(f"array {name!r} is no matrix of numbers")
        return X
    if not 0 <= shape[1] <= WIDEST:
        raise ValueError(f"matrix {name!r} claims {shape[1]} columns")
    data, indices, indptr = (arrays[f"{name}.{part}" if name else part] for part in ("data", "indices", "indptr"))
    if data.dtype.kind not in "fiu" or not np.isfinite(data).all():
        raise ValueError(f"matrix {name!r} holds what is no finite number")
    X = csr_matrix((data, indices, indptr), shape=tuple(shape))
    X.check_format()
    return X


def check_pointers(ptr: np.ndarray, parts: int, total: int, what: str) -> None:
    """ValueError unless ``ptr`` cuts ``total`` values into so many parts."""
    fits = ptr.shape == (parts + 1,) and ptr.dtype.kind in "iu" and ptr[0] == 0 and ptr[-1] == total
    if not fits or (ptr[1:] < ptr[:-1]).any():
        raise ValueError(f"{what} do not fit together")


def check_indices(indices: np.ndarray, below: int, what: str) -> None:
    """ValueError unless all are whole numbers from 0, below ``below``: compiled loops do not look."""
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise ValueError(f"{what} are no whole numbers")
    if len(indices) and not 0 <= indices.min() <= indices.max() < below:
        raise ValueError(f"{what} have a number that does not exist")


def check_finite(values: np.ndarray, size: int, what: str) -> None:
    """ValueError unless they are so many finite numbers."""
    if values.shape != (size,) or values.dtype.kind not in "fiu" or not np.isfinite(values).all():
        raise ValueError(f"{what} are not {size:,} finite numbers")


def _header(archive: zipfile.ZipFile, path: str | os.PathLike[str], kind: str) -> dict[str, Any]:
    text = _bytes(archive, archive.getinfo(_HEADER)).decode("utf-8", "surrogatepass")
    about = parse_json(text, constants=True)  # a threshold may be infinite
    if not isinstance(about, dict) or not isinstance(about.get("header"), dict):
        raise ValueError("its header is not one of sdretrieval's")
    if not isinstance(about.get("format"), int) or about["format"] > FORMAT:
        raise InputError(
            f"was saved in format {about.get('format')!r} by sdretrieval {about.get('sdretrieval')}; "
            f"this is {__version__}, which reads up to format {FORMAT}",
            file=path,
            remedy="Install a newer sdretrieval.",
        )
    if about.get("kind") != kind:
        raise InputError(f"holds a {about.get('kind')}, expected a {kind}", file=path, remedy="Check the path.")
    return about["header"]


def _bytes(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    if info.compress_type != zipfile.ZIP_STORED:  # a few bytes could unpack to any number
        raise ValueError(f"member {info.filename!r} is compressed")
    return archive.read(info)


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    stream = io.BytesIO(_bytes(archive, info))
    version = np.lib.format.read_magic(stream)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
    shape, columns_first, dtype = read(stream)
    if dtype.kind not in _KINDS:
        raise ValueError(f"array {info.filename!r} holds {dtype}")
    body = stream.getbuffer()[stream.tell() :]
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(body):
        raise ValueError(f"array {info.filename!r} has {len(body)} bytes for shape {shape}")
    flat = np.frombuffer(bytearray(body), dtype) if len(body) else np.zeros(0, dtype)
    return flat.reshape(shape, order="F" if columns_first else "C")
