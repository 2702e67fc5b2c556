"""What the checker reads with: the ledger, the artifacts, the records and the broker, each by its documented format.

Nothing of Proctor is imported here or in the checker. A mistake in the package's own reading can then not hide itself.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import redis

#: The message that comes by itself, every few seconds and for ever.
_TICK = "router.reconcile"


class Stage(NamedTuple):
    """One stage of one audit, as it lies in the ledger."""

    plan: dict[str, str]
    """Shard id → digest of its trials."""
    done: dict[str, str]
    """Shard id → digest of its completions."""
    dead: dict[str, str]
    """Shard id → cause."""
    leased: set[str]
    queued: set[str]


class Audit(NamedTuple):
    """One audit's row with its decisions."""

    audit_id: str
    state: str
    detail: str
    inputs: dict[str, Any]
    decisions: list[dict[str, Any]]


class Stores:
    """The stores of a run, for reading."""

    def __init__(self, home: Path, broker_url: str, ledger_url: str) -> None:
        self._home, self._broker_url, self._ledger_url = home, broker_url, ledger_url
        self._objects: dict[str, Any] = {}

    def audits(self) -> list[Audit]:
        """Every audit on record."""
        with closing(sqlite3.connect(self._home / "records.sqlite")) as connection:
            decided: dict[str, list[dict[str, Any]]] = {}
            for audit_id, event in connection.execute("SELECT audit_id, event FROM decisions"):
                decided.setdefault(audit_id, []).append(json.loads(event))
            rows = connection.execute("SELECT audit_id, state, detail, inputs FROM audits ORDER BY audit_id").fetchall()
        return [
            Audit(name, state, detail, json.loads(text), decided.get(name, [])) for name, state, detail, text in rows
        ]

    def stage(self, audit_id: str, stage: str = "answer") -> Stage:
        """One stage of an audit in the ledger."""
        prefix = f"proctor:{{{audit_id}}}:{stage}:"
        client: Any = redis.Redis.from_url(self._ledger_url, decode_responses=True)
        with closing(client) as ledger:
            plan = {shard: entry.split(" ")[2] for shard, entry in ledger.hgetall(prefix + "plan").items()}
            return Stage(
                plan,
                ledger.hgetall(prefix + "done"),
                ledger.hgetall(prefix + "dead"),
                set(ledger.zrange(prefix + "leases", 0, -1)),
                set(ledger.zrange(prefix + "queue", 0, -1)),
            )

    def keys(self) -> dict[str, int]:
        """Every key of the ledger, with the seconds that it has to live; -1 for ever."""
        with closing(redis.Redis.from_url(self._ledger_url, decode_responses=True)) as ledger:
            return {key: ledger.ttl(key) for key in ledger.scan_iter(count=1000)}

    def waiting(self) -> list[str]:
        """Task names of the messages that are queued or unacknowledged at the broker, the periodic one left out."""
        found = []
        with closing(redis.Redis.from_url(self._broker_url, decode_responses=True)) as broker:
            found += [_task(json.loads(text)[0]) for text in broker.hvals("unacked")]
            for key in broker.scan_iter(count=1000, _type="LIST"):
                found += [_task(json.loads(text)) for text in broker.lrange(key, 0, -1)]
        return [task for task in found if task != _TICK]

    def document(self, digest: str) -> Any:
        """A JSON document of the artifact store, by the digest that its bytes must have.

        Raises:
            LookupError: it is not there.
            ValueError: its bytes are not what the digest says.
        """
        if digest not in self._objects:
            name = digest.removeprefix("sha256:")
            path = self._home / "artifacts" / name[:2] / f"{name}.z"
            if not path.exists():
                raise LookupError(f"{digest} is not in the artifact store")
            data = zlib.decompress(path.read_bytes())
            if hashlib.sha256(data).hexdigest() != name:
                raise ValueError(f"{digest} holds other bytes")
            self._objects[digest] = json.loads(data)
        return self._objects[digest]

    def forget(self) -> None:
        """Let go of the documents that were read."""
        self._objects.clear()

    def report(self, audit_id: str) -> bytes:
        """An audit's report, as it lies on disk."""
        return (self._home / "reports" / audit_id / "report.json").read_bytes()

    def registered(self) -> list[dict[str, Any]]:
        """What the registry was told, once for each time."""
        path = self._home / "control" / "registry.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _task(message: dict[str, Any]) -> str:
    return str(message.get("headers", {}).get("task") or "an event")
