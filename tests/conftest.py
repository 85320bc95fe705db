"""What every test may ask for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

os.environ["COLUMNS"] = "100"  # tables as wide as on any terminal, also under pytest-xdist
REPOSITORY = Path(__file__).resolve().parent.parent
SHARED_DATA = REPOSITORY.parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real test collections beside the checkout; skips where it is absent."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the real collections of ../shared/data are not on this machine")
    return SHARED_DATA
