"""A headless Chromium for tests and for the documentation's screenshots."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from tests.support import missing

DESKTOP, PHONE, NARROW_PHONE = (1280, 800), (390, 844), (360, 740)


@contextmanager
def chromium(profile: Path) -> Iterator[Chrome]:
    """The browser, with a profile of its own, for as long as the block lasts."""
    binary = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        missing("Chromium or its driver is not installed: apt-get install chromium chromium-driver")
    options = ChromeOptions()
    options.binary_location = binary
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
        "--disable-component-update", "--disable-sync", "--no-first-run", "--hide-scrollbars",
        f"--user-data-dir={profile}",
    ):  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = Chrome(options=options, service=Service(driver))
    try:
        yield chrome
    finally:
        chrome.quit()


def show(browser: Chrome, url: str, size: tuple[int, int] = DESKTOP, *, scheme: str = "light") -> None:
    """Load a page at a size and in a colour scheme; what was logged before is forgotten."""
    look_as(browser, size, scheme=scheme)
    for kind in ("browser", "performance"):
        log_of(browser, kind)
    browser.get(url)


def look_as(browser: Chrome, size: tuple[int, int], *, scheme: str = "light") -> None:
    """Show pages at a size and in a colour scheme from now on."""
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size != DESKTOP},
    )
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )


def log_of(browser: Chrome, kind: str) -> list[dict[str, Any]]:
    """What was logged since the last look."""
    entries: list[dict[str, Any]] = browser.get_log(kind)  # type: ignore[no-untyped-call]
    return entries


def requested(browser: Chrome) -> list[str]:
    """The addresses that were asked for since the last look."""
    events = [json.loads(entry["message"])["message"] for entry in log_of(browser, "performance")]
    return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
