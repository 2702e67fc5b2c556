"""Audits of items that come in clusters: from the suite's field to the decision, the report and the plan."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proctor.cli.audits.plan_results import document, print_plan
from proctor.domain.decision import DecisionOutcome
from proctor.domain.errors import BadInputError
from proctor.domain.evidence import Evidence, PerturbationEvidence, ProtocolEvidence, Verdict
from proctor.domain.suite import Suite
from proctor.evidence.answers import PairedAnswers
from proctor.evidence.perturbation.channel import perturbation_evidence
from proctor.evidence.planning.clustered_audits import ClusteredAudits, ClusterSizes
from proctor.evidence.planning.families import FAMILIES
from proctor.evidence.planning.pattern_chances import pattern_chances
from proctor.evidence.planning.simulated_audits import Limits
from proctor.scorer.channels.perturbation import CHANNEL
from proctor.scorer.page.html import render
from proctor.scorer.policy import decide
from proctor.scorer.report.document import Report, RunFacts, to_json
from proctor.studies.plan import plan_audit
from tests.report_samples import OnPassages, SampleAudit
from tests.suites.examples import with_changes

COMPARABLE = ProtocolEvidence(verdict=Verdict.CLEAN, reasons=("Alike.",), arms=())


def perturbation_of(report: Report) -> PerturbationEvidence:
    assert report.evidence.perturbation is not None
    return report.evidence.perturbation


def unclustered(audit: SampleAudit) -> Report:
    audit.items = [item.model_copy(update={"cluster": None}) for item in audit.items]
    return audit.report()


def test_a_clean_model_on_passages_of_ten_is_not_blocked_and_known_less_well() -> None:
    audit = OnPassages(per_passage=10, n_items=500, leaked=0.0)
    clustered = audit.report()
    alone = unclustered(audit)
    found, apart = perturbation_of(clustered), perturbation_of(alone)
    assert clustered.decision.outcome is not DecisionOutcome.BLOCK
    assert found.score_inflation.value == pytest.approx(apart.score_inflation.value)
    for name in ("score_inflation", "contamination_score", "accuracy_canonical", "accuracy_perturbed"):
        wide, narrow = getattr(found, name), getattr(apart, name)
        assert wide.high - wide.low > narrow.high - narrow.low, name
    assert found.p_value >= apart.p_exchangeability
    assert found.minimum_detectable_points > apart.minimum_detectable_points
    assert found.items_needed_to_approve is not None
    assert apart.items_needed_to_approve is not None
    assert found.items_needed_to_approve > apart.items_needed_to_approve
    arms = {arm.arm: arm.accuracy for arm in clustered.evidence.protocol.arms}
    assert arms["canonical"] == found.accuracy_canonical


def test_a_contaminated_model_on_many_passages_is_blocked_and_flags_what_is_sure() -> None:
    report = OnPassages(per_passage=4, n_items=600, leaked=0.24, knows=0.6).report()
    found = perturbation_of(report)
    assert report.decision.outcome is DecisionOutcome.BLOCK
    assert found.score_inflation.low is not None
    assert sum(item.flagged for item in found.items) == int(found.score_inflation.low / 100 * found.n_items)


@pytest.mark.parametrize(("leaked", "method"), [(0.0, "stratified"), (0.3, "stratified"), (0.3, "per_item_t_test")])
def test_from_fewer_than_twenty_passages_nothing_is_concluded(leaked: float, method: str) -> None:
    changes = {"scoring_config": {"method": method}}
    report = OnPassages(per_passage=30, n_items=570, leaked=leaked, knows=0.6, changes=changes).report()
    found = perturbation_of(report)
    assert found.clusters is not None
    assert (found.clusters.n_clusters, found.clusters.enough) == (19, False)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "19 clusters" in found.reasons[0]
    assert report.decision.outcome is DecisionOutcome.REVIEW
    assert [reason.code for reason in report.decision.reasons] == ["too_few_clusters"]
    assert not any(item.flagged for item in found.items)


def test_one_passage_for_all_items_makes_a_page_all_the_same() -> None:
    report = OnPassages(per_passage=60, n_items=60, leaked=0.1).report()
    assert perturbation_of(report).score_inflation.low is None
    assert "1 cluster" in render(report, run=RunFacts(), digest="sha256:" + "0" * 64)


def test_the_report_says_what_its_figures_are_over() -> None:
    report = OnPassages(per_passage=7, n_items=210, leaked=0.0).report()
    found = perturbation_of(report)
    assert found.clusters is not None
    # The last three items got no rewording, so the last passage has four.
    effective = 207**2 / (29 * 49 + 16)
    assert found.clusters.plain() == {
        "n_clusters": 30, "effective": pytest.approx(effective), "largest": 7, "enough": True,
    }  # fmt: skip
    assert json.loads(to_json(report))["evidence"]["perturbation"]["clusters"]["n_clusters"] == 30
    assert "30 clusters" in found.score_inflation.method
    page = render(report, run=RunFacts(), digest="sha256:" + "0" * 64)
    assert "they tell as much as 29.8 of equal size" in page
    assert "studentised mean over clusters" in page
    limit = next(limit.text for limit in report.limits if limit.code == "clustered_items")
    assert "30 clusters, the largest of 7 items, which tell as much as 29.8 of equal size" in limit
    printed = CHANNEL.printed(found.plain(), Path())
    assert printed is not None
    assert "30 clusters" in printed.line


def test_passages_of_one_item_leave_every_byte_of_the_report_as_it_was() -> None:
    audit = OnPassages(per_passage=1, n_items=90, leaked=0.1)
    report = to_json(audit.report())
    assert report == to_json(unclustered(audit))
    assert b"cluster" not in report.replace(b"clustered by item", b"")


def test_related_items_of_a_suite_that_names_no_clusters_are_a_limitation() -> None:
    audit = SampleAudit(n_items=120, leaked=0.0)
    passages = [
        f"The town of number {place} was founded in a valley that nobody had seen before the railway came, and its "
        "people lived on what the forest gave them until the mine was opened."
        for place in range(30)
    ]
    audit.items = [
        item.model_copy(update={"question": f"{passages[place // 4]} {item.question}"})
        for place, item in enumerate(audit.items)
    ]
    report = audit.report()
    found = perturbation_of(report)
    assert found.unnamed_groups is not None
    assert found.unnamed_groups.n_items == 120
    text = next(limit.text for limit in report.limits if limit.code == "items_not_independent")
    assert text.startswith("120 items share a passage, a table or a template with others")
    assert '"@context"' in text


@dataclass(frozen=True)
class Drawn:
    """Simulated audits, and the same answers item by item."""

    simulated: ClusteredAudits
    answers: list[PairedAnswers]


def drawn(sizes: list[int], audits: int, *, family: str, share: float, seed: int) -> Drawn:
    rng = np.random.default_rng(seed)
    chances = pattern_chances(FAMILIES[family], 3, leaked_share=share)
    counts = np.stack([rng.multinomial(size, chances.ravel(), size=audits) for size in sizes], axis=1)
    answers = []
    for audit in counts:
        rows = [
            (place, pattern)
            for place, cluster in enumerate(audit)
            for pattern, n in enumerate(cluster)
            for _ in range(n)
        ]
        answers.append(
            PairedAnswers.of(
                [str(number) for number in range(len(rows))],
                [pattern >= 4 for _, pattern in rows],
                [pattern % 4 for _, pattern in rows],
                [3] * len(rows),
                clusters=[str(place) for place, _ in rows],
            )
        )
    return Drawn(ClusteredAudits.of(counts.reshape(audits, len(sizes), 2, 4)), answers)


@pytest.mark.parametrize("chance", [None, 0.4])
@pytest.mark.parametrize("family", ["consistent", "beta_1_1"])
def test_every_simulated_decision_over_clusters_is_the_gates_own(family: str, chance: float | None) -> None:
    limits = {
        "scoring_config.max_allowed_contaminated_items_pct": 12.0,
        "scoring_config.contamination_threshold": 0.2,
        "governance.block_deployment_above_contaminated_pct": 12.0,
    }
    suite = Suite.model_validate(with_changes(limits))
    seen = set()
    for seed, (sizes, share) in enumerate([([5] * 19, 0.0), ([3] * 60, 0.0), ([1, 2, 9] * 20, 0.25), ([2] * 90, 0.2)]):
        these = drawn(sizes, 12, family=family, share=share, seed=seed)
        approved, blocked = these.simulated.decisions(Limits.of(suite, chance))
        significant = these.simulated.significant(0.05)
        for place, answers in enumerate(these.answers):
            result = perturbation_evidence(answers, suite.scoring, suite.governance, chance)
            outcome = decide(Evidence(perturbation=result, protocol=COMPARABLE, not_audited={}), suite).outcome
            assert approved[place] == (outcome is DecisionOutcome.APPROVE)
            assert blocked[place] == (outcome is DecisionOutcome.BLOCK)
            assert significant[place] == (result.p_value < 0.05)
            for bounds, estimate in (
                (these.simulated.inflation(0.95), result.score_inflation),
                (these.simulated.contamination_score(0.95), result.contamination_score),
            ):
                assert [array[place] for array in bounds] == pytest.approx(
                    [estimate.value, estimate.low, estimate.high]
                )
            seen.add(outcome)
    assert DecisionOutcome.REVIEW in seen
    assert len(seen) > 1


def test_simulated_clusters_have_the_sizes_that_are_asked_for_and_share_what_is_said() -> None:
    sizes = ClusterSizes.of([str(place) for place in (0, 0, 0, 1, 2, 2)])
    assert sizes is not None
    assert sizes.of_items(15).tolist() == [3, 1, 2, 3, 1, 2, 3]
    assert sizes.of_items(14).tolist() == [3, 1, 2, 3, 1, 2, 2]
    assert ClusterSizes.of(["a", "b"]) is None
    chances = pattern_chances(FAMILIES["beta_1_1"], 3)
    found = ClusteredAudits.simulate(chances, np.full(400, 6), audits=200, rng=np.random.default_rng(1))
    assert found.counts.sum(axis=(1, 2)).tolist() == [2_400] * 200
    np.testing.assert_allclose(found.counts.sum(axis=0) / found.counts.sum(), chances, atol=0.01)
    d = np.arange(2)[:, None] - np.arange(4) / 3
    spread = float((chances * d * d).sum() - (chances * d).sum() ** 2)
    # Of two answers of a cluster a quarter are the cluster's own, both: 1 + 5/4 times the spread of one.
    assert found.d.var() / 6 / spread == pytest.approx(1 + 5 * 0.25, rel=0.02)


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Suite]:
    def write(passages: int, per_passage: int, **dataset: Any) -> Suite:
        rows = [
            {"question": f"{place}?", "answer": "1", "passage": f"p{place // per_passage}"}
            for place in range(passages * per_passage)
        ]
        (tmp_path / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        section = {"benchmark_name": "own", "path": "items.jsonl", "sample_size": passages * per_passage, **dataset}
        return Suite.model_validate({**with_changes({}), "dataset_config": section})

    return write


def test_a_plan_is_over_clusters_and_says_so(
    written: Callable[..., Suite], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clustered = plan_audit(written(40, 10, cluster_field="passage"), tmp_path, tmp_path, audits=300)
    alone = plan_audit(written(40, 10), tmp_path, tmp_path, audits=300)
    assert clustered.clusters is not None
    assert clustered.clusters.n_clusters == 40
    assert clustered.own.approval_chance < alone.own.approval_chance - 0.2
    assert clustered.own.detectable_share is not None
    assert alone.own.detectable_share is not None
    assert clustered.own.detectable_share > 1.3 * alone.own.detectable_share
    assert clustered.items_for_90 is not None
    assert alone.items_for_90 is not None
    assert clustered.items_for_90 > 1.5 * alone.items_for_90
    print_plan(clustered)
    out = capsys.readouterr().out
    assert "400 of 400 items in 40 clusters" in out
    assert "in further clusters of these sizes, give 90 %" in out
    assert document(clustered)["clusters"]["n_clusters"] == 40
    assert "clusters" not in document(alone)


def test_a_plan_of_too_few_clusters_approves_nothing_and_says_why(
    written: Callable[..., Suite], tmp_path: Path
) -> None:
    plan = plan_audit(written(15, 10, cluster_field="passage"), tmp_path, tmp_path, audits=100)
    assert plan.own.approval_chance == 0.0
    assert any("with fewer than 20 clusters the gate can only review" in note for note in plan.notes)


def test_a_column_that_no_row_has_is_refused_by_its_name(written: Callable[..., Suite], tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="no row has a value in the column 'chapter'"):
        plan_audit(written(4, 2, cluster_field="chapter"), tmp_path, tmp_path)
