"""Prompts and completions go when they are old, and nothing else does: whatever is shared, open or put meanwhile."""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from collections import deque
from collections.abc import Generator, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Self

import pytest
import redis
import sqlalchemy as sa

from proctor.domain.decision import DecisionOutcome
from proctor.domain.errors import BadInputError, StoreError
from proctor.domain.log_origin import ChunkOfItems, LoggedAnswers, LoggedChunk
from proctor.domain.record.sign_off import Verb
from proctor.domain.submitter import LOCAL
from proctor.router.ledger.store import Ledger, PlannedShard
from proctor.router.retention.daily import retain_once, retaining
from proctor.router.retention.forgetting import MIN_RETENTION_DAYS, Forgotten, Period, forget
from proctor.router.retention.kept import KeptDigests
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.runtime.artifacts.objects import REFRESH_AFTER
from proctor.runtime.artifacts.packing import object_name
from proctor.runtime.records.audit_state import AuditState
from proctor.runtime.records.store import Records
from proctor.runtime.settings import Settings
from proctor.runtime.signing import known_keys
from proctor.studies.record.checks import check_store, trust_in
from proctor.studies.review import reviews_of
from tests.hostile.limited import run_limited
from tests.record_samples import a_key, an_event, lay
from tests.support import wait_until

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
OLD = timedelta(days=40)
PERIOD = Period(30)


class Deployment:
    """A record store, a ledger and a folder of artifacts, with audits written by hand."""

    def __init__(self, home: Path, valkey_url: str) -> None:
        self.settings = Settings(
            home=home,
            ledger_url=f"{valkey_url}/6",
            records_url=f"sqlite:///{home}/records.sqlite",
            artifacts=str(home / "a"),
        )
        self.records = Records(self.settings.records_url)
        self.ledger = Ledger(self.settings.ledger_url)
        self.root = home / "a"
        self.store = LocalArtifacts(self.root)

    def put(self, content: Any, age: timedelta = OLD) -> str:
        digest = self.store.put(content if isinstance(content, bytes) else json.dumps(content).encode())
        self.age(digest, age)
        return digest

    def age(self, digest: str, age: timedelta) -> None:
        put = (NOW - age).timestamp()
        os.utime(self.root / object_name(digest), (put, put))

    def there(self, digest: str) -> bool:
        return (self.root / object_name(digest)).exists()

    def audit(
        self,
        name: str,
        state: AuditState,
        *,
        evidence: tuple[str, ...] = (),
        decided: timedelta | None = OLD,
        suite_days: int = 1,
        **inputs: Any,
    ) -> list[str]:
        """An audit whose manifest names evidence; returns the digests of what is to stay of it."""
        chunk, report = self.put({"items": name}), self.put({"report": name})
        stays = [chunk, self.put({"chunks": [chunk]}), self.put({"chunks": [], "summary": self.put({"sum": name})})]
        answered = [
            {"shard": shard, "completions": said} for shard, said in zip(evidence[::2], evidence[1::2], strict=True)
        ]
        manifest = self.put({"items": stays[1], "variants": stays[2], "answered": answered, "dead": []})
        inputs = {"items": stays[1], "variants": stays[2], "manifest": manifest, **inputs}
        suite = json.dumps({"governance": {"result_retention_days": suite_days}})
        record = self.records.create_audit(name, suite, inputs)
        self.records.advance(record.audit_id, state, expected=[AuditState.CREATED])
        if decided is not None and state is AuditState.DECIDED:
            self.records.decide(record.audit_id, {"reportDigest": report})
            stays.append(report)
            at = (NOW - decided).isoformat(timespec="seconds")
            with self.records._engine.begin() as connection:
                connection.execute(
                    sa.text("UPDATE decisions SET decided_at = :at WHERE audit_id = :id"),
                    {"at": at, "id": record.audit_id},
                )
        return [*stays, manifest]

    def forget(self, period: Period = PERIOD, **more: Any) -> Forgotten:
        return deque(forget(self.records, self.ledger, self.store, period, now=NOW, **more), maxlen=1)[0]


