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
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tests.chaos.accounts import check_accounts, check_grades
from tests.chaos.findings import Findings
from tests.chaos.reading import FAILED, Asked, asked, is_right
from tests.chaos.remains import check_remains
from tests.chaos.stores import Audit, Stage, Stores


def check(stores: Stores, calm_reports: Mapping[str, str], *, fatal: str, sums: bool = True) -> Findings:
    """Check a run that has come to rest.

    Args:
        stores: its ledger and stores.
        calm_reports: suite id → SHA-256 of the report of a run of it without faults; others are not compared.
        sums: whether the benchmarks are of sums (`tests.chaos.arithmetic`) and the registry one that notes what it is
            told. Of others the grades are not worked out anew: they stand in the report, which is compared.
        fatal: stands in each prompt that cannot be asked. Those prompts are dead-lettered in the end, and no others.
    """
    findings, audits = Findings(), stores.audits()
    for audit in audits:
        findings.audits += 1
        _check_audit(stores, audit, calm_reports, fatal, sums, findings)
        stores.forget()
    if sums:
        _check_registry(stores.registered(), audits, findings)
    _check_log(stores.decision_log(), audits, findings)
    check_remains(stores, {audit.audit_id for audit in audits}, findings)
    return findings


def _check_audit(
    stores: Stores, audit: Audit, calm_reports: Mapping[str, str], fatal: str, sums: bool, findings: Findings
) -> None:
    name, stage = audit.audit_id, stores.answers(audit)
    findings.decisions[len(audit.decisions)] += 1
    if audit.state != "decided" or len(audit.decisions) != 1:
        findings.broken(3, name, f"is {audit.state} ({audit.detail[:200]}) with {len(audit.decisions)} decisions")
    if stage.leased or stage.queued:
        findings.broken(5, name, f"{len(stage.leased)} shards are leased and {len(stage.queued)} queued")
    try:
        accepted = _accepted(stores, audit)
        told = _told(stores, name, stage, accepted, fatal, findings)
        check_accounts(stores, name, stage, len(accepted), findings)
        if len(audit.decisions) == 1:
            if sums:
                _check_report(stores, audit, stage, accepted, told, findings)
            _compare(stores.report(name), audit.decisions[0], calm_reports, findings)
    except (LookupError, ValueError, OSError) as error:
        findings.broken(1, name, f"a document is missing or damaged: {error}")


def _accepted(stores: Stores, audit: Audit) -> dict[Asked, str]:
    """The trials that an audit has to ask, and the items' right answers. From items and variants alone."""
    inputs, times = audit.inputs, range(audit.suite["decoding_config"].get("replicates", 1))
    if inputs["variants"] is None:
        return {}
    if "looks" in inputs:
        return _looked_at(stores, inputs, times)
    worded = _worded(stores, _items(stores, inputs["items"]), inputs["variants"], ("canonical", "perturbed"), times)
    if "control" in inputs:
        arms, control = ("control_canonical", "control_perturbed"), _items(stores, inputs["control"])
        worded |= _worded(stores, control, inputs["control_variants"], arms, times)
    fresh = _items(stores, inputs["fresh"]) if "fresh" in inputs else ()
    return worded | {Asked("fresh", item["item_id"], None, 0): item["target"] for item in fresh}


def _looked_at(stores: Stores, inputs: Mapping[str, Any], times: Sequence[int]) -> dict[Asked, str]:
    """The same of a sequential audit: the items until its last look, and no others. Here it has no other arms."""
    if inputs["manifest"] is None:
        return {}
    until = inputs["looks"][: len(inputs.get("looked", ())) + 1]
    items = [item for look in until for item in _items(stores, look["items"])]
    variants = stores.document(inputs["manifest"])["variants"]
    return _worded(stores, items, variants, ("canonical", "perturbed"), times)


def _items(stores: Stores, index: str) -> list[dict[str, Any]]:
    return [item for chunk in stores.document(index)["chunks"] for item in stores.document(chunk)["items"]]


def _worded(
    stores: Stores, items: Sequence[dict[str, Any]], variants: str, arms: tuple[str, str], times: Sequence[int]
) -> dict[Asked, str]:
    """Each item that has a rewording, in its own wording and in the others, so many times."""
    words: dict[str, list[str]] = {}
    for chunk in stores.document(variants)["chunks"]:
        for variant in stores.document(chunk)["variants"]:
            words.setdefault(variant["item_id"], []).append(_variant_id(variant))
    return {
        Asked(arms[wording is not None], item["item_id"], wording, replicate): item["target"]
        for item in items
        if item["item_id"] in words
        for wording in (None, *words[item["item_id"]])
        for replicate in times
    }


