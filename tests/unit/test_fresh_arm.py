"""An audit's fresh arm beside its canonical one: verdicts, what makes them invalid, and what they do not depend on."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from proctor.domain.canonical import canonical_json
from proctor.domain.decision import DecisionOutcome
from proctor.domain.evidence import FreshEvidence, Verdict
from proctor.domain.panel import Panel, ReferenceModel
from proctor.domain.trial import Arm, Outcome
from proctor.evidence.answers import Answer
from proctor.evidence.fresh.arms import FreshLimits, weigh_arms
from proctor.evidence.fresh.bootstrap import FreshAnswers
from proctor.evidence.fresh.channel import fresh_evidence
from proctor.scorer.channels.fresh import CHANNEL
from proctor.scorer.policy import decide
from tests.report_samples import approved

LIMITS = FreshLimits(allowed_points=5.0, block_points=5.0, alpha=0.05, level=0.95)


def answers(arm: Arm, right: int, wrong: int, **changed: Any) -> Iterator[Answer]:
    name = "q" if arm is Arm.CANONICAL else "f"
    for place in range(right + wrong):
        outcome = Outcome.CORRECT if place < right else Outcome.INCORRECT
        yield Answer(arm, f"{name}{place:04d}", outcome)._replace(**changed)


def audit(benchmark: tuple[int, int], fresh: tuple[int, int]) -> list[Answer]:
    return [*answers(Arm.CANONICAL, *benchmark), *answers(Arm.FRESH, *fresh)]


def panel_of(*shares: tuple[float, float], n: int = 400) -> Panel:
    """Models that are right on the first items of either set."""

    def model(number: int, on_benchmark: float, on_fresh: float) -> ReferenceModel:
        right = {f"q{place:04d}" for place in range(int(n * on_benchmark))}
        right |= {f"f{place:04d}" for place in range(int(n * on_fresh))}
        both = {f"{name}{place:04d}" for name in "qf" for place in range(n)}
        return ReferenceModel(name=f"m{number}", right=tuple(sorted(right)), wrong=tuple(sorted(both - right)))

    return Panel(models=tuple(model(number, *pair) for number, pair in enumerate(shares)))


def test_a_benchmark_that_is_answered_far_better_than_fresh_items_is_suspicious() -> None:
    found = weigh_arms(audit((380, 20), (300, 100)), LIMITS)
    assert found.verdict is Verdict.CONTAMINATED
    assert found.excess.value == pytest.approx(20.0)
    assert (found.n_benchmark, found.n_fresh, found.n_left_out) == (400, 400, 0)


def test_equal_accuracy_on_many_items_is_clean_and_on_few_says_nothing() -> None:
    assert weigh_arms(audit((3_000, 1_000), (3_000, 1_000)), LIMITS).verdict is Verdict.CLEAN
    assert weigh_arms(audit((30, 10), (30, 10)), LIMITS).verdict is Verdict.INCONCLUSIVE


def test_the_figures_are_those_of_the_arrays() -> None:
    found = weigh_arms(audit((380, 20), (300, 100)), LIMITS)
    right = np.repeat([1.0, 0.0], [380, 20]), np.repeat([1.0, 0.0], [300, 100])
    expected = fresh_evidence(FreshAnswers.of(*right), allowed_points=5.0, block_points=5.0, alpha=0.05, level=0.95)
    same = ("verdict", "excess", "p_value", "accuracy_benchmark", "accuracy_fresh", "minimum_detectable_points")
    assert all(getattr(found, name) == getattr(expected, name) for name in same)


def test_the_order_of_the_rows_changes_no_byte_whatever_the_panel() -> None:
    rows = audit((380, 20), (300, 100))
    shuffled = random.Random(3).sample(rows, len(rows))
    for panel in (None, panel_of((0.9, 0.8), (0.7, 0.55), (0.5, 0.4))):
        first, second = (weigh_arms(some, LIMITS, panel=panel, seed=5) for some in (rows, shuffled))
        assert canonical_json(first.plain()) == canonical_json(second.plain())


def test_fresh_items_that_are_harder_for_everyone_convict_nobody() -> None:
    """What without a panel looks like memory is what the panel's models lose too."""
    rows = audit((320, 80), (260, 140))
    assert weigh_arms(rows, LIMITS).excess.value == pytest.approx(15.0)
    shares = [(0.9, 0.78), (0.8, 0.65), (0.7, 0.53), (0.6, 0.43), (0.85, 0.71), (0.75, 0.59)]
    found = weigh_arms(rows, LIMITS, panel=panel_of(*shares))
    assert found.verdict is not Verdict.CONTAMINATED
    assert abs(found.excess.value or 100.0) < 3.0
    assert found.reference_models == ("m0", "m1", "m2", "m3", "m4", "m5")


