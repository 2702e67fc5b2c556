"""Simulated sequential audits, each against a plain loop over its looks with the channel's evidence and the gate."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest

from proctor.domain.decision import DecisionOutcome
from proctor.domain.estimate import Estimate
from proctor.domain.evidence import Evidence, ProtocolEvidence, Verdict
from proctor.domain.item import Item
from proctor.domain.suite import Suite
from proctor.domain.suite_design import DesignSection
from proctor.evidence.perturbation.channel import perturbation_evidence
from proctor.evidence.perturbation.control_items import weigh_control_items
from proctor.evidence.perturbation.held import Held
from proctor.evidence.planning.controlled_audits import ControlledAudits
from proctor.evidence.planning.families import FAMILIES
from proctor.evidence.planning.pattern_chances import pattern_chances
from proctor.evidence.planning.sequential_audits import Audits, Stopped, drawn_looks, stopped, whole_clusters
from proctor.evidence.planning.simulated_audits import Limits, SimulatedAudits
from proctor.evidence.sequential.futility import Interval, decision_chance
from proctor.evidence.sequential.item_order import cut_at, look_sizes
from proctor.evidence.sequential.schedule import Look, schedule
from proctor.scorer.policy import decide
from tests.unit.test_approval import answers_of, suite
from tests.unit.test_control_items import as_answers

COMPARABLE = ProtocolEvidence(verdict=Verdict.CLEAN, reasons=("Alike.",), arms=())
DESIGNS: dict[str, dict[str, Any]] = {
    "default": {"kind": "sequential"},
    "obrien_fleming": {"kind": "sequential", "spending": "obrien_fleming", "looks": [0.3, 0.6, 1.0]},
    "no futility": {"kind": "sequential", "futility": 0.0, "looks": [0.1, 0.5, 0.75, 1.0]},
    "fixed": {"kind": "fixed"},
}


class Plain(NamedTuple):
    """Where one audit stopped, by a loop."""

    look: int
    n_items: int
    outcome: DecisionOutcome
    futile: bool
    inflation: Estimate
    score: Estimate
    p_values: tuple[float, ...]


def of_design(design: str) -> Suite:
    return suite({"scoring_config": {"design": DESIGNS[design]}})


def looks_of(of: Suite, items: int) -> tuple[Look, ...]:
    design = of.scoring.design
    return schedule(
        design, look_sizes(design, items), level=of.scoring.confidence_level, alpha=of.scoring.significance_alpha
    )


def at(of: Suite, look: Look) -> Suite:
    levels = {"confidence_level": look.level, "significance_alpha": look.alpha}
    return of.model_copy(update={"scoring": of.scoring.model_copy(update=levels)})


def one_by_one(so_far: Sequence[Audits], place: int, looks: Sequence[Look], of: Suite) -> Plain:
    p_values = []
    for look, audits in zip(looks, so_far, strict=True):
        there, weighed = at(of, look), None
        benchmark = audits.benchmark if isinstance(audits, ControlledAudits) else audits
        if isinstance(audits, ControlledAudits):
            other = answers_of(audits.control.counts[place])
            weighed = weigh_control_items(
                answers_of(benchmark.counts[place]),
                other,
                as_answers(other),
                there.scoring,
                n_selected=other.n,
                n_reworded=other.n,
            )
        result = perturbation_evidence(
            answers_of(benchmark.counts[place]), there.scoring, there.governance, None, control_items=weighed
        )
        decision = decide(Evidence(perturbation=result, protocol=COMPARABLE, not_audited={}), there)
        held = Held.of(result)
        inflation, score = Interval.of(held.inflation), Interval.of(held.score)
        chance = 1.0
        if inflation is not None and score is not None:
            chance = float(decision_chance(inflation, score, there.scoring, there.governance, now=look, last=looks[-1]))
        p_values.append(held.p_value)
        futile = decision.outcome is DecisionOutcome.REVIEW and not look.last and chance < of.scoring.design.futility
        if decision.outcome is not DecisionOutcome.REVIEW or futile or look.last:
            return Plain(
                look.number, look.n_items, decision.outcome, futile, held.inflation, held.score, tuple(p_values)
            )
    raise AssertionError("no look was the last")


def hold(found: Stopped, place: int, plain: Plain, looks: Sequence[Look]) -> None:
    assert (found.look[place], found.n_items[place]) == (plain.look, plain.n_items)
    assert found.approved[place] == (plain.outcome is DecisionOutcome.APPROVE)
    assert found.blocked[place] == (plain.outcome is DecisionOutcome.BLOCK)
    assert found.futile[place] == plain.futile
    for bounds, estimate in ((found.inflation, plain.inflation), (found.score, plain.score)):
        for side, expected in zip(bounds, (estimate.value, estimate.low, estimate.high), strict=True):
            if expected is not None:
                assert side[place] == pytest.approx(expected, abs=1e-9)
    near = [abs(p / look.alpha - 1) < 0.1 for p, look in zip(plain.p_values, looks, strict=False)]
    if not any(near):
        # The simulation takes the saddlepoint's p, which is within a tenth.
        assert found.rejected[place] == any(p < look.alpha for p, look in zip(plain.p_values, looks, strict=False))


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize(("family", "share"), [("consistent", 0.0), ("guessers", 0.2), ("beta_1_1", 0.1)])
def test_every_simulated_audit_stops_where_a_plain_loop_stops_it(design: str, family: str, share: float) -> None:
    of, rng = of_design(design), np.random.default_rng(11)
    outcomes = set()
    for items in (30, 160):
        looks = looks_of(of, items)
        chances = pattern_chances(FAMILIES[family], 3, leaked_share=share)
        so_far = list(drawn_looks(chances, looks, audits=12, rng=rng))
        found = stopped(looks, so_far, Limits.of(of), futility=of.scoring.design.futility)
        for place in range(12):
            plain = one_by_one(so_far, place, looks, of)
            hold(found, place, plain, looks)
            outcomes.add((plain.outcome, plain.futile))
    assert len(outcomes) > 1 or design in ("fixed", "no futility"), "nothing was told apart"


@pytest.mark.parametrize("design", ["default", "no futility"])
@pytest.mark.parametrize("share", [0.0, 0.2])
def test_beside_control_items_too(design: str, share: float) -> None:
    of, rng = of_design(design), np.random.default_rng(12)
    looks = looks_of(of, 250)
    chances = (pattern_chances(FAMILIES["consistent"], 3, leaked_share=leaked, cost=0.02) for leaked in (share, 0.0))
    both = [list(drawn_looks(of_arm, looks, audits=10, rng=rng)) for of_arm in chances]
    so_far = [ControlledAudits(*arms) for arms in zip(*both, strict=True)]
    found = stopped(looks, so_far, Limits.of(of), futility=of.scoring.design.futility)
    for place in range(10):
        hold(found, place, one_by_one(so_far, place, looks, of), looks)


def test_each_look_has_the_items_of_the_one_before_and_further_ones() -> None:
    looks = looks_of(of_design("default"), 40)
    chances = pattern_chances(FAMILIES["beta_2_1"], 3)
    so_far = list(drawn_looks(chances, looks, audits=2_000, rng=np.random.default_rng(1)))
    assert [int(audits.n[0]) for audits in so_far] == [look.n_items for look in looks]
    for before, after in pairwise(so_far):
        assert (after.counts >= before.counts).all()
        step = after.counts - before.counts
        np.testing.assert_allclose(step.sum(axis=0) / step.sum(), chances, atol=0.02)


def test_without_a_look_nothing_is_stopped() -> None:
    with pytest.raises(ValueError, match="without a look"):
        stopped((), (), Limits(), futility=0.0)


def test_what_is_simulated_in_clusters_is_cut_where_audits_are() -> None:
    rng, design = np.random.default_rng(5), DesignSection(kind="sequential")
    for _ in range(50):
        sizes = rng.integers(1, 30, size=int(rng.integers(1, 40)))
        labels = [f"c{place}" for place, size in enumerate(sizes) for _ in range(size)]
        items = [Item(item_id=f"{n}", question="?", target="1", cluster=label) for n, label in enumerate(labels)]
        wanted = look_sizes(design, len(items))
        parts = [part for part in cut_at(items, [size / len(items) for size in wanted]) if part]
        ends = whole_clusters(sizes, wanted)
        assert [int(sizes[:end].sum()) for end in ends] == np.cumsum([len(part) for part in parts]).tolist()


def test_an_audit_that_goes_on_is_not_counted_as_rejected_by_what_comes_after_its_stop() -> None:
    """A clean start that approves, and answers after it that would reject."""
    looks = looks_of(of_design("default"), 1_000)
    clean = np.zeros((1, 2, 4), dtype=np.int64)
    clean[0, 1, 3] = looks[0].n_items
    so_far = [SimulatedAudits(clean)]
    for look in looks[1:]:
        leaked = clean.copy()
        leaked[0, 1, 0] = look.n_items - looks[0].n_items
        so_far.append(SimulatedAudits(leaked))
    found = stopped(looks, so_far, Limits(), futility=0.15)
    assert (found.look.tolist(), found.approved.tolist(), found.rejected.tolist()) == ([1], [True], [False])
    assert so_far[-1].significant(0.001).tolist() == [True]