def _variant_id(variant: Mapping[str, Any]) -> str:
    """A variant is known by its words: trials carry the id, documents the words. See `asked`, which does the same."""
    options = [f"{chr(ord('A') + place)}. {option}" for place, option in enumerate(variant["choices"])]
    words = [variant["question"], *(["Options:", *options] if options else [])]
    return " ".join(" ".join(words).split())


def _told(
    stores: Stores,
    audit: str,
    stage: Stage,
    accepted: Mapping[Asked, str],
    fatal: str,
    findings: Findings,
) -> dict[Asked, str | None]:
    """What became of each accepted trial: what the model said, or None for one that was dead-lettered."""
    findings.trials += len(accepted)
    if both := stage.done.keys() & stage.dead.keys():
        findings.broken(1, audit, f"{len(both)} shards are both done and dead")
    if aliens := (stage.done.keys() | stage.dead.keys()) - stage.plan.keys():
        findings.broken(1, audit, f"{len(aliens)} shards were never planned")
    times, told = Counter[Asked](), dict[Asked, str | None]()
    unlucky = 0
    for shard_id, planned in stage.plan.items():
        trials = stores.document(planned.digest)["trials"]
        if shard_id in stage.dead:
            findings.dead_lettered += len(trials)
            unlucky += sum(fatal not in trial["prompt"] for trial in trials)
            for trial in trials:
                times[asked(trial)] += 1
                told[asked(trial)] = None
        elif shard_id in stage.done:
            said = stores.document(stage.done[shard_id])["completions"]
            if len(said) != len(trials):
                findings.broken(1, audit, f"shard {shard_id} has {len(trials)} trials and {len(said)} completions")
            for trial, completion in zip(trials, said, strict=False):
                times[asked(trial)] += 1
                told[asked(trial)] = completion["text"] if completion["error"] is None else FAILED
    if unlucky:
        causes = sorted(set(stage.dead.values()))
        findings.broken(1, audit, f"{unlucky} trials were given up that could be asked: {causes[0][:200]}")
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


def _check_report(
    stores: Stores,
    audit: Audit,
    stage: Stage,
    accepted: Mapping[Asked, str],
    told: Mapping[Asked, str | None],
    findings: Findings,
) -> None:
    """The report was made of what the ledger has, and its aggregates count each raw answer once."""
    name = audit.audit_id
    manifest = stores.document(audit.inputs["manifest"])
    of_manifest = Counter((row["shard"], row["completions"]) for row in manifest["answered"])
    of_ledger = Counter((stage.plan[shard].digest, said) for shard, said in stage.done.items() if shard in stage.plan)
    if of_manifest != of_ledger:
        differ = sum(((of_manifest - of_ledger) + (of_ledger - of_manifest)).values())
        findings.broken(2, name, f"the scored manifest and the ledger differ in {differ} answered shards")
    check_grades(stores, name, stage, manifest["answered"], accepted, findings)
    right = {
        trial: is_right(text, accepted[trial])
        for trial, text in told.items()
        if text is not None and text != FAILED and trial in accepted
    }
    report = json.loads(stores.report(name))
    counts = report["counts"]
    expected = {
        "trials": len(accepted),
        "graded": len(right),
        "failed": sum(text == FAILED for text in told.values()),
        "dead_lettered": sum(text is None for text in told.values()),
        "correct": sum(right.values()),
    }
    if found := {key: counts[key] for key in expected if counts[key] != expected[key]}:
        findings.broken(2, name, f"the report counts {found}, the raw answers {expected}")
    perturbation = report["evidence"].get("perturbation") or {"items": []}
    scores = _scores(right)
    wrong = [row["item_id"] for row in perturbation["items"] if _score_of(row) != scores.get(row["item_id"])]
    if wrong:
        findings.broken(2, name, f"{len(wrong)} items' scores are not those of their answers, e.g. {wrong[0]}")
    _check_arms(report, right, name, findings)
    _check_search(stores, audit, report, findings)
    _check_looks(audit, report, findings)


def _score_of(row: Mapping[str, Any]) -> tuple[bool, int, int]:
    return row["canonical_correct"], row["perturbed_correct"], row["perturbed_total"]