@pytest.fixture
def deployment(tmp_path: Path, valkey_url: str) -> Iterator[Deployment]:
    bench = Deployment(tmp_path, valkey_url)
    yield bench
    bench.records.close()
    bench.ledger.close()
    with redis.Redis.from_url(bench.settings.ledger_url) as client:
        client.flushdb()


def evidence_of(bench: Deployment, name: str, age: timedelta = OLD) -> tuple[str, str]:
    return bench.put({"trials": name}, age), bench.put({"completions": name}, age)


def test_a_decided_audit_loses_prompts_and_completions_and_keeps_what_its_report_is_verified_by(
    deployment: Deployment,
) -> None:
    evidence = evidence_of(deployment, "a")
    stays = deployment.audit("a", AuditState.DECIDED, evidence=evidence)
    orphan = deployment.put(b"a completion set that came second")
    found = deployment.forget()
    assert not any(deployment.there(digest) for digest in (*evidence, orphan))
    assert all(deployment.there(digest) for digest in stays)
    assert (found.objects, found.past, found.open) == (3, ["a-1"], 0)
    assert deployment.forget().objects == 0


@pytest.mark.parametrize("state", [AuditState.DECIDED, AuditState.FAILED])
def test_answers_that_came_from_logs_go_when_answers_go_and_no_earlier(
    state: AuditState, deployment: Deployment
) -> None:
    said = deployment.put(LoggedChunk(answers=()).plain())
    index = deployment.put(LoggedAnswers(answered=(ChunkOfItems(item_ids=("q0",), chunk=said),)).plain())
    deployment.audit("a", state, evidence=evidence_of(deployment, "a"), log={"answers": index})
    deployment.forget()
    assert deployment.there(said) is (state is AuditState.FAILED)


def test_a_dry_run_says_the_same_and_removes_nothing(deployment: Deployment) -> None:
    evidence = evidence_of(deployment, "a")
    deployment.audit("a", AuditState.DECIDED, evidence=evidence)
    seen = deployment.forget(dry_run=True)
    assert all(deployment.there(digest) for digest in evidence)
    assert seen == deployment.forget()
    assert seen.n_bytes > 0


@pytest.mark.parametrize(
    ("decided", "suite_days", "override", "goes"),
    [(29, 1, False, False), (31, 1, False, True), (31, 35, False, False), (31, 35, True, True), (36, 35, False, True)],
)
def test_the_longer_of_the_operators_and_the_suites_period_counts_from_the_decision(
    deployment: Deployment, decided: int, suite_days: int, override: bool, goes: bool
) -> None:
    evidence = evidence_of(deployment, "a")
    deployment.audit("a", AuditState.DECIDED, evidence=evidence, decided=timedelta(days=decided), suite_days=suite_days)
    found = deployment.forget(Period(30, override_suites=override))
    assert deployment.there(evidence[0]) is not goes
    assert found.held_by_suites == (decided > 30 and not goes)


def test_what_two_audits_share_goes_when_both_may_lose_it(deployment: Deployment) -> None:
    shared = evidence_of(deployment, "shared")
    deployment.audit("a", AuditState.DECIDED, evidence=shared)
    deployment.audit("b", AuditState.DECIDED, evidence=shared, decided=timedelta(days=29))
    deployment.forget()
    assert all(deployment.there(digest) for digest in shared)
    deployment.forget(Period(28))
    assert not any(deployment.there(digest) for digest in shared)


