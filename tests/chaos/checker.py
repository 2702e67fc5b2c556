"""Proves the five invariants of a run from its ledger and its stores alone.

It sees neither the workers nor what the harness knows of the faults, and imports nothing of Proctor: what was accepted,
asked, answered, graded and decided is worked out anew from the raw documents and compared with what is on record.

1. Accepted trials = graded ∪ dead-lettered, disjoint.
2. A trial counts once in every aggregate.
3. One decision an audit, written once.
4. The report is byte for byte the calm run's.
5. Nothing is left: no lease, no queue, no message, no key without an owner or a time to live.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.stores import Audit, Stage, Stores

_OWNED = re.compile(r"proctor:\{(?P<audit>[^}]+)\}:(stages|asked|[^:]+:(plan|queue|leases|attempts|done|dead|fired))")
#: In place of an answer: the model was asked and gave none, for good. Such a trial is an error row, and is not graded.
_FAILED = "\0"
_NUMBER = re.compile(r"-?\d+")


@dataclass
class Findings:
    """What a check found. `violations` is empty where all invariants hold."""

    violations: list[str] = field(default_factory=list)
    audits: int = 0
    trials: int = 0
    lost: int = 0
    """Accepted trials that are neither graded nor dead-lettered."""
    counted_twice: int = 0
    dead_lettered: int = 0
    decisions: Counter[int] = field(default_factory=Counter)
    """Decisions of an audit → audits."""
    reports_compared: int = 0
    reports_that_differ: int = 0

    def broken(self, number: int, audit: str, what: str) -> None:
        """Note a violation of an invariant."""
        self.violations.append(f"invariant {number}, {audit}: {what}")

    def raise_if_broken(self) -> None:
        """Raises AssertionError with the first violations."""
        assert not self.violations, "\n".join(self.violations[:20])


def check(stores: Stores, calm_reports: Mapping[str, str]) -> Findings:
    """Check a run that has come to rest.

    Args:
        stores: its ledger and stores.
        calm_reports: suite id → SHA-256 of the report of a run of it without faults; others are not compared.
    """
    findings, audits = Findings(), stores.audits()
    for audit in audits:
        findings.audits += 1
        _check_audit(stores, audit, calm_reports, findings)
        stores.forget()
    _check_registry(stores.registered(), audits, findings)
    _check_remains(stores, {audit.audit_id for audit in audits}, findings)
    return findings


def _check_audit(stores: Stores, audit: Audit, calm_reports: Mapping[str, str], findings: Findings) -> None:
    name, stage = audit.audit_id, stores.stage(audit.audit_id)
    findings.decisions[len(audit.decisions)] += 1
    if audit.state != "decided" or len(audit.decisions) != 1:
        findings.broken(3, name, f"is {audit.state} ({audit.detail[:200]}) with {len(audit.decisions)} decisions")
    if stage.leased or stage.queued:
        findings.broken(5, name, f"{len(stage.leased)} shards are leased and {len(stage.queued)} queued")
    try:
        accepted = _accepted(stores, audit)
        told = _told(stores, name, stage, accepted, findings)
        if len(audit.decisions) == 1:
            _check_report(stores, audit, stage, accepted, told, findings)
            _compare(stores.report(name), audit.decisions[0], calm_reports, findings)
    except (LookupError, ValueError, OSError) as error:
        findings.broken(1, name, f"a document is missing or damaged: {error}")


def _accepted(stores: Stores, audit: Audit) -> dict[tuple[str, str | None], str]:
    """The trials that an audit has to ask: (item, variant) → the item's right answer. From items and variants alone."""
    if audit.inputs["variants"] is None:
        return {}
    variants: dict[str, list[str]] = {}
    for variant in stores.document(audit.inputs["variants"])["variants"]:
        variants.setdefault(variant["item_id"], []).append(_variant_id(variant))
    return {
        (item["item_id"], variant_id): item["target"]
        for item in stores.document(audit.inputs["items"])["items"]
        if item["item_id"] in variants
        for variant_id in (None, *variants[item["item_id"]])
    }


def _variant_id(variant: Mapping[str, Any]) -> str:
    """A variant is known by its words: trials carry the id, documents the words. See `_asked`, which does the same."""
    return " ".join(variant["question"].split())


