"""What stands of a model version, as a registry is given it: the decision, its suites, and the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from proctor.domain.canonical import bytes_digest
from proctor.domain.decision import DecisionEvent, DecisionOutcome
from proctor.domain.estimate import Estimate

#: Suites of a version that a registry is told of one by one; the decision is over all of them.
MAX_SUITES: Final = 40
#: Names of what is kept of an audit.
SUITE: Final = "suite.json"
REPORT: Final = "report.json"
REPORT_PAGE: Final = "report.html"
REPORT_DIGEST: Final = "report.sha256"


class SuiteRecord(NamedTuple):
    """What one suite says of a version."""

    audit_suite_id: str
    outcome: DecisionOutcome
    said: str
    """In a few words, what the outcome rests on."""
    event: DecisionEvent | None
    """The decision; None where there is none yet."""
    contamination_score: Estimate | None
    report_url: str


class VersionRecord(NamedTuple):
    """What stands of a version."""

    event: DecisionEvent
    """The decision whose evidence goes with the version's, with the version's outcome and reasons."""
    suites: tuple[SuiteRecord, ...]
    """Those that the version has to pass, the worst first."""
    contamination_score: Estimate | None
    report_url: str
    """Where the report's page is: a URL, or a path on the machine that scored."""
    attestation: str | None
    """SHA-256 of the attestation's bytes."""
    sequence: int
    """The entry of the decision log that it rests on; 0 where there is none."""
    files: Mapping[str, Mapping[str, bytes]]
    """By audit, what is kept of it, by name. What is gone is left out."""

    @property
    def approved(self) -> bool:
        """Whether the version may be promoted."""
        return self.event.outcome is DecisionOutcome.APPROVE

    @classmethod
    def of_event(cls, event: DecisionEvent) -> VersionRecord:
        """Of one decision alone, as it went out."""
        suite = SuiteRecord(event.audit_suite_id, event.outcome, "decided", event, None, event.report_path)
        return cls(event, (suite,), None, event.report_path, None, 0, {})


def sha256_of(digest: str) -> str:
    """The hex digits of a digest, as `sha256sum` prints them."""
    return digest.removeprefix("sha256:")


def attestation_digest(envelope: bytes) -> str:
    """How an attestation is named in a registry."""
    return sha256_of(bytes_digest(envelope))


def score_words(score: Estimate | None) -> tuple[str, str]:
    """The Contamination Score and its interval as a registry has them."""
    if score is None:
        return "not audited", "not audited"
    value = "undefined" if score.value is None else f"{score.value:.4f}"
    low, high = ("unbounded" if bound is None else f"{bound:.4f}" for bound in (score.low, score.high))
    return value, f"[{low}, {high}]"