@pytest.mark.parametrize("state", [state for state in AuditState if not state.final])
def test_an_audit_that_is_not_at_its_end_keeps_everything(deployment: Deployment, state: AuditState) -> None:
    evidence, said = evidence_of(deployment, "a"), evidence_of(deployment, "b")
    rewrites = deployment.put({"answered": [{"shard": said[0], "completions": said[1]}], "dead": []})
    prompts = deployment.put({"trials": ["prompts"]})
    in_ledger = [deployment.put({"ledger": number}) for number in range(3)]
    stays = deployment.audit(
        "a", state, evidence=evidence, rewrites=rewrites, rewriting={"number": 1, "prompts": prompts}
    )
    deployment.ledger.plan("a-1", "answer", [PlannedShard("s", 32, in_ledger[0], 0)])
    deployment.ledger.lease("a-1", "answer", ["s"])
    deployment.ledger.record("a-1", "answer", "s", in_ledger[1])
    deployment.ledger.note_graded("a-1", "answer", {in_ledger[0]: (in_ledger[1], in_ledger[2])})
    assert deployment.forget().open == 1
    assert all(deployment.there(digest) for digest in (*stays, *evidence, *said, rewrites, prompts, *in_ledger))


def test_a_cancelled_audit_loses_what_is_old(deployment: Deployment) -> None:
    old, new = evidence_of(deployment, "old"), evidence_of(deployment, "new", timedelta(days=29))
    deployment.audit("a", AuditState.CANCELLED, evidence=(*old, *new))
    deployment.forget()
    assert [deployment.there(digest) for digest in (*old, *new)] == [False, False, True, True]


