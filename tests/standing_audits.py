"""Audits that are on record with a decision, for whoever writes it somewhere, or checks what was written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from proctor.domain.canonical import bytes_digest, canonical_json
from proctor.domain.decision import DecisionEvent, DecisionOutcome, Reason
from proctor.domain.registered_version import RegistryKind
from proctor.domain.scope import Scope
from proctor.registry.standing_record import Sources
from proctor.registry.tasks import write_with_retries
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.runtime.records.requests import NewRequest
from proctor.runtime.records.store import Records
from proctor.runtime.settings import Settings
from proctor.runtime.signing import open_signing_key

#: The page of each report, and what its report says of the Contamination Score.
PAGE = b"<!doctype html><title>A report</title>"
SCORE = {"value": 0.1451, "low": 0.1131, "high": 0.1764, "level": 0.95, "method": "fieller"}


def sha(digit: str) -> str:
    """A digest of one digit."""
    return "sha256:" + digit * 64


class DecidedAudits:
    """A home with a record of audits, and what may be asked of it."""

    def __init__(self, home: Path, records: Records, *, dashboard_url: str | None = None) -> None:
        self.settings = Settings(home=home)
        self.records = records
        self.artifacts = LocalArtifacts(Path(self.settings.artifacts))
        self.now = datetime.now(UTC)
        self.sources = Sources(records, self.artifacts, dashboard_url, lambda: self.now)
        self.key = open_signing_key(home, None)

    def decide(
        self,
        model_id: str,
        outcome: DecisionOutcome,
        *,
        suite: str = "facts",
        weights: str = "1",
        protocol: str = "3",
        text: str = "It is so.",
        scope: Scope | None = Scope.WORDING,
        request: str | None = None,
        subject: str | None = None,
        score: Mapping[str, Any] | None = SCORE,
    ) -> DecisionEvent:
        """Put an audit with its decision on record; its event."""
        audit = self.records.create_audit(
            subject or f"{suite}-{weights}", f'{{"audit_suite_id": "{suite}"}}', {}, request=request
        )
        perturbation = None if score is None else {"contamination_score": score}
        document = canonical_json({"audit": audit.audit_id, "evidence": {"perturbation": perturbation}})
        event = DecisionEvent(
            audit_id=audit.audit_id,
            audit_suite_id=suite,
            model_id=model_id,
            model_digest=sha(weights),
            outcome=outcome,
            reasons=(Reason(code="because", text=text),),
            fingerprint=sha("2"),
            protocol_digest=sha(protocol),
            report_digest=self.artifacts.put(document),
            report_path=f"reports/{audit.audit_id}/report.html",
            n_items=600,
            scope=scope,
        )
        files = {"report.json": event.report_digest, "report.html": self.artifacts.put(PAGE)}
        assert self.records.decide(audit.audit_id, event.plain(), files=files, key=self.key)
        return event

    def ask(self, name: str, version: str, suite: str, *, at: str | None = None) -> str:
        """Have a trigger ask for an audit of a version; the request's key."""
        key = bytes_digest(json.dumps([name, version, suite, at]).encode())[7:47]
        asked = NewRequest(key, RegistryKind.MLFLOW.value, name, version, sha("5"), "delivery", None, suite)
        assert self.records.requests.add([asked]) == {key}
        return key

    def write(self, uri: str, event: DecisionEvent) -> str:
        """Write what stands because of an audit; the version."""
        return self.write_patiently(uri, event, ())

    def write_patiently(
        self, uri: str, event: DecisionEvent, waits_s: Sequence[float], sleep: Callable[[float], None] = lambda _: None
    ) -> str:
        """The same as the worker does it."""
        return write_with_retries(uri, event, self.settings.records_url, self.sources, waits_s, sleep)


@contextmanager
def decided_audits(home: Path, **named: Any) -> Iterator[DecidedAudits]:
    """The audits of a home."""
    with closing(Records(Settings(home=home).records_url)) as records:
        yield DecidedAudits(home, records, **named)
