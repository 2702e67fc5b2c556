"""A record store as it is after years: many audits of few models, written in bulk as services write them singly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from proctor.domain.backends import Backend
from proctor.domain.card import ContentDigests
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.measure import ItemCounts
from proctor.domain.record.entry import Entry, EntryKind, decision_content, text_digest
from proctor.domain.standing import standing_after
from proctor.domain.suite_problems import parse_suite
from proctor.router.inputs import AuditInputs
from proctor.runtime.records import tables
from proctor.runtime.records.engine import open_engine
from proctor.runtime.records.item_counts import pack
from proctor.runtime.records.standings import row_of
from proctor.runtime.records.store import Records

_MODELS: Final = 200
_SUITES: Final = 500
_BENCHMARKS: Final = 100
#: Between two audits: a hundred thousand are two years.
_APART: Final = timedelta(minutes=10)
#: In memory at a time.
_CHUNK: Final = 2_000
#: Of a hundred audits, by the gate.
_OUTCOMES: Final = ("approve",) * 70 + ("review",) * 20 + ("block",) * 10
_SUITE: Final = {
    "audit_suite_id": "@suite",
    "model_config": {"model_id": "@model", "model_version": "sha256:" + "0" * 64, "endpoint": "http://127.0.0.1:9/v1"},
    "dataset_config": {"benchmark_name": "@benchmark", "path": "items.jsonl", "sample_size": 10},
    "perturbation_config": {"perturbation_strategy": "option_shuffle"},
}


class Filled(NamedTuple):
    """Audits of the store, by what is to be seen of them."""

    decided: str
    waiting: str
    model: str
    suite: str
    benchmark: str
    place: str
    """In the middle of the list, as it stands in an address."""


def fill(url: str, n_audits: int, n_items: int) -> Filled:
    """Fill an empty store with decided audits, and a few that failed.

    Args:
        url: of the store.
        n_audits: audits.
        n_items: items that all of them asked together.
    """
    with closing(Records(url)):
        pass
    engine = open_engine(url)
    rows = _Rows(n_audits, max(1, n_items // n_audits))
    try:
        with engine.begin() as connection:
            connection.execute(tables.ITEM_LISTS.insert(), rows.item_lists())
            for chunk in rows.chunks():
                for table, values in chunk.items():
                    if values:
                        connection.execute(table.insert(), values)
            end = {"sequence": rows.sequence, "digest": rows.digest}
            connection.execute(tables.DECISION_LOG_HEAD.update().values(**end))
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            # As either database does by itself in time.
            connection.exec_driver_sql("ANALYZE" if engine.dialect.name == "sqlite" else "VACUUM ANALYZE")
    finally:
        engine.dispose()
    middle = n_audits // 2
    return Filled(_id(100), _id(95), "org/model-7", "suite-7", "benchmark-7", f"{rows.time(middle)}~{_id(middle)}")


def _id(number: int) -> str:
    return f"{number:016x}-1"


class _Rows:
    """The rows of each table, a chunk at a time."""

    def __init__(self, n_audits: int, items_each: int) -> None:
        self._n, self._items_each = n_audits, items_each
        self._began = datetime.now(UTC).replace(microsecond=0) - n_audits * _APART
        self._suite = parse_suite(json.dumps(_SUITE).replace("@", "at-").encode()).model_dump_json(by_alias=True)
        self._inputs = json.dumps(_inputs().plain(), sort_keys=True)
        self._packed = [pack(_items(f"b{number}", items_each)) for number in range(_BENCHMARKS)]
        self.sequence, self.digest = 0, None

    sequence: int
    digest: str | None

    def time(self, number: int) -> str:
        """When an audit was begun."""
        return (self._began + number * _APART).isoformat(timespec="seconds")

    def item_lists(self) -> list[dict[str, Any]]:
        """The benchmarks' items."""
        return [{"digest": one.item_list, "ids": one.ids} for one in self._packed]

    def chunks(self) -> Iterator[dict[sa.Table, list[dict[str, Any]]]]:
        """Rows by their tables."""
        for first in range(0, self._n, _CHUNK):
            chunk: dict[sa.Table, list[dict[str, Any]]] = {
                table: []
                for table in (
                    tables.AUDITS, tables.DECISIONS, tables.DECISION_LOG, tables.STANDINGS, tables.ACTIONS,
                    tables.AUDIT_MEASURES, tables.ITEM_COUNTS, tables.AUDIT_COSTS,
                )
            }  # fmt: skip
            for number in range(first, min(self._n, first + _CHUNK)):
                self._add(chunk, number)
            yield chunk

    def _add(self, chunk: dict[sa.Table, list[dict[str, Any]]], number: int) -> None:
        audit_id, at, place = _id(number), self.time(number), number % 100
        model, suite = f"org/model-{number % _MODELS}", f"suite-{number % _SUITES}"
        benchmark = number % _BENCHMARKS
        names = {"at-suite": suite, "at-model": model, "at-benchmark": f"benchmark-{benchmark}"}
        text = self._suite
        for word, name in names.items():
            text = text.replace(word, name)
        failed = place == 99
        outcome = _OUTCOMES[(number * 37) % 100] if place != 95 else "block"
        row = {
            "audit_id": audit_id, "subject": audit_id[:-2], "ordinal": 1, "suite": text, "inputs": self._inputs,
            "state": "failed" if failed else "decided", "detail": "the endpoint has not answered" if failed else "",
            "created_at": at, "model_id": model, "suite_id": suite, "submitter": "local",
            "outcome": None if failed else outcome,
        }  # fmt: skip
        chunk[tables.AUDITS].append(row)
        done = {"audit_id": audit_id, "action": "submit", "name": "local", "via": "terminal", "at": at, "detail": "{}"}
        chunk[tables.ACTIONS].append(done)
        if failed:
            return
        digests = {name: text_digest(f"{name}{number % _SUITES}") for name in ("fingerprint", "protocol")}
        weights, report = text_digest(model), text_digest(audit_id)
        event = {
            "auditId": audit_id, "auditSuiteId": suite, "modelId": model, "modelDigest": weights, "outcome": outcome,
            "reasons": [{"code": "clean", "text": "Both upper bounds are within the limits."}], "scope": "wording",
            "fingerprint": digests["fingerprint"], "protocolDigest": digests["protocol"], "reportDigest": report,
            "reportPath": "/elsewhere/report.html", "nItems": self._items_each,
        }  # fmt: skip
        said = json.dumps(event, sort_keys=True)
        chunk[tables.DECISIONS].append({"audit_id": audit_id, "event": said, "decided_at": at})
        entry = Entry(
            sequence=self.sequence + 1, previous=self.digest, time=at, kind=EntryKind.DECISION, audit_id=audit_id,
            content=decision_content(event, decided_at=at, files={}), signer=None, unsigned_because="a benchmark",
        )  # fmt: skip
        written = entry.text()
        self.sequence, self.digest = entry.sequence, text_digest(written)
        logged = {"sequence": self.sequence, "audit_id": audit_id, "entry": written, "digest": self.digest}
        chunk[tables.DECISION_LOG].append(logged)
        standing = standing_after(None, entry)
        assert standing is not None
        # Most were looked at long ago.
        waits = standing.waits and place >= 90
        chunk[tables.STANDINGS].append({**row_of(standing), "waits": waits, "told": self.sequence})
        packed, low = self._packed[benchmark], (number % 37) / 1_000
        figures = {"score": low + 0.02, "score_low": low, "score_high": low + 0.04}
        figures |= {"inflation": low, "inflation_low": low - 0.02, "inflation_high": low + 0.02, "level": 0.95}
        chunk[tables.AUDIT_MEASURES].append(
            {
                "audit_id": audit_id,
                "suite_id": suite,
                "model_id": model,
                "model_digest": weights,
                "benchmark_name": f"benchmark-{benchmark}",
                "benchmark_digest": text_digest(f"b{benchmark}"),
                "content_digest": None,
                "protocol_digest": digests["protocol"],
                "verdict": "clean",
                "outcome": outcome,
                "n_items": self._items_each,
                "submitter": "local",
                "decided_at": at,
                **figures,
            }
        )
        counts = {"audit_id": audit_id, "item_list": packed.item_list, "counts": packed.counts}
        chunk[tables.ITEM_COUNTS].append(counts)
        used = {"trials": 40, "input_tokens": 9_000, "output_tokens": 400, "cost": 0.02}
        unpriced = {"unpriced_trials": 0, "unpriced_input_tokens": 0, "unpriced_output_tokens": 0}
        whose = {"audit_id": audit_id, "month": at[:7], "submitter": "local", "suite_id": suite, "model_id": model}
        chunk[tables.AUDIT_COSTS].append({**whose, **used, **unpriced})


def _inputs() -> AuditInputs:
    endpoint = EndpointSpec(backend=Backend("openai"), url="http://127.0.0.1:9/v1", served_name="m", model_version=None)
    digest = text_digest("any")
    return AuditInputs(
        items=digest, perturbation="option_shuffle", rewordings=None, contents=ContentDigests(dataset=digest),
        endpoint=endpoint, model_digest=digest,
    )  # fmt: skip


def _items(name: str, n: int) -> ItemCounts:
    return ItemCounts(
        item_ids=tuple(f"{name}-{number}" for number in range(n)), canonical=(1,) * n, right=(2,) * n, total=(3,) * n
    )
