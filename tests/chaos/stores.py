"""What the checker reads with: the ledger, the artifacts, the records and the broker, each by its documented format.

Nothing of Proctor is imported here or in the checker. A mistake in the package's own reading can then not hide itself.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import redis

#: The message that comes by itself, every few seconds and for ever.
_TICK = "router.reconcile"
#: More than a stage has positions.
_LOOK_POSITIONS = 10**9


class Planned(NamedTuple):
    """A shard of the plan."""

    position: int
    n_trials: int
    digest: str


class Stage(NamedTuple):
    """One stage of one audit, as it lies in the ledger."""

    plan: dict[str, Planned]
    done: dict[str, str]
    """Shard id → digest of its completions."""
    dead: dict[str, str]
    """Shard id → cause."""
    leased: set[str]
    queued: set[str]
    graded: dict[str, tuple[str, str]]
    """Digest of a shard → digests of the completions that were graded, and of their grades."""
    parts: dict[str, int]
    """Parts `laid` down `of` so many; trials `planned` in them, and `trials` in all."""
    spent: dict[str, int]
    """Trials, input_tokens and output_tokens of what was recorded."""


class Audit(NamedTuple):
    """One audit's row with its decisions."""

    audit_id: str
    state: str
    detail: str
    inputs: dict[str, Any]
    suite: dict[str, Any]
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
            rows = connection.execute(
                "SELECT audit_id, state, detail, inputs, suite FROM audits ORDER BY audit_id"
            ).fetchall()
        return [
            Audit(name, state, detail, json.loads(inputs), json.loads(suite), decided.get(name, []))
            for name, state, detail, inputs, suite in rows
        ]

    def decision_log(self) -> list[tuple[int, str, str]]:
        """Every entry of the decision log, in its order: its number, its text, and the digest that is kept of it."""
        with closing(sqlite3.connect(self._home / "records.sqlite")) as connection:
            return connection.execute("SELECT sequence, entry, digest FROM decision_log ORDER BY sequence").fetchall()

    def stage(self, audit_id: str, stage: str = "answer") -> Stage:
        """One stage of an audit in the ledger."""
        prefix = f"proctor:{{{audit_id}}}:{stage}:"
        client: Any = redis.Redis.from_url(self._ledger_url, decode_responses=True)
        with closing(client) as ledger:
            spent = ledger.hgetall(f"proctor:{{{audit_id}}}:spent").items()
            return Stage(
                plan={shard: _planned(entry) for shard, entry in ledger.hgetall(prefix + "plan").items()},
                done=ledger.hgetall(prefix + "done"),
                dead=ledger.hgetall(prefix + "dead"),
                leased=set(ledger.zrange(prefix + "leases", 0, -1)),
                queued=set(ledger.zrange(prefix + "queue", 0, -1)),
                graded={key: _two(value) for key, value in ledger.hgetall(prefix + "graded").items()},
                parts={key: int(value) for key, value in ledger.hgetall(prefix + "parts").items()},
                spent={key.split(" ")[1]: int(value) for key, value in spent if key.split(" ")[0] == stage},
            )

    def answers(self, audit: Audit) -> Stage:
        """All that the audited model was asked: the stage `answer`, or those before the looks of a sequential audit."""
        if not audit.inputs.get("looks"):
            return self.stage(audit.audit_id)
        names = [f"answer-{number + 1}" for number in range(len(audit.inputs["looks"]))]
        found = [self.stage(audit.audit_id, name) for name in names]
        plan = {
            shard: one._replace(position=number * _LOOK_POSITIONS + one.position)
            for number, stage in enumerate(found)
            for shard, one in stage.plan.items()
        }
        parts, spent = Counter[str](), Counter[str]()
        for stage in found:
            parts.update(stage.parts)
            spent.update(stage.spent)
        return Stage(
            plan,
            {shard: said for stage in found for shard, said in stage.done.items()},
            {shard: cause for stage in found for shard, cause in stage.dead.items()},
            set[str]().union(*(stage.leased for stage in found)),
            set[str]().union(*(stage.queued for stage in found)),
            {shard: grades for stage in found for shard, grades in stage.graded.items()},
            dict(parts),
            dict(spent),
        )

    def held(self) -> list[str]:
        """What the pools hold or want for an audit, and that has not run out by the server's clock."""
        client: Any = redis.Redis.from_url(self._ledger_url, decode_responses=True)
        with closing(client) as ledger:
            seconds, micros = ledger.time()
            now_ms, found = seconds * 1000 + micros // 1000, list[str]()
            for key in ledger.scan_iter("proctor:pool:*:credits", count=1000):
                found += [f"credit {name}" for name in ledger.zrangebyscore(key, f"({now_ms}", "+inf")]
            for key in ledger.scan_iter("proctor:pool:*:wants", count=1000):
                wants = ledger.hgetall(key).items()
                found += [f"want {audit}" for audit, wish in wants if int(wish.split(" ")[2]) > now_ms]
        return found

    def keys(self) -> dict[str, int]:
        """Every key of the ledger, with the seconds that it has to live; -1 for ever."""
        with closing(redis.Redis.from_url(self._ledger_url, decode_responses=True)) as ledger:
            return {key: ledger.ttl(key) for key in ledger.scan_iter(count=1000)}

    def waiting(self) -> list[str]:
        """Task names of the messages that are queued or unacknowledged at the broker, the periodic one left out.

        Nor is one counted that a worker took whose clock was ahead: the broker goes by that clock, and gives it to
        another when that time has come. See `postdated`.
        """
        found, postdated = list[str](), set(self.postdated())
        with closing(redis.Redis.from_url(self._broker_url, decode_responses=True)) as broker:
            unacked: Any = broker.hgetall("unacked")
            found += [_task(json.loads(text)[0]) for tag, text in unacked.items() if tag not in postdated]
            for key in broker.scan_iter(count=1000, _type="LIST"):
                found += [_task(json.loads(text)) for text in broker.lrange(key, 0, -1)]
        return [task for task in found if task != _TICK]

    def postdated(self) -> list[str]:
        """Tags of the unacknowledged messages that were taken in the future."""
        client: Any = redis.Redis.from_url(self._broker_url, decode_responses=True)
        with closing(client) as broker:
            return list(broker.zrangebyscore("unacked_index", f"({broker.time()[0] + 60}", "+inf"))

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

    def training_texts(self, patterns: Sequence[str]) -> list[str]:
        """The texts of the training data that a suite names."""
        files = [path for pattern in patterns for path in sorted((self._home / "suites").glob(pattern))]
        return [json.loads(line)["text"] for path in files for line in path.read_text("utf-8").splitlines()]

    def registered(self) -> list[dict[str, Any]]:
        """What the registry was told, once for each time."""
        path = self._home / "control" / "registry.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _task(message: dict[str, Any]) -> str:
    return str(message.get("headers", {}).get("task") or "an event")


def _planned(entry: str) -> Planned:
    position, n_trials, digest = entry.split(" ")
    return Planned(int(position), int(n_trials), digest)


def _two(entry: str) -> tuple[str, str]:
    completions, grades = entry.split(" ")
    return completions, grades
