"""How quickly the dashboard's pages come from a gateway over a store as it is after years."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import Final

import httpx

from benchmarking.filled_records import Filled, fill
from benchmarking.report import Claim, Figure
from benchmarking.servers import process, valkey, wait_for
from proctor.runtime.settings import Settings

#: What is promised.
MOST_PAGE_MS: Final = 200.0
#: Loads of a page before those that count.
_NOT_COUNTED: Final = 2
_TOKEN: Final = "proctor-benchmark-token-of-this-run"  # noqa: S105, of a server that lives for the run


def timed_pages(
    folder: Path, name: str, records_url: str, *, audits: int, items: int, rounds: int
) -> tuple[list[Figure], list[Claim]]:
    """Fill a store and time each page over it.

    Args:
        folder: for what the gateway writes.
        name: of the database, in figures and claims.
        records_url: of a store that is empty.
        audits: that it is to hold.
        items: that they asked.
        rounds: loads of each page that count.
    """
    began_s = time.perf_counter()
    filled = fill(records_url, audits, items)
    figures = [Figure(f"{name}: filling the store", time.perf_counter() - began_s, "s", f"{audits:,} audits")]
    slowest_ms, log = 0.0, folder / f"gateway-{name}.log"
    with valkey(folder) as url:
        settings = Settings(home=folder, records_url=records_url, broker_url=f"{url}/0", ledger_url=f"{url}/1")
        command = [sys.executable, "-m", "proctor", "gateway", "--port", "0", "--http", "0", "--log-level", "WARNING"]
        with process(command, log, {**settings.to_environment(), "PROCTOR_GATEWAY_TOKEN": _TOKEN}) as gateway:
            wait_for(lambda: "listens on" in log.read_text(), gateway, log)
            found = re.search(r"serves (https?://[\w.:\[\]]+)", log.read_text())
            assert found is not None, log.read_text()
            headers = {"Authorization": f"Bearer {_TOKEN}"}
            with httpx.Client(base_url=found[1], headers=headers, trust_env=False, timeout=60) as client:
                for page, path in _paths(filled).items():
                    for _ in range(_NOT_COUNTED):
                        _load_ms(client, path)
                    times = sorted(_load_ms(client, path) for _ in range(rounds))
                    p95_ms = times[int(0.95 * (len(times) - 1))]
                    slowest_ms = max(slowest_ms, p95_ms)
                    figures.append(
                        Figure(f"{name}: {page}", times[len(times) // 2], "ms", f"95 of 100 {p95_ms:.0f} ms")
                    )
    return figures, [Claim(f"every page over {name}, 95 of 100 within, ms", slowest_ms, MOST_PAGE_MS)]


def _load_ms(client: httpx.Client, path: str) -> float:
    began_s = time.perf_counter()
    answer = client.get(path)
    took_ms = 1_000 * (time.perf_counter() - began_s)
    assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text[-300:]}"
    return took_ms


def _paths(filled: Filled) -> dict[str, str]:
    return {
        "list of audits": "/audits",
        "list, in its middle": f"/audits?before={filled.place.replace('+', '%2B')}",
        "list, of a state": "/audits?state=failed",
        "list, of an outcome": "/audits?outcome=block",
        "list, of a model": f"/audits?model={filled.model}",
        "list, all filters, nothing found": f"/audits?model={filled.model}&suite=suite-8&state=failed&outcome=block",
        "an audit": f"/audits/{filled.decided}",
        "review queue": "/review",
        "sign-off": f"/audits/{filled.waiting}/review",
        "record": "/record",
        "trends": f"/trends?model={filled.model}",
        "benchmarks": "/benchmarks",
        "a benchmark": f"/benchmarks/{filled.benchmark}",
        "costs": "/costs",
    }
