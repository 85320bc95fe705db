"""A tiny dated collection served, and the same one with more after a ceiling."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from served_collection import LATER, OTHER_LATER, PAST, write_index
from starlette.testclient import TestClient

from sdretrieval import Index
from sdretrieval.serve.app import make_app
from sdretrieval.serve.workers import Workers


@pytest.fixture(scope="session")
def path(tmp_path_factory) -> Path:
    return write_index(tmp_path_factory.mktemp("served"), PAST + LATER)


@pytest.fixture(scope="session")
def other_path(tmp_path_factory) -> Path:
    """The same before the ceiling, in another order and among other documents."""
    mixed = OTHER_LATER + PAST[::-1]
    random.Random(4).shuffle(mixed)
    return write_index(tmp_path_factory.mktemp("other"), mixed)


@pytest.fixture(scope="session")
def index(path) -> Index:
    return Index(path)


def served(*indexes: Index, **given) -> AbstractContextManager[TestClient]:
    app = make_app(indexes, **{"workers": Workers(seconds=300), **given})  # compiling takes its time
    return TestClient(app, base_url="http://127.0.0.1:8080", raise_server_exceptions=False)


@pytest.fixture(scope="session")
def client(index) -> Iterator[TestClient]:
    with served(index) as client:
        yield client


@pytest.fixture(scope="session")
def serving() -> Callable[..., AbstractContextManager[TestClient]]:
    """``with serving(index, token=…) as client``."""
    return served