def test_nothing_is_removed_while_a_store_or_an_audit_cannot_be_read(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    orphan = deployment.put(b"orphan")
    stays = deployment.audit("a", AuditState.ANSWERING)
    away = Ledger("redis://127.0.0.1:1/0")
    with pytest.raises(StoreError, match="did not answer"):
        list(forget(deployment.records, away, deployment.store, PERIOD, now=NOW))
    away.close()
    manifest = deployment.root / object_name(stays[-1])
    whole = manifest.read_bytes()
    manifest.write_bytes(b"damaged")
    with pytest.raises(StoreError, match=f"{stays[-1]}.*damaged"):
        deployment.forget()
    manifest.write_bytes(whole)
    with deployment.records._engine.begin() as connection:
        connection.execute(sa.text("UPDATE audits SET inputs = '[1'"))
    with pytest.raises(StoreError, match="audit a-1 cannot be read"):
        deployment.forget()
    assert deployment.there(orphan)


def test_a_state_of_a_later_version_is_taken_for_one_that_goes_on(deployment: Deployment) -> None:
    evidence = evidence_of(deployment, "a")
    deployment.audit("a", AuditState.DECIDED, evidence=evidence)
    with deployment.records._engine.begin() as connection:
        connection.execute(sa.text("UPDATE audits SET state = 'notarising'"))
    deployment.forget()
    assert deployment.there(evidence[0])


@pytest.mark.parametrize("days", [0, -1, MIN_RETENTION_DAYS - 1, 10**9])
def test_a_period_in_which_an_interrupted_audit_could_go_on_is_refused(days: int) -> None:
    with pytest.raises(BadInputError, match="out of range"):
        Period(days)


def test_a_clock_that_is_ahead_makes_nothing_old(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    young = deployment.store.put(b"just put, and not on record yet")

    class Ahead(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return super().now(tz) + timedelta(days=400)

    monkeypatch.setattr("proctor.router.retention.forgetting.datetime", Ahead)
    deque(forget(deployment.records, deployment.ledger, deployment.store, PERIOD), maxlen=1)
    assert deployment.there(young)


def test_what_a_writer_that_died_left_behind_goes_after_a_day_and_foreign_files_stay(deployment: Deployment) -> None:
    folder = (deployment.root / object_name(deployment.put(b"x"))).parent
    left, new = folder / f".{'ab' * 32}.z.{'0' * 16}", folder / f".{'ab' * 32}.z.{'1' * 16}"
    foreign = [folder / "notes.txt", folder / f"{'ab' * 32}.z", deployment.root / "README"]
    for path in (left, new, *foreign):
        path.write_bytes(b"half")
        os.utime(path, ((NOW - OLD).timestamp(),) * 2)
    os.utime(new, ((NOW - timedelta(hours=23)).timestamp(),) * 2)
    found = deployment.forget()
    assert (found.objects, found.left_behind) == (2, 1)
    assert not left.exists()
    assert new.exists()
    assert all(path.exists() for path in foreign if path.parent.name != path.name[:2])


# The race: what a sweep has chosen is put again, by an audit that found it there and relies on it from then on.


def test_what_is_put_again_after_it_was_marked_stays(deployment: Deployment) -> None:
    orphans = [deployment.put(b"orphan %d" % number) for number in range(50)]
    deployment.audit("a", AuditState.DECIDED)
    steps = forget(deployment.records, deployment.ledger, deployment.store, PERIOD, now=NOW)
    next(steps)
    # All audits are marked. Now another begins, and has a prompt in common with one that is long gone.
    deployment.store.put(b"orphan 7")
    assert deque(steps, maxlen=1)[0].objects == 49
    assert deployment.there(orphans[7])


def test_what_is_put_again_after_it_was_listed_stays(deployment: Deployment) -> None:
    orphan = deployment.put(b"orphan")
    (batch,) = deployment.store.objects()
    deployment.store.put(b"orphan")
    assert deployment.store.take_out(batch, NOW - timedelta(days=30)) == []
    assert deployment.there(orphan)


def test_between_the_last_look_at_an_object_and_its_end_nobody_puts_it_again(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = deployment.put(b"orphan")
    (batch,) = deployment.store.objects()
    unlink, putting = Path.unlink, threading.Thread(target=lambda: deployment.store.put(b"orphan"))

    def unlink_later(path: Path, missing_ok: bool = False) -> None:
        # The look has found it old. Whoever puts it now either waits, or would be told that it is there.
        putting.start()
        putting.join(0.3)
        assert putting.is_alive()
        unlink(path, missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", unlink_later)
        assert len(deployment.store.take_out(batch, NOW - timedelta(days=30))) == 1
    putting.join(10)
    assert deployment.store.get(digest) == b"orphan"


def test_putting_and_taking_out_at_once_never_loses_what_was_put(tmp_path: Path) -> None:
    store, stop, rounds = LocalArtifacts(tmp_path), threading.Event(), 0
    put_before = datetime.now(UTC) - timedelta(days=30)

    def sweep() -> None:
        while not stop.is_set():
            for batch in store.objects():
                store.take_out(batch, put_before)

    sweeper = threading.Thread(target=sweep)
    sweeper.start()
    try:
        until_s = time.monotonic() + 1.0
        while time.monotonic() < until_s:
            digest = store.put(b"%d" % (rounds % 3))
            assert store.get(digest) == b"%d" % (rounds % 3)
            os.utime(tmp_path / object_name(digest), (1, 1))
            rounds += 1
    except StoreError as error:
        pytest.fail(f"round {rounds}: {error}")
    finally:
        stop.set()
        sweeper.join()
    assert rounds > 50


def test_an_object_is_made_new_by_putting_it_again_only_when_it_is_a_day_old(tmp_path: Path) -> None:
    store = LocalArtifacts(tmp_path)
    path = tmp_path / object_name(store.put(b"x"))
    young, old = time.time() - REFRESH_AFTER.total_seconds() + 60, time.time() - REFRESH_AFTER.total_seconds() - 60
    for put, expected in ((young, young), (old, None)):
        os.utime(path, (put, put))
        store.put(b"x")
        assert path.stat().st_mtime == pytest.approx(expected or time.time(), abs=5)


def test_a_store_that_cannot_be_locked_is_swept_all_the_same(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    orphan = deployment.put(b"orphan")
    assert deployment.forget().objects == 1
    assert not deployment.there(orphan)
    deployment.store.put(b"orphan")


# Memory and interruption.


def test_a_filter_never_forgets_and_seldom_errs() -> None:
    digests = [f"sha256:{number:032x}{number * 0x9E3779B97F4A7C15 % (1 << 128):032x}" for number in range(20_000)]
    kept = KeptDigests(bits=1 << 20)
    for digest in digests[::2]:
        kept.add(digest)
    assert all(digest in kept for digest in digests[::2])
    assert sum(digest in kept for digest in digests[1::2]) < 100


def test_a_run_that_is_broken_off_is_gone_on_with(deployment: Deployment) -> None:
    for number in range(300):
        deployment.put(b"orphan %d" % number)
    steps = forget(deployment.records, deployment.ledger, deployment.store, PERIOD, now=NOW)
    first = next(step.objects for step in steps if step.objects)
    assert isinstance(steps, Generator)
    steps.close()
    assert 0 < first < 300
    assert deployment.forget().objects == 300 - first


MANY = """
import sys, time
from datetime import datetime, timedelta, UTC
from proctor.router.retention.forgetting import Period, forget
from proctor.runtime.artifacts.objects import StoredObject
from proctor.runtime.records.audit_state import AuditOnRecord
import hashlib, json, resource
N = 100_000
def name(n):
    h = hashlib.sha256(b"%d" % n).hexdigest(); return f"{h[:2]}/{h}.z"
class Store:
    def get(self, digest):
        part = int(digest[-4:], 16)
        return json.dumps({"chunks": ["sha256:" + name(n)[3:-2] for n in range(part * 100, part * 100 + 100)]}).encode()
    def objects(self):
        for start in range(0, N, 1000):
            yield [StoredObject(name(n), 1000, datetime(2020, 1, 1, tzinfo=UTC)) for n in range(start, start + 1000)]
    def take_out(self, objects, before):
        return objects
class Records:
    def each_audit(self):
        for n in range(500):
            yield AuditOnRecord(f"a-{n}", "{}", json.dumps({"items": "sha256:" + f"{n:064x}"}), "decided", "{}",
                                "2020-01-01T00:00:00+00:00")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for seen in forget(Records(), None, Store(), Period(30), now=datetime(2026, 1, 1, tzinfo=UTC)):
    pass
print(seen.objects, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_memory_does_not_grow_with_the_store() -> None:
    ran = run_limited(MANY, timeout_s=60)
    assert ran.returncode == 0, ran.stderr
    objects, grown_mib = map(int, ran.stdout.split())
    assert 49_900 <= objects <= 50_000
    assert grown_mib < 64


def test_one_router_of_a_deployment_does_it_once_a_day(deployment: Deployment) -> None:
    stop = threading.Event()
    os.utime(deployment.root / object_name(deployment.store.put(b"orphan")), (1, 1))
    first = retain_once(deployment.settings, PERIOD, stop)
    assert first is not None
    assert first.objects == 1
    assert retain_once(deployment.settings, PERIOD, stop) is None
    with redis.Redis.from_url(deployment.settings.ledger_url) as client:
        (key,) = client.keys("*")
        assert 0 < client.pttl(key) < 24 * 3600 * 1000


def test_a_turn_that_fails_or_is_broken_off_is_anybodys(deployment: Deployment) -> None:
    deployment.audit("a", AuditState.ANSWERING)
    stop = threading.Event()
    with deployment.records._engine.begin() as connection:
        connection.execute(sa.text("UPDATE audits SET inputs = '[1'"))
    with pytest.raises(StoreError):
        retain_once(deployment.settings, PERIOD, stop)
    with deployment.records._engine.begin() as connection:
        connection.execute(sa.text("UPDATE audits SET inputs = '{}'"))
    stop.set()
    assert retain_once(deployment.settings, PERIOD, stop) is not None
    assert retain_once(deployment.settings, PERIOD, threading.Event()) is not None


def test_a_suite_s_own_period_takes_effect_by_itself_in_a_running_deployment(deployment: Deployment) -> None:
    assert deployment.settings.retention_days is None
    short, long = evidence_of(deployment, "short"), evidence_of(deployment, "long")
    orphan = deployment.put(b"a completion set that came second")
    stays = deployment.audit("short", AuditState.DECIDED, evidence=short, suite_days=30)
    deployment.audit("long", AuditState.DECIDED, evidence=long, suite_days=365)
    with retaining(deployment.settings):
        wait_until(lambda: not any(deployment.there(digest) for digest in (*short, orphan)))
    assert all(deployment.there(digest) for digest in (*long, *stays))


@pytest.mark.parametrize(("suite_days", "goes"), [(41, False), (39, True), (1, True)])
def test_by_the_suites_alone_nothing_goes_before_the_first_is_past_its_period(
    deployment: Deployment, suite_days: int, goes: bool
) -> None:
    evidence, orphan = evidence_of(deployment, "a"), deployment.put(b"orphan")
    deployment.audit("a", AuditState.DECIDED, evidence=evidence, suite_days=suite_days)
    deployment.audit("b", AuditState.CANCELLED, evidence=evidence_of(deployment, "b"), suite_days=365)
    found = deployment.forget(Period(None))
    assert found.past == (["a-1"] if goes else [])
    assert deployment.there(evidence[0]) is not goes
    assert deployment.there(orphan) is not goes


def test_a_cancelled_audit_keeps_what_it_asked_for_its_suite_s_period_from_its_submission(
    deployment: Deployment,
) -> None:
    evidence = evidence_of(deployment, "a")
    deployment.audit("a", AuditState.CANCELLED, evidence=evidence, suite_days=30)
    deployment.forget(Period(None))
    assert all(deployment.there(digest) for digest in evidence)
    with deployment.records._engine.begin() as connection:
        at = (NOW - timedelta(days=31)).isoformat(timespec="seconds")
        connection.execute(sa.text("UPDATE audits SET created_at = :at"), {"at": at})
    deployment.forget(Period(None))
    assert not any(deployment.there(digest) for digest in evidence)


def test_the_record_is_intact_after_prompts_and_completions_have_gone(deployment: Deployment) -> None:
    home, report = deployment.settings.home, b'{"report":"document"}'
    evidence = evidence_of(deployment, "a")
    stays = deployment.audit("a", AuditState.DECIDED, evidence=evidence, decided=None, suite_days=30)
    stays.append(deployment.put(report))
    event = an_event("a-1", report)
    assert deployment.records.decide("a-1", event, files={"report.json": event["reportDigest"]}, key=a_key())
    lay(home / "reports" / "a-1", "report.json", report)
    reviews_of(deployment.settings, deployment.records, lambda message: None).sign(
        "a-1", Verb.REJECT, DecisionOutcome.BLOCK, LOCAL, "Looked.", "QA-1"
    )
    later = datetime.now(UTC) + timedelta(days=31)
    gone = deque(forget(deployment.records, deployment.ledger, deployment.store, Period(None), now=later), maxlen=1)[0]
    assert gone.past == ["a-1"]
    assert not any(deployment.there(digest) for digest in evidence)
    assert all(deployment.there(digest) for digest in stays)
    trust = trust_in([a_key().signer, *known_keys(home, None)])
    checked = check_store(deployment.records, deployment.store, home, trust)
    assert (checked.findings, checked.entries, checked.reports) == ((), 2, 1)


@pytest.mark.parametrize("text", ["a week", "-30", "30.5", "٣٠"])
def test_a_setting_that_is_no_number_of_days_is_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="PROCTOR_RETENTION_DAYS"):
        Settings.from_environment({"PROCTOR_RETENTION_DAYS": text})


def test_workers_get_the_setting_of_their_stack() -> None:
    for days, text in ((None, ""), (90, "90")):
        settings = Settings.from_environment({"PROCTOR_RETENTION_DAYS": text})
        assert settings.retention_days == days
        assert Settings.from_environment(settings.to_environment()) == settings
