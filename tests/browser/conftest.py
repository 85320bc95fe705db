"""A real headless browser: Debian's chromium, installed where it is absent and may be installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGES = ("chromium", "chromium-driver")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--window-size=1280,900",
)  # fmt: skip


def find_browser() -> tuple[str, str] | None:
    """The browser and its driver, or None."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


def install() -> str | None:
    """Install the packages; the reason where that cannot be done."""
    if shutil.which("apt-get") is None:
        return "chromium is not installed, and there is no apt-get to install it"
    if os.geteuid() != 0:
        return f"chromium is not installed; `apt-get install {' '.join(PACKAGES)}` needs root"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        for command in (["update"], ["install", "-y", "--no-install-recommends", *PACKAGES]):
            subprocess.run(["apt-get", "-q", *command], check=True, timeout=600, env=environment, **quiet)
    except (OSError, subprocess.SubprocessError) as error:
        return f"chromium could not be installed: {error}"
    return None


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    found = find_browser()
    if found is None:
        reason = install()
        found = find_browser()
        if found is None:
            pytest.skip(reason or "chromium was installed but is not on the path")
    chromium, chromedriver = found
    with tempfile.TemporaryDirectory(prefix="sdretrieval-browser-", ignore_cleanup_errors=True) as home:
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for flag in (*FLAGS, f"--user-data-dir={Path(home) / 'profile'}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        # The driver is given by its path: selenium must not go and look for one. HOME: nothing is left behind.
        service = webdriver.ChromeService(chromedriver, env={**os.environ, "HOME": home})
        driver = webdriver.Chrome(options=options, service=service)
        driver.set_page_load_timeout(60)
        driver.set_script_timeout(30)
        try:
            yield driver
        finally:
            driver.quit()
