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
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from PIL import Image
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from proctor.domain.usage import Usage
from proctor.runtime.records.baselines import Baseline
from tests.browser.chromium import DESKTOP, PHONE, chromium, show
from tests.browser.stage import REVIEWER, Stage, stage
from tests.measure_samples import a_measure, counts, decide, digest_of
from tests.support import valkey_server, wait_until

_PAGES: Final = ("audits", "audit", "progress", "signed", "review", "sign", "record")
_SIZES: Final = {"desktop": DESKTOP, "phone": PHONE}
#: Of a page that goes on for longer.
_TALLEST: Final = 1_000
_COLOURS: Final = 48
#: The versions of the model that trends show, by their points of inflation.
_VERSIONS: Final = (0.4, 1.1, 0.2, 0.9, 7.2, 6.5)
_MODEL: Final = "acme/chat-7b"


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
    paths = {page: dashboard.pages[page] for page in _PAGES}
    _take_each(browser, dashboard.url, paths, folder)
    # Afterwards, because what is made up of these has no report to show.
    _take_each(browser, dashboard.url, _with_history(dashboard), folder)


def _take_each(browser: Chrome, url: str, paths: Mapping[str, str], folder: Path) -> None:
    for width, size in _SIZES.items():
        for scheme in ("light", "dark"):
            for page, path in paths.items():
                show(browser, url + path, size, scheme=scheme)
                _save(browser, folder / f"{page}-{width}-{scheme}.png", size)


def _with_history(dashboard: Stage) -> dict[str, str]:
    """Put versions of a model and other models on record; the pages that tell of many audits together."""
    records, month = dashboard.bench.records, datetime.now(UTC).strftime("%Y-%m")
    for number, points in enumerate(_VERSIONS, start=1):
        audit_id = decide(records, a_measure(f"v{number}", points, half=1.6, model_id=_MODEL))
        records.register(audit_id, str(number))
        used = Usage(trials=2_400, input_tokens=410_000 + 9_000 * number, output_tokens=38_000, cost=1.9)
        records.costs.note(audit_id, month, used, submitter="ci", suite_id="suite", model_id=_MODEL)
        if number == 1:
            records.baselines.add(Baseline(audit_id, _MODEL, "suite", _MODEL, "1", "champion", "ci"))
    for number in range(6):
        other = f"acme/model-{number}"
        audit_id = decide(records, a_measure(other, model_id=other), counts((1, 1, 0, 1), (0, 3, 1, 2)))
        used = Usage(trials=1_200, unpriced_trials=1_200, unpriced_input_tokens=200_000, unpriced_output_tokens=9_000)
        records.costs.note(audit_id, month, used, submitter="local", suite_id="suite", model_id=other)
    return {
        "trends": f"/trends?model={_MODEL}",
        "benchmarks": f"/benchmarks/{digest_of('facts')}",
        "costs": f"/costs?month={month}",
    }


def _save(browser: Chrome, path: Path, size: tuple[int, int]) -> None:
    whole: int = browser.execute_script("return document.documentElement.scrollHeight")
    clip = {"x": 0, "y": 0, "width": size[0], "height": min(_TALLEST, max(whole, 300)), "scale": 1}
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    image = Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
    image.quantize(_COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    sys.exit(main())
