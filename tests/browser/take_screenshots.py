"""Take the screenshots of the dashboard that the documentation shows.

  python -m tests.browser.take_screenshots docs/dashboard

Each page at the width of a desk and of a phone, in light and dark, of a dashboard with made-up audits. Needs Chromium,
and Pillow to write them with few colours.
"""

from __future__ import annotations

import base64
import io
import sys
import tempfile
from pathlib import Path
from typing import Final

from PIL import Image
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser.chromium import DESKTOP, PHONE, chromium, show
from tests.browser.stage import REVIEWER, Stage, stage
from tests.support import valkey_server, wait_until

_PAGES: Final = ("audits", "audit", "progress", "signed", "review", "sign", "record")
_SIZES: Final = {"desktop": DESKTOP, "phone": PHONE}
#: Of a page that goes on for longer.
_TALLEST: Final = 1_000
_COLOURS: Final = 32


def main() -> int:
    """Take them all."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        (home / "stage").mkdir()
        with (
            valkey_server(home) as url,
            stage(home / "stage", url) as dashboard,
            chromium(home / "profile") as browser,
        ):
            _take(browser, dashboard, folder)
    return 0


def _take(browser: Chrome, dashboard: Stage, folder: Path) -> None:
    for width, size in _SIZES.items():
        for scheme in ("light", "dark"):
            show(browser, f"{dashboard.url}/login", size, scheme=scheme)
            _save(browser, folder / f"login-{width}-{scheme}.png", size)
    browser.find_element(By.ID, "token").send_keys(REVIEWER, Keys.ENTER)
    wait_until(lambda: "/audits" in browser.current_url, what="the list of audits")
    show(browser, f"{dashboard.url}/record")
    browser.find_element(By.XPATH, "//button[text()='Verify it now']").click()
    wait_until(lambda: "Intact" in browser.page_source, what="the verified record")
    for width, size in _SIZES.items():
        for scheme in ("light", "dark"):
            for page in _PAGES:
                show(browser, dashboard.url + dashboard.pages[page], size, scheme=scheme)
                _save(browser, folder / f"{page}-{width}-{scheme}.png", size)


def _save(browser: Chrome, path: Path, size: tuple[int, int]) -> None:
    whole: int = browser.execute_script("return document.documentElement.scrollHeight")
    clip = {"x": 0, "y": 0, "width": size[0], "height": min(_TALLEST, max(whole, 300)), "scale": 1}
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    image = Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
    image.quantize(_COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    sys.exit(main())