def _scores(right: Mapping[Asked, bool]) -> dict[str, tuple[bool, int, int]]:
    """Whether most answers to an item's own wording are right, and how many are of those to others."""
    answers: dict[str, tuple[list[bool], list[bool]]] = {}
    for trial, correct in right.items():
        if trial.arm in ("canonical", "perturbed"):
            answers.setdefault(trial.item, ([], []))[trial.arm == "perturbed"].append(correct)
    return {
        item: (2 * sum(canonical) > len(canonical), sum(others), len(others))
        for item, (canonical, others) in answers.items()
    }


def _check_arms(report: Mapping[str, Any], right: Mapping[Asked, bool], name: str, findings: Findings) -> None:
    """The accuracies of the arms beside the benchmark are those of the raw answers, each counted once."""
    control = (report["evidence"].get("perturbation") or {}).get("control_items") or {"arms": ()}
    fresh = report["evidence"].get("fresh") or {"arms": ()}
    for row in (*control["arms"], *fresh["arms"]):
        shares: dict[str, list[bool]] = {}
        for trial, correct in right.items():
            # Fresh items are compared with the first answer to each item of the benchmark.
            if trial.arm == row["arm"] and (trial.arm != "canonical" or trial.replicate == 0):
                shares.setdefault(trial.item, []).append(correct)
        mean = sum(sum(own) / len(own) for own in shares.values()) / len(shares) if shares else None
        expected = (sum(map(len, shares.values())), mean)
        found = (row["n_answers"], row["accuracy"]["value"])
        if found[0] != expected[0] or (found[1] is None) != (mean is None) or abs((found[1] or 0) - (mean or 0)) > 1e-9:
            findings.broken(2, name, f"the arm {row['arm']} counts {found}, the raw answers {expected}")


def _check_search(stores: Stores, audit: Audit, report: Mapping[str, Any], findings: Findings) -> None:
    """Training data were searched in shards, each once, and the items that stand there are those of the report."""
    plan = audit.inputs.get("corpora")
    if plan is None:
        return
    stage = stores.stage(audit.audit_id, f"search-{plan.rpartition(':')[2][:12]}")
    if len(stage.plan) < 2 or stage.dead or stage.done.keys() != stage.plan.keys():
        findings.broken(
            1,
            audit.audit_id,
            f"of {len(stage.plan)} shards of the search {len(stage.done)} are done, dead {stage.dead}",
        )
    patterns = [one for of_stage in audit.suite["exposure_config"]["corpora"].values() for one in of_stage]
    texts = stores.training_texts(patterns)
    there = {
        item["item_id"]
        for item in _items(stores, audit.inputs["items"])
        if any(item["question"] in text for text in texts)
    }
    found = {item["item_id"] for item in (report["evidence"].get("exposure") or {"items": ()})["items"]}
    if found != there:
        findings.broken(2, audit.audit_id, f"{sorted(there)} stand in training data, the report says {sorted(found)}")
    findings.searched += len(stage.done)


def _check_looks(audit: Audit, report: Mapping[str, Any], findings: Findings) -> None:
    """The report has each look once, in order, and the counts of items that its audit's row has."""
    planned = audit.inputs.get("looks")
    if not planned:
        return
    sizes = [sum(look["n_items"] for look in planned[: number + 1]) for number in range(len(planned))]
    record = report["sequential"]
    taken = len(audit.inputs.get("looked", ())) + 1
    found = (record["sizes"], [look["n_items"] for look in record["looks"]], report["counts"]["items_selected"])
    if found != (sizes, sizes[:taken], sizes[taken - 1]):
        findings.broken(2, audit.audit_id, f"the report has looks {found}, the audit's row {sizes} and {taken} taken")
    findings.looks += taken
    findings.stopped += taken < len(planned)


def _check_log(log: Sequence[tuple[int, str, str]], audits: Sequence[Audit], findings: Findings) -> None:
    """The log is one chain without gaps, and has each decision once, as it is on record."""
    previous, logged = None, list[str]()
    for number, (sequence, text, digest) in enumerate(log, 1):
        entry = json.loads(text)
        found = f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
        if (sequence, digest, entry["previous"]) != (number, found, previous):
            findings.broken(3, entry["audit_id"], f"entry {sequence} of the decision log does not follow on the others")
        previous = digest
        logged.append(json.dumps(entry["content"]["event"], sort_keys=True))
    decided = [json.dumps(event, sort_keys=True) for audit in audits for event in audit.decisions]
    if Counter(logged) != Counter(decided):
        findings.broken(3, "all", f"the decision log has {len(logged)} decisions, and not the {len(decided)} on record")


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
