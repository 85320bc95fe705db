"""Programs that tests need and pip does not have: Debian's packages, installed where that may be done.

``python tests/packages.py`` installs them beforehand, while pip is at work: it needs Python's own library alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # before anything is installed

from sdretrieval.core.errors import JavaError
from sdretrieval.core.jvm import JavaRuntime, find_spark_java

T = TypeVar("T")


def browser() -> tuple[tuple[str, str] | None, str]:
    """Chromium and its driver, or None and why there is none."""
    return _found_or_installed("chromium", _find_browser, "chromium", "chromium-driver")


def java_for_spark() -> tuple[JavaRuntime | None, str]:
    return _found_or_installed("a Java for Spark", _find_java, "openjdk-17-jre-headless")


def _find_browser() -> tuple[str, str] | None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


def _find_java() -> JavaRuntime | None:
    try:
        return find_spark_java()
    except JavaError:
        return None


def _found_or_installed(name: str, find: Callable[[], T | None], *packages: str) -> tuple[T | None, str]:
    """What ``find`` finds, after an attempt to install it if need be; or None and the reason.

    One attempt for all processes of a run of pytest-xdist: they must come to the same end, or they would skip
    different tests; and where there is no network, nobody waits for it twice.
    """
    found = find()
    if found is not None:
        return found, ""
    if shutil.which("apt-get") is None:
        return None, f"{name} is not installed, and there is no apt-get to install it"
    if os.geteuid() != 0:
        return None, f"{name} is not installed; `apt-get install {' '.join(packages)}` needs root"
    import fcntl

    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    attempt = f"{os.environ.get('PYTEST_XDIST_TESTRUNUID', os.getpid())} {name}"
    with open(Path(tempfile.gettempdir()) / "sdretrieval-apt.lock", "a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        found = find()
        if found is not None:
            return found, ""
        lock.seek(0)
        if attempt in lock.read().splitlines():
            return None, f"{name} could not be installed"
        try:
            for command in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
                subprocess.run(["apt-get", "-q", *command], check=True, timeout=600, env=environment, **quiet)
            found = find()
            reason = f"{name} was installed, but is not where it is looked for"
        except (OSError, subprocess.SubprocessError) as error:
            reason = f"{name} could not be installed: {error}"
        if found is None:
            lock.write(f"{attempt}\n")
    return found, reason


if __name__ == "__main__":
    for found, reason in (java_for_spark(), browser()):
        if found is None:
            print(f"tests that need it are skipped: {reason}")
