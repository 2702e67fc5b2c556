"""Sequential audits through a real ledger, record store, router and scorer: looks are taken once, and nothing after
the one that ends an audit is reworded or asked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from proctor.domain.decision import DecisionEvent, DecisionOutcome
from proctor.domain.looks import LookSeen, Stop
from proctor.domain.manifest import AuditManifest, CompletionSet, ItemIndex
from proctor.domain.messages import (
    AuditScored,
    BuildVariants,
    EndpointProbed,
    ScoreAudit,
    ShardsGraded,
    StartAudit,
    VariantsBuilt,
)
from proctor.domain.trial import CONTROL_ARMS, Arm, Completion, Shard, Trial
from proctor.gateway.convert import audit_message, status_of
from proctor.gateway.reading import Counts, read_status
from proctor.router import tasks
from proctor.router.audit import view
from proctor.router.awaited import request_of
from proctor.runtime.artifacts.chunks import get_items
from proctor.runtime.artifacts.store import get_model, put_model
from proctor.runtime.records.store import AuditState
from proctor.scorer import tasks as scoring
from tests.integration.router_support import PINNED, Bench, router_bench
from tests.integration.test_router_control import write_control
from tests.integration.test_router_fresh import N_FRESH, write_fresh

LOOKS = (0.3, 0.5, 0.7, 1.0)
SIZES = (30, 50, 70, 100)
DATASET = {"benchmark_name": "sums", "path": "items.jsonl", "selection": "seeded"}
Said = Callable[[Trial], str]


def right(trial: Trial) -> str:
    """What the item asks for, which its id tells."""
    number = int(trial.item_id[1:])
    return str(number + (1 if trial.item_id.startswith("q") else 6))


def leaked_below(n: int) -> Said:
    """A model that has the first so many items by heart: in their own wording alone."""
    return lambda trial: "7777" if trial.arm is Arm.PERTURBED and int(trial.item_id[1:]) < n else right(trial)


@contextmanager
def bench_of(
    home: Path, url: str, patch: pytest.MonkeyPatch, design: dict[str, Any] | None = None, **suite: Any
) -> Iterator[Bench]:
    home.mkdir(exist_ok=True)
    section = {"kind": "sequential", "looks": LOOKS, "futility": 0.0, **(design or {})}
    whole = {"dataset_config": DATASET, **suite}
    whole["scoring_config"] = {"design": section, **suite.get("scoring_config", {})}
    with router_bench(home, url, patch, **whole) as bench:
        patch.setattr(scoring, "worker_settings", lambda: bench.settings)
        patch.setattr(scoring, "worker_records", lambda: bench.records)
        patch.setattr(scoring, "worker_artifacts", lambda: bench.artifacts)
        yield bench


def begin(bench: Bench) -> str:
    audit = bench.submit()
    tasks.start(StartAudit(audit_id=audit))
    tasks.endpoint_probed(EndpointProbed(audit_id=audit, ok=True, model_digest=PINNED, server="test"))
    return audit


def reword(bench: Bench, audit: str) -> BuildVariants:
    """Answer the request for rewordings that the audit's state calls for."""
    message = request_of(view(bench.records, audit))
    assert isinstance(message, BuildVariants)
    control = None if message.control is None else bench.variants(audit, message.control)
    built = VariantsBuilt(
        audit_id=audit, variants=bench.variants(audit, message.items), control=control, look=message.look
    )
    tasks.variants_built(built)
    return message


def answer(bench: Bench, said: Said) -> list[Trial]:
    asked = list[Trial]()
    while shards := bench.handed_out():
        for one in shards:
            trials = get_model(bench.artifacts, one.shard, Shard).trials
            asked += trials
            completions = tuple(Completion(trial_id=trial.trial_id, text=said(trial)) for trial in trials)
            stored = put_model(bench.artifacts, CompletionSet(completions=completions))
            bench.answer(one, completions=stored, n_trials=len(trials))
    return asked


def look(bench: Bench, audit: str) -> DecisionEvent | LookSeen:
    """Have the scorer look, and do not tell the router."""
    message = request_of(view(bench.records, audit))
    assert isinstance(message, ScoreAudit)
    assert (message.look, message.version) == (len(view(bench.records, audit).inputs.looked) + 1, 5)
    return scoring._decide(audit, get_model(bench.artifacts, message.manifest, AuditManifest))