def test_an_item_that_a_reference_model_did_not_answer_is_left_out_and_counted() -> None:
    panel = panel_of((0.9, 0.8), (0.8, 0.7), n=390)
    found = weigh_arms(audit((380, 20), (300, 100)), LIMITS, panel=panel)
    assert (found.n_benchmark, found.n_fresh, found.n_left_out) == (390, 390, 20)


def test_an_error_row_is_no_wrong_answer() -> None:
    rows = [*audit((380, 20), (300, 100)), *answers(Arm.FRESH, 0, 410, outcome=None)][:810]
    found = weigh_arms(rows, LIMITS)
    assert found.n_fresh == 400
    assert found.accuracy_fresh.value == pytest.approx(0.75)


def test_a_fresh_arm_that_was_cut_short_is_invalid_and_not_forgetful() -> None:
    cut = [row._replace(truncated=place % 3 == 0) for place, row in enumerate(answers(Arm.FRESH, 200, 200))]
    found = weigh_arms([*answers(Arm.CANONICAL, 380, 20), *cut], LIMITS)
    assert found.verdict is Verdict.INVALID
    assert "truncated" in " ".join(found.reasons)


def test_without_an_answer_to_fresh_items_nothing_is_said() -> None:
    assert weigh_arms(answers(Arm.CANONICAL, 10, 2), LIMITS).verdict is Verdict.INVALID


def test_clusters_settle_nothing_because_the_bounds_do_not_know_them() -> None:
    found = weigh_arms(audit((380, 20), (300, 100)), LIMITS, clusters={"q0001": "a", "q0002": "a"})
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "clusters" in found.reasons[0]


def test_rows_of_other_arms_are_not_its_business() -> None:
    rows = audit((380, 20), (300, 100))
    others = [Answer(Arm.PERTURBED, "q0001", Outcome.INCORRECT), Answer(Arm.NOISY_ROUTER_1, "q0001", Outcome.CORRECT)]
    assert weigh_arms([*rows, *others], LIMITS) == weigh_arms(rows, LIMITS)


def weighed(verdict: str) -> FreshEvidence:
    fresh = {"contaminated": (300, 100), "clean": (3_800, 200), "inconclusive": (38, 2)}[verdict]
    benchmark = (3_800, 200) if verdict == "clean" else (380, 20)
    return weigh_arms(audit(benchmark, fresh), LIMITS)


def test_a_contaminated_fresh_channel_keeps_a_model_from_approval_whoever_required_it() -> None:
    """The rewordings found nothing: a model that learned the items in every wording answers all of them alike."""
    clean = approved(n_items=400).report()
    for verdict, outcome in (("contaminated", DecisionOutcome.REVIEW), ("clean", DecisionOutcome.APPROVE)):
        found = weighed(verdict)
        assert found.verdict == verdict
        evidence = clean.evidence.model_copy(update={"fresh": found, "not_audited": {}})
        decision = decide(evidence, clean.suite)
        assert decision.outcome is outcome
        assert (decision.scope or "").endswith("fresh")


def test_the_page_shows_both_arms_and_what_one_expects_of_the_other() -> None:
    section = CHANNEL.section(weighed("contaminated"))
    assert section is not None
    assert [row[0] for row in section.rows] == ["the benchmark", "fresh items"]
    assert "75.0" in section.caption
    assert "20.0 points" in section.caption


def test_that_nobody_knows_how_hard_the_items_are_is_said_where_there_is_no_panel() -> None:
    suite = approved(n_items=20).report().suite
    assert [one.code for one in CHANNEL.limitations(suite, weighed("clean"))] == ["fresh_without_panel"]
    with_panel = weigh_arms(audit((380, 20), (300, 100)), LIMITS, panel=panel_of((0.9, 0.8), (0.8, 0.7)))
    assert CHANNEL.limitations(suite, with_panel) == ()
