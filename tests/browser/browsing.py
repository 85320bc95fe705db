"""What tests in a browser do: find, read, look in the dark or on a narrow screen, measure contrast."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import pytest

pytest.importorskip("selenium", reason="selenium is not installed")
import uvicorn
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait


@contextmanager
def serving(app) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none"))
        thread = Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        server.should_exit = True
        thread.join(300)


def look(browser, *, dark: bool = False, width: int = 1280) -> None:
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    still = {"name": "prefers-reduced-motion", "value": "reduce"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme, still]})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def complaints(browser) -> list:
    return [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


def found(page, selector: str) -> list:
    return page.find_elements(By.CSS_SELECTOR, selector)


def one(page, selector: str):
    return page.find_element(By.CSS_SELECTOR, selector)


def text(element) -> str:
    return element.get_property("textContent").strip()


def focused(page):
    return page.switch_to.active_element


def until(page, condition: Callable) -> object:
    redrawn = [StaleElementReferenceException]
    return WebDriverWait(page, 300, 0.02, redrawn).until(lambda page: condition())


def state(page) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(urlsplit(page.current_url).query).items()}


def press(page, *keys: str) -> None:
    for key in keys:
        focused(page).send_keys(key)


def contrasts(page, selectors: list[str]) -> dict[str, float]:
    """The contrast of the first element of each selector with what is behind it; WCAG AA asks for 4.5."""
    return dict(zip(selectors, page.execute_script(_CONTRAST, selectors), strict=True))


_CONTRAST = """
const luminance = (colour) => {
  const c = colour.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];
};
const solid = (e) => {
  for (; e; e = e.parentElement) {
    const c = getComputedStyle(e).backgroundColor;
    if (!/rgba\\(.*, 0\\)/.test(c)) return c;
  }
  return "rgb(255,255,255)";
};
return arguments[0].map((selector) => {
  const e = document.querySelector(selector);
  const a = luminance(getComputedStyle(e).color), b = luminance(solid(e));
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
});
"""