def tell(bench: Bench, audit: str, found: DecisionEvent | LookSeen) -> None:
    seen = found if isinstance(found, LookSeen) else None
    number = len(view(bench.records, audit).inputs.looked) + 1 if seen is None else seen.number
    tasks.scored(AuditScored(audit_id=audit, look=number, seen=seen))


def to_the_end(bench: Bench, said: Said) -> tuple[str, list[Trial], dict[str, Any]]:
    """Run an audit; returns it with all trials that were asked, and its report."""
    audit, asked = begin(bench), list[Trial]()
    found: DecisionEvent | LookSeen | None = None
    while not isinstance(found, DecisionEvent):
        reword(bench, audit)
        asked += answer(bench, said)
        found = look(bench, audit)
        tell(bench, audit, found)
    return audit, asked, report_of(bench, audit)


def report_of(bench: Bench, audit: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((bench.settings.home / "reports" / audit / "report.json").read_bytes())
    return document


def test_a_plain_answer_ends_the_audit_at_the_first_look_and_nothing_more_is_reworded_or_asked(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bench_of(tmp_path, valkey_url, monkeypatch) as bench:
        audit, asked, report = to_the_end(bench, leaked_below(100))
        first = get_model(bench.artifacts, view(bench.records, audit).inputs.looks[0].items, ItemIndex)
    assert first.n_items == SIZES[0]
    assert Counter(trial.arm for trial in asked) == {Arm.CANONICAL: SIZES[0], Arm.PERTURBED: SIZES[0]}
    assert report["decision"]["outcome"] == "block"
    assert report["decision"]["reasons"][-1]["code"] == "stopped_blocked"
    record = report["sequential"]
    assert (record["sizes"], record["stop"], len(record["looks"])) == (list(SIZES), Stop.BLOCKED, 1)
    assert report["counts"]["items_selected"] == SIZES[0]


def test_an_open_question_is_asked_on_item_by_item_once_until_the_whole_sample_is_there(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bench_of(tmp_path, valkey_url, monkeypatch) as bench:
        audit, asked, report = to_the_end(bench, leaked_below(8))
        status = read_status(view(bench.records, audit), bench.records, Counts(bench.ledger, bench.pools))
    assert Counter(trial.arm for trial in asked) == {Arm.CANONICAL: 100, Arm.PERTURBED: 100}
    assert len({trial.trial_id for trial in asked}) == len(asked)
    record = report["sequential"]
    assert [one["n_items"] for one in record["looks"]] == list(SIZES)
    assert record["stop"] == "last"
    assert report["decision"]["outcome"] == "review"
    # Told at the level of all looks, though it was read at a stricter one.
    inflation = report["evidence"]["perturbation"]["score_inflation"]
    assert inflation["level"] == 0.95
    assert record["looks"][-1]["level"] > 0.95
    assert inflation["low"] == record["looks"][-1]["inflation"]["low"]
    assert report["evidence"]["perturbation"]["p_value"] == record["p_value"]
    assert (status.trials and status.trials.planned, status.trials and status.trials.done) == (200, 200)
    assert status.looks is not None
    assert [taken.n_items for taken in status.looks.taken] == [30, 50, 70]
    assert status_of(audit_message(status)) == status


def test_no_item_is_reworded_before_the_look_that_comes_before_it_has_said_that_the_audit_goes_on(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bench_of(tmp_path, valkey_url, monkeypatch) as bench:
        audit, seen = begin(bench), list[str]()
        for size in (30, 20, 20, 30):
            message = reword(bench, audit)
            items = [item.item_id for item in get_items(bench.artifacts, message.items).items]
            assert len(items) == size
            assert not set(items) & set(seen)
            seen += items
            assert {trial.item_id for trial in answer(bench, leaked_below(8))} == set(items)
            tell(bench, audit, look(bench, audit))
        assert set(seen) == {f"q{n}" for n in range(100)}


def test_an_audit_that_is_not_likely_to_decide_any_more_stops_for_review_and_says_so(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bench_of(tmp_path, valkey_url, monkeypatch, {"futility": 0.9}) as bench:
        _, asked, report = to_the_end(bench, leaked_below(8))
    assert len(asked) < 200
    assert report["sequential"]["stop"] == "futile"
    assert report["sequential"]["looks"][-1]["decision_chance"] < 0.9
    assert report["decision"]["outcome"] == "review"
    assert report["decision"]["reasons"][-1]["code"] == "stopped_futile"


def test_fresh_and_control_items_come_in_the_same_shares(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_fresh(tmp_path)
    write_control(tmp_path, 60)
    arms = {"fresh_config": {"path": "fresh.jsonl"}, "control_config": {"path": "control.jsonl"}}
    with bench_of(tmp_path, valkey_url, monkeypatch, **arms) as bench:
        audit = begin(bench)
        asked = list[Counter[Arm]]()
        for _ in SIZES:
            reword(bench, audit)
            asked.append(Counter(trial.arm for trial in answer(bench, leaked_below(8))))
            tell(bench, audit, look(bench, audit))
        report = report_of(bench, audit)
    assert [one[Arm.CONTROL_CANONICAL] for one in asked] == [18, 12, 12, 18]
    assert [one[CONTROL_ARMS[1]] for one in asked] == [18, 12, 12, 18]
    assert sum(one[Arm.FRESH] for one in asked) == N_FRESH
    assert all(one[Arm.FRESH] for one in asked)
    assert report["evidence"]["perturbation"]["control_items"]["n_items"] == 60
    assert report["evidence"]["perturbation"]["control_items"]["excess"]["p_value"] == report["sequential"]["p_value"]


def test_a_look_that_is_taken_twice_told_twice_or_told_late_changes_nothing(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bench_of(tmp_path, valkey_url, monkeypatch) as bench:
        audit = begin(bench)
        reword(bench, audit)
        answer(bench, leaked_below(8))
        first, again = look(bench, audit), look(bench, audit)
        assert first == again
        tell(bench, audit, first)
        noted = bench.records.audit(audit).inputs
        tell(bench, audit, first)
        assert bench.records.audit(audit).inputs == noted
        reword(bench, audit)
        # Grades of the first look that come now, and its word again.
        for message in bench.grading:
            tasks.shards_graded(ShardsGraded(audit_id=audit, graded=message.shards))
        answer(bench, leaked_below(8))
        assert bench.state(audit) is AuditState.SCORING
        noted = bench.records.audit(audit).inputs
        tell(bench, audit, first)
        assert isinstance(first, LookSeen)
        tell(bench, audit, first.model_copy(update={"number": 3}))
        assert (bench.state(audit), bench.records.audit(audit).inputs) == (AuditState.SCORING, noted)


def test_rewordings_of_an_earlier_look_that_come_again_are_not_taken_for_those_of_the_next(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bench_of(tmp_path, valkey_url, monkeypatch) as bench:
        audit = begin(bench)
        first = request_of(view(bench.records, audit))
        assert isinstance(first, BuildVariants)
        assert (first.look, first.version) == (1, 5)
        built = VariantsBuilt(audit_id=audit, variants=bench.variants(audit, first.items), look=1)
        tasks.variants_built(built)
        answer(bench, leaked_below(8))
        tell(bench, audit, look(bench, audit))
        assert bench.state(audit) is AuditState.REWORDING
        late = (built, VariantsBuilt(audit_id=audit, error="a worker died of it", look=1))
        for message in late:
            tasks.variants_built(message)
            assert bench.state(audit) is AuditState.REWORDING
            assert view(bench.records, audit).inputs.variants is None
        tasks.scored(AuditScored(audit_id=audit, error="the scorer died of it", look=1))
        assert bench.state(audit) is AuditState.REWORDING
        reword(bench, audit)
        assert len(answer(bench, leaked_below(8))) == 2 * (SIZES[1] - SIZES[0])


STEPS = ("rewording", "reworded", "answering", "answered", "looked")


@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("step", STEPS)
def test_an_audit_that_is_interrupted_at_any_step_of_a_look_ends_in_the_same_report(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch, step: str, number: int
) -> None:
    with bench_of(tmp_path / "calm", valkey_url, monkeypatch) as bench:
        calm, _, _ = to_the_end(bench, leaked_below(8))
        expected = (bench.settings.home / "reports" / calm / "report.json").read_bytes()
    with bench_of(tmp_path / "torn", valkey_url, monkeypatch) as bench:
        audit = begin(bench)

        def torn(here: str) -> None:
            if (here, len(view(bench.records, audit).inputs.looked) + 1) == (step, number):
                bench.sent.clear()
                bench.start_again()

        found: DecisionEvent | LookSeen | None = None
        while not isinstance(found, DecisionEvent):
            torn("rewording")
            reword(bench, audit)
            torn("reworded")
            if step == "answering" and len(view(bench.records, audit).inputs.looked) + 1 == number:
                (one, *_) = bench.handed_out()
                trials = get_model(bench.artifacts, one.shard, Shard).trials
                said = tuple(Completion(trial_id=t.trial_id, text=leaked_below(8)(t)) for t in trials)
                stored = put_model(bench.artifacts, CompletionSet(completions=said))
                bench.answer(one, completions=stored, n_trials=len(trials))
                torn("answering")
            answer(bench, leaked_below(8))
            torn("answered")
            answer(bench, leaked_below(8))
            found = look(bench, audit)
            torn("looked")
            if bench.state(audit) is not AuditState.SCORING:
                answer(bench, leaked_below(8))
                found = look(bench, audit) if bench.state(audit) is AuditState.SCORING else found
            tell(bench, audit, found)
        assert (bench.settings.home / "reports" / audit / "report.json").read_bytes() == expected
        assert found.outcome is DecisionOutcome.REVIEW


@pytest.mark.parametrize(("n_refused", "state"), [(2, AuditState.SCORING), (3, AuditState.FAILED)])
def test_prompts_that_are_refused_count_against_all_that_was_asked_so_far(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch, n_refused: int, state: AuditState
) -> None:
    # Of the 20 items before the second look two are more than a twentieth, and of the 50 until then they are not.
    with bench_of(tmp_path, valkey_url, monkeypatch) as bench:
        audit = begin(bench)
        reword(bench, audit)
        answer(bench, leaked_below(8))
        tell(bench, audit, look(bench, audit))
        reword(bench, audit)
        left = n_refused
        while shards := bench.handed_out():
            for one in shards:
                trials = get_model(bench.artifacts, one.shard, Shard).trials
                refused = trials[:left] if trials[0].arm is Arm.CANONICAL else ()
                left -= len(refused)
                completions = tuple(
                    Completion(trial_id=trial.trial_id, error="400: too long")
                    if trial in refused
                    else Completion(trial_id=trial.trial_id, text=right(trial))
                    for trial in trials
                )
                stored = put_model(bench.artifacts, CompletionSet(completions=completions))
                bench.answer(one, completions=stored, n_trials=len(trials), n_refused=len(refused))
        assert left == 0
        assert bench.state(audit) is state


def test_an_audit_that_stops_for_its_budget_has_not_stopped_for_its_evidence(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bench_of(tmp_path, valkey_url, monkeypatch, budget_config={"max_trials": 2 * SIZES[1] - 1}) as bench:
        audit = begin(bench)
        reword(bench, audit)
        answer(bench, leaked_below(8))
        tell(bench, audit, look(bench, audit))
        reword(bench, audit)
        assert not answer(bench, leaked_below(8))
        assert bench.state(audit) is AuditState.FAILED
        assert "max_trials" in bench.records.audit(audit).detail
        assert bench.records.decision(audit) is None
        # With a higher ceiling it goes on from its second look, and asks nothing twice.
        bench.suite = bench.suite.model_copy(
            update={"budget": bench.suite.budget.model_copy(update={"max_trials": None})}
        )
        assert bench.start_again() == audit
        assert len(answer(bench, leaked_below(8))) == 2 * (SIZES[1] - SIZES[0])
        assert bench.state(audit) is AuditState.SCORING


def test_items_of_a_cluster_are_all_asked_before_the_same_look(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    passages = {f"q{n}": f"p{n // 7}" for n in range(100)}
    clustered = {**DATASET, "cluster_field": "passage", "path": "passages.jsonl"}
    rows = [
        {"id": name, "question": f"What is {name[1:]} plus one?", "answer": str(int(name[1:]) + 1), "passage": passage}
        for name, passage in passages.items()
    ]
    (tmp_path / "passages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with bench_of(tmp_path, valkey_url, monkeypatch, dataset_config=clustered) as bench:
        audit = bench.submit()
        parts = [
            {item.item_id for item in get_items(bench.artifacts, one.items).items}
            for one in view(bench.records, audit).inputs.looks
        ]
    assert sorted(name for part in parts for name in part) == sorted(passages)
    of_parts = [{passages[name] for name in part} for part in parts]
    assert sum(map(len, of_parts)) == len(set(passages.values())), "no passage in two parts"
    for part, size in zip(parts, (30, 20, 20, 30), strict=True):
        assert abs(len(part) - size) <= 7
