"""A change of what stands is written later where the registry is away, and the audit's end is not undone for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor.domain.decision import DecisionOutcome
from proctor.domain.messages import DecisionWritten, Message, WriteDecision
from proctor.registry import tasks
from proctor.runtime.records.audit_state import AuditState
from proctor.runtime.settings import Settings
from tests.standing_audits import DecidedAudits, decided_audits


class Sent(list[tuple[Message, float]]):
    """What the worker sent, and after how long it is to be handled."""

    def send(self, message: Message, *, after_s: float = 0.0) -> None:
        self.append((message, after_s))


@pytest.fixture
def audits(tmp_path: Path) -> Iterator[DecidedAudits]:
    with decided_audits(tmp_path / "home") as opened:
        yield opened


@pytest.fixture
def sent(audits: DecidedAudits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sent:
    """A worker whose registry is a folder that is not there yet."""
    settings = Settings(home=audits.settings.home, registry_uri=(tmp_path / "models").as_uri())
    found = Sent()
    for name, value in (("settings", settings), ("records", audits.records), ("artifacts", audits.artifacts)):
        monkeypatch.setattr(tasks, f"worker_{name}", lambda value=value: value)
    monkeypatch.setattr(tasks, "send", found.send)
    monkeypatch.setattr(tasks, "RETRY_WAITS_S", ())
    monkeypatch.setattr(tasks.write_with_retries, "__defaults__", ((), lambda _: None))
    return found


def test_an_audit_that_waits_for_the_registry_is_told_so_when_an_outage_may_take_no_longer(
    audits: DecidedAudits, sent: Sent
) -> None:
    event = audits.decide("m", DecisionOutcome.BLOCK)
    tasks.write(WriteDecision(event=event))
    # Of 120 s, in which each round takes no time here but the wait for the next.
    for _ in range(8):
        message, wait_s = sent[-1]
        assert wait_s == 15.0
        assert isinstance(message, WriteDecision)
        tasks.write(message)
    message, _ = sent[-1]
    assert len(sent) == 9
    assert isinstance(message, DecisionWritten)
    assert "make or mount it" in str(message.error)
    last = audits.records.versions.last_write(event.audit_id)
    assert last is not None
    assert last.error == message.error


def test_an_ended_audit_is_written_later_with_what_stands_then(
    audits: DecidedAudits, sent: Sent, tmp_path: Path
) -> None:
    event = audits.decide("m", DecisionOutcome.BLOCK)
    audits.records.advance(event.audit_id, AuditState.DECIDED, expected=[AuditState.CREATED])
    waits = []
    for _ in range(6):
        tasks.write(sent[-1][0] if sent else WriteDecision(event=event))  # type: ignore[arg-type]
        waits.append(sent[-1][1])
    assert waits == [60.0, 120.0, 240.0, 480.0, 900.0, 900.0]
    (tmp_path / "models").mkdir()
    tasks.write(sent[-1][0])  # type: ignore[arg-type]
    written, _ = sent[-1]
    assert isinstance(written, DecisionWritten)
    assert written.registry_version == "1" * 12


def test_a_day_later_nobody_asks_any_more_and_what_is_owed_stays_on_record(audits: DecidedAudits, sent: Sent) -> None:
    event = audits.decide("m", DecisionOutcome.BLOCK)
    audits.records.advance(event.audit_id, AuditState.DECIDED, expected=[AuditState.CREATED])
    tasks.write(WriteDecision(event=event, attempt=tasks.MAX_ATTEMPTS))
    assert sent == []
    assert audits.records.versions.last_write(event.audit_id) is not None
