#!/usr/bin/env python3
"""Time one gateway: webhooks at a steady rate, and the dashboard's pages over a store as it is after years.

Of the deliveries half are retries and a tenth is forged. The gateway is a process of its own over a Valkey with its
append-only file on and a record store in SQLite, and begins the audits that are asked for meanwhile. Deliveries are
sent when they are due, whether or not those before them were answered: who waits is counted. Afterwards every request,
audit and answer is accounted for.

  scripts/bench_gateway.py
  scripts/bench_gateway.py --deliveries 1000 --per-second 100
  scripts/bench_gateway.py --only pages --postgres postgresql://user:password@127.0.0.1/empty
  scripts/bench_gateway.py --format json

Pages are loaded one after the other over a store of 10^5 audits in SQLite, and over one in PostgreSQL where a database
is named, in which there is nothing and what is written stays.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import hashlib
import hmac
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

import httpx

from benchmarking.machine import machine
from benchmarking.pages import timed_pages
from benchmarking.report import Claim, Figure, as_json, as_text
from benchmarking.servers import process, processor_s, valkey, wait_for
from proctor.runtime.records.requests import RequestState
from proctor.runtime.records.store import Records
from proctor.runtime.settings import Settings

#: What is promised.
MOST_P99_MS: Final = 50.0
_SECRET: Final = "a1b2c3d4e5f6g7h8i9j0"  # noqa: S105, of a server that lives for the run
_FORGED: Final = 0.1
_RETRIES: Final = 0.5
_SUITE: Final = {
    "audit_suite_id": "bench",
    "model_config": {"model_id": "any", "model_version": "sha256:" + "0" * 64, "endpoint": "http://127.0.0.1:9/v1"},
    "dataset_config": {"benchmark_name": "sums", "path": "items.jsonl", "sample_size": 8},
    "perturbation_config": {"perturbation_strategy": "wordings"},
}
_CONNECTIONS: Final = 64


class Delivery(NamedTuple):
    """One to be sent."""

    body: bytes
    headers: dict[str, str]
    forged: bool


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 where a claim fails."""
    options = _parse(arguments)
    with tempfile.TemporaryDirectory(prefix="bench-gateway-") as name:
        figures, claims = list[Figure](), list[Claim]()
        if options.only != "pages":
            figures, claims = _measured(options, Path(name))
        if options.only != "webhooks":
            for database, url in _stores(options, Path(name)).items():
                sizes = {"audits": options.audits, "items": options.items, "rounds": options.rounds}
                folder = Path(name) / database
                folder.mkdir()
                of_pages = timed_pages(folder, database, url, **sizes)
                figures, claims = [*figures, *of_pages[0]], [*claims, *of_pages[1]]
    print((as_json if options.format == "json" else as_text)(machine(["fastapi", "uvicorn"]), figures, claims))
    return 0 if all(claim.holds for claim in claims) else 1


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deliveries", type=int, default=10_000, metavar="N", help="that are sent [10000]")
    parser.add_argument("--per-second", type=float, default=200.0, metavar="N", help="at which they are due [200]")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of their order [1]")
    parser.add_argument("--audits", type=int, default=100_000, metavar="N", help="in the store of the pages [100000]")
    parser.add_argument("--items", type=int, default=1_000_000, metavar="N", help="that they asked [1000000]")
    parser.add_argument("--rounds", type=int, default=40, metavar="N", help="loads of each page [40]")
    parser.add_argument("--postgres", metavar="URL", help="of an empty database, for the pages over PostgreSQL")
    parser.add_argument("--only", choices=("webhooks", "pages"), help="measure these alone")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    options = parser.parse_args(arguments)
    if options.deliveries < 20 or options.per_second <= 0:
        parser.error("--deliveries needs 20 or more, and --per-second a number above 0")
    if options.audits < 200 or options.items < options.audits or options.rounds < 1:
        parser.error("--audits needs 200 or more, --items no less than that, and --rounds 1 or more")
    return options


def _stores(options: argparse.Namespace, folder: Path) -> dict[str, str]:
    """Where the pages' stores are, by their names."""
    stores = {"SQLite": f"sqlite:///{folder / 'pages.sqlite'}"}
    return stores if options.postgres is None else {**stores, "PostgreSQL": options.postgres}


