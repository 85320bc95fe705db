"""What every test may ask for."""

from __future__ import annotations

from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
SHARED_DATA = REPOSITORY.parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real test collections beside the checkout; skips where it is absent."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the real collections of ../shared/data are not on this machine")
    return SHARED_DATA
