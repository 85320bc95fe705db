"""A real headless browser: Debian's chromium, installed where it is absent and may be installed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import packages
import pytest

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
    *("--hide-scrollbars", "--window-size=1280,900"),
)


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    found, reason = packages.browser()
    if found is None:
        pytest.skip(reason)
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
        driver.set_page_load_timeout(110)  # selenium itself waits for two minutes
        driver.set_script_timeout(110)
        try:
            yield driver
        finally:
            driver.quit()
