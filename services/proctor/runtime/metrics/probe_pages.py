"""Pages for probes, `/livez` and `/readyz`, beside a process' metrics: 200, or 503 with the reason; no token."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from proctor.runtime.metrics.server import Application

LIVEZ: Final = "/livez"
READYZ: Final = "/readyz"
#: For which an answer is good: probes of anybody must not wear out the stores.
_FRESH_S: Final = 1.0


def probe_page(look: Callable[[], str | None], *, fresh_s: float = _FRESH_S) -> Application:
    """A page that says what a look finds wrong, for whoever asks; one look answers all that ask within a second.

    Args:
        look: says what is wrong; None where nothing is. Called by one thread at a time.
        fresh_s: for how long what it found is said again.
    """
    lock = threading.Lock()
    seen: tuple[float, str | None] = (float("-inf"), None)

    def page(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        nonlocal seen
        del environ
        with lock:
            if time.monotonic() - seen[0] > fresh_s:
                wrong = look()
                seen = time.monotonic(), wrong
            wrong = seen[1]
        start_response("200 OK" if wrong is None else "503 Service Unavailable", [("Content-Type", "text/plain")])
        return [f"{wrong or 'ok'}\n".encode()]

    return page
