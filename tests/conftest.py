"""What every test may ask for."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import brief_java  # noqa: F401
import pytest
from hypothesis import HealthCheck, settings

os.environ["COLUMNS"] = "100"  # tables as wide as on any terminal, also under pytest-xdist
for variable in ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS"):  # Java tells on stderr that it has read them
    os.environ.pop(variable, None)

# A change is judged by the same examples on every machine, however slow or busy: no dice, no deadline, and no complaint
# that drawing takes long. To look for new examples: pytest --hypothesis-profile=explore
settings.register_profile(
    "suite", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=False)
settings.load_profile("suite")

REPOSITORY = Path(__file__).resolve().parent.parent
SHARED_DATA = REPOSITORY.parent / "shared" / "data"


def pytest_collection_finish() -> None:
    """What six thousand tests and their modules are made of stays: garbage is looked for among the rest."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def commands_hear_signals() -> Iterator[None]:
    """What tests start can be interrupted, also under ``nohup`` and in the background of a script.

    There signals come in ignored, and stay so in every program that is started. A handler does not: here it does
    nothing, as before, and a new program starts with the default.
    """
    names = [name for name in ("SIGHUP", "SIGINT", "SIGQUIT") if hasattr(signal, name)]
    ignored = [
        number for number in map(signal.Signals.__getitem__, names) if signal.getsignal(number) == signal.SIG_IGN
    ]
    for number in ignored:
        signal.signal(number, lambda number, frame: None)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real test collections beside the checkout; skips where it is absent."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the real collections of ../shared/data are not on this machine")
    return SHARED_DATA