def _measured(options: argparse.Namespace, folder: Path) -> tuple[list[Figure], list[Claim]]:
    home = folder / "home"
    home.mkdir()
    (folder / "items.jsonl").write_text("".join(f'{{"question": "{n} + 1", "answer": "{n + 1}"}}\n' for n in range(8)))
    (folder / "suite.json").write_text(json.dumps(_SUITE))
    rule = {"name": "all", "models": ["*"], "suites": ["suite.json"]}
    (folder / "triggers.json").write_text(json.dumps({"since": "2026-01-01T00:00:00Z", "rules": [rule]}))
    broker, log = valkey(folder), folder / "gateway.log"
    with broker as url:
        settings = Settings(home=home, broker_url=f"{url}/0", ledger_url=f"{url}/1")
        command = [
            sys.executable, "-m", "proctor", "gateway", "--port", "0", "--http", "0", "--log-level", "WARNING",
            "--triggers", str(folder / "triggers.json"),
        ]  # fmt: skip
        variables = {**settings.to_environment(), "PROCTOR_GATEWAY_MLFLOW_SECRETS": _SECRET}
        with process(command, log, variables) as gateway:
            wait_for(lambda: "listens on" in log.read_text(), gateway, log)
            found = re.search(r"serves (\S+?),? ", log.read_text())
            assert found is not None, log.read_text()
            deliveries = _deliveries(options.deliveries, random.Random(options.seed))
            began_s, had_s = time.monotonic(), processor_s(gateway.pid)
            times, statuses = asyncio.run(_sent(f"{found[1]}/v1/webhooks/mlflow", deliveries, options.per_second))
            took_s, used_s = time.monotonic() - began_s, processor_s(gateway.pid) - had_s
            with closing(Records(settings.records_url)) as records:
                wait_for(lambda: not _waiting(records), gateway, log, timeout_s=900)
                begun_s = time.monotonic() - began_s
                requests = records.requests.listed(limit=options.deliveries)
                audits = list(records.each_audit())
    events = len({one.body for one in deliveries if not one.forged})
    wrong = sum(
        count for (forged, status), count in statuses.items() if status != 401 and (forged or status not in (200, 202))
    )
    wrong += statuses[False, 401]
    begun = Counter(one.audit_id for one in requests if one.state is RequestState.STARTED)
    ordered = sorted(times)
    p99_ms = 1000 * ordered[int(0.99 * (len(ordered) - 1))]
    figures = [
        Figure("deliveries that were answered", len(times) / took_s, "a second", f"{len(times):,} in all"),
        Figure("answered, median", 1000 * ordered[len(ordered) // 2], "ms"),
        Figure("answered, 99 of 100", p99_ms, "ms"),
        Figure("answered, longest", 1000 * ordered[-1], "ms"),
        Figure("the gateway's processor time meanwhile", 1000 * used_s / len(times), "ms a delivery"),
        Figure("until every audit was begun", begun_s, "s", f"{len(audits):,} audits"),
    ]
    claims = [
        Claim("99 of 100 answered within, ms", p99_ms, MOST_P99_MS),
        Claim("events that were lost", abs(events - len(requests)) + (events - begun.total()), 0),
        Claim("audits beside one an event", len(audits) - len(begun) + sum(n - 1 for n in begun.values()), 0),
        Claim("deliveries that were answered otherwise than they should", wrong, 0),
    ]
    return figures, claims


def _waiting(records: Records) -> bool:
    return any(one.state is RequestState.REQUESTED for one in records.requests.listed(limit=100_000))


def _deliveries(count: int, chance: random.Random) -> list[Delivery]:
    """Deliveries of which half repeat one before, and a tenth has a wrong signature."""
    sent: list[Delivery] = []
    number = 0
    for _ in range(count):
        draw = chance.random()
        if draw < _FORGED:
            body = _event(chance.randrange(10**9))
            sent.append(Delivery(body, _signed(body, "wrong" * 5, chance), forged=True))
            continue
        earlier = [one for one in sent[-2_000:] if not one.forged] if draw < _FORGED + _RETRIES else []
        if earlier:
            sent.append(chance.choice(earlier))
            continue
        number += 1
        body = _event(number)
        sent.append(Delivery(body, _signed(body, _SECRET, chance), forged=False))
    return sent


def _event(number: int) -> bytes:
    tags = {"proctor.model_digest": f"sha256:{number:064x}"}
    data = {"name": "m", "version": str(number), "source": "s3://b/m", "run_id": None, "tags": tags, "description": ""}
    said = {"entity": "model_version", "action": "created", "timestamp": "2026-11-23T00:00:00+00:00", "data": data}
    return json.dumps(said).encode()


def _signed(body: bytes, secret: str, chance: random.Random) -> dict[str, str]:
    delivery, now = f"{chance.getrandbits(128):032x}", int(time.time())
    content = f"{delivery}.{now}.".encode() + body
    signature = base64.b64encode(hmac.new(secret.encode(), content, hashlib.sha256).digest()).decode()
    return {
        "X-MLflow-Delivery-Id": delivery, "X-MLflow-Timestamp": str(now), "X-MLflow-Signature": f"v1,{signature}",
    }  # fmt: skip


async def _sent(
    url: str, deliveries: Sequence[Delivery], per_s: float
) -> tuple[list[float], Counter[tuple[bool, int]]]:
    """Seconds from when each was due to its answer, and how many of which kind were answered how."""
    times, statuses = list[float](), Counter[tuple[bool, int]]()
    limits = httpx.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS)
    async with httpx.AsyncClient(trust_env=False, limits=limits, timeout=60) as client, asyncio.TaskGroup() as group:
        began_s = time.monotonic()

        async def send(one: Delivery, due_s: float) -> None:
            answer = await client.post(url, content=one.body, headers=one.headers)
            times.append(time.monotonic() - due_s)
            statuses[one.forged, answer.status_code] += 1

        for place, one in enumerate(deliveries):
            due_s = began_s + place / per_s
            await asyncio.sleep(max(0.0, due_s - time.monotonic()))
            group.create_task(send(one, due_s))
    return times, statuses


if __name__ == "__main__":
    sys.exit(main())