def _told(
    stores: Stores,
    audit: str,
    stage: Stage,
    accepted: Mapping[tuple[str, str | None], str],
    findings: Findings,
) -> dict[tuple[str, str | None], str | None]:
    """What became of each accepted trial: what the model said, or None for one that was dead-lettered."""
    findings.trials += len(accepted)
    if both := stage.done.keys() & stage.dead.keys():
        findings.broken(1, audit, f"{len(both)} shards are both done and dead")
    if aliens := (stage.done.keys() | stage.dead.keys()) - stage.plan.keys():
        findings.broken(1, audit, f"{len(aliens)} shards were never planned")
    times, told = Counter[tuple[str, str | None]](), dict[tuple[str, str | None], str | None]()
    for shard_id, digest in stage.plan.items():
        trials = stores.document(digest)["trials"]
        if shard_id in stage.dead:
            findings.dead_lettered += len(trials)
            for trial in trials:
                times[_asked(trial)] += 1
                told[_asked(trial)] = None
        elif shard_id in stage.done:
            said = stores.document(stage.done[shard_id])["completions"]
            if len(said) != len(trials):
                findings.broken(1, audit, f"shard {shard_id} has {len(trials)} trials and {len(said)} completions")
            for trial, completion in zip(trials, said, strict=False):
                times[_asked(trial)] += 1
                told[_asked(trial)] = completion["text"] if completion["error"] is None else _FAILED
    lost = [trial for trial in accepted if times[trial] == 0]
    twice = [trial for trial in times if times[trial] > 1]
    findings.lost += len(lost)
    findings.counted_twice += len(twice)
    if lost:
        findings.broken(1, audit, f"{len(lost)} of {len(accepted)} accepted trials are lost, e.g. {lost[0]}")
    if twice:
        findings.broken(2, audit, f"{len(twice)} trials are in more than one shard, e.g. {twice[0]}")
    if strange := times.keys() - accepted.keys():
        findings.broken(1, audit, f"{len(strange)} trials were never accepted")
    return told


def _asked(trial: Mapping[str, Any]) -> tuple[str, str | None]:
    question = trial["prompt"].removeprefix("Question: ").rsplit("\nAnswer:", 1)[0]
    return trial["item_id"], None if trial["variant_id"] is None else " ".join(question.split())


def _check_report(
    stores: Stores,
    audit: Audit,
    stage: Stage,
    accepted: Mapping[tuple[str, str | None], str],
    told: Mapping[tuple[str, str | None], str | None],
    findings: Findings,
) -> None:
    """The report was made of what the ledger has, and its aggregates count each raw answer once."""
    name = audit.audit_id
    manifest = stores.document(audit.inputs["manifest"])
    of_manifest = Counter((row["shard"], row["completions"]) for row in manifest["answered"])
    of_ledger = Counter((stage.plan[shard], said) for shard, said in stage.done.items() if shard in stage.plan)
    if of_manifest != of_ledger:
        differ = sum(((of_manifest - of_ledger) + (of_ledger - of_manifest)).values())
        findings.broken(2, name, f"the scored manifest and the ledger differ in {differ} answered shards")
    right = {
        trial: _is_right(text, accepted[trial])
        for trial, text in told.items()
        if text is not None and text != _FAILED and trial in accepted
    }
    report = json.loads(stores.report(name))
    counts = report["counts"]
    expected = {
        "trials": len(accepted),
        "graded": len(right),
        "failed": sum(text == _FAILED for text in told.values()),
        "dead_lettered": sum(text is None for text in told.values()),
        "correct": sum(right.values()),
    }
    if found := {key: counts[key] for key in expected if counts[key] != expected[key]}:
        findings.broken(2, name, f"the report counts {found}, the raw answers {expected}")
    by_item: dict[str, list[int]] = {}
    for (item, variant), is_right in right.items():
        if variant is not None:
            by_item.setdefault(item, []).append(is_right)
    perturbation = report["evidence"].get("perturbation") or {"items": []}
    wrong = [
        row["item_id"]
        for row in perturbation["items"]
        if (row["perturbed_correct"], row["perturbed_total"])
        != (sum(by_item.get(row["item_id"], [])), len(by_item.get(row["item_id"], [])))
        or row["canonical_correct"] != right.get((row["item_id"], None))
    ]
    if wrong:
        findings.broken(2, name, f"{len(wrong)} items' scores are not those of their answers, e.g. {wrong[0]}")


def _is_right(text: str, target: str) -> bool:
    numbers = _NUMBER.findall(text)
    return bool(numbers) and int(numbers[-1]) == int(target)


def _compare(report: bytes, decision: Mapping[str, Any], calm: Mapping[str, str], findings: Findings) -> None:
    digest = hashlib.sha256(report).hexdigest()
    if decision["reportDigest"] != f"sha256:{digest}":
        findings.broken(3, decision["auditId"], "the decision is of another report than the one on disk")
    expected = calm.get(decision["auditSuiteId"])
    if expected is None:
        return
    findings.reports_compared += 1
    if digest != expected:
        findings.reports_that_differ += 1
        findings.broken(4, decision["auditId"], "the report is not the calm run's")


def _check_registry(told: Sequence[Mapping[str, Any]], audits: Sequence[Audit], findings: Findings) -> None:
    said: dict[str, set[str]] = {}
    for event in told:
        said.setdefault(event["auditId"], set()).add(json.dumps(event, sort_keys=True))
    for audit in audits:
        decisions = {json.dumps(event, sort_keys=True) for event in audit.decisions}
        if said.get(audit.audit_id, set()) != decisions:
            heard = len(said.get(audit.audit_id, ()))
            findings.broken(3, audit.audit_id, f"the registry heard {heard} decisions, and not the one on record")


def _check_remains(stores: Stores, audits: set[str], findings: Findings) -> None:
    for key, seconds in stores.keys().items():
        owner = _OWNED.fullmatch(key)
        if owner is None or owner["audit"] not in audits:
            findings.broken(5, key, "the key has no owner")
        elif seconds == -1:
            findings.broken(5, key, "the key has no time to live")
    if waiting := Counter(stores.waiting()):
        findings.broken(5, "broker", f"messages are left: {dict(waiting)}")
