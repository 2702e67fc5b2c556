"""What rewordings would have to cost a clean model to explain a block, and where a report says so."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from proctor.cli.audits.auditing import AuditResult
from proctor.cli.audits.results import print_results
from proctor.domain.decision import DecisionOutcome
from proctor.domain.evidence import Evidence, ProtocolEvidence, Verdict
from proctor.domain.fidelity import Fidelity
from proctor.domain.suite import Suite
from proctor.evidence.answers import PairedAnswers
from proctor.evidence.perturbation.channel import perturbation_evidence
from proctor.evidence.perturbation.clean_control import NO_CONTROL, ChosenControl
from proctor.evidence.perturbation.held import Held, limits_passed
from proctor.evidence.perturbation.rewording_cost import CODE, explaining_cost, not_on_record
from proctor.perturbation.library.fidelity import CleanModel, measure_fidelity
from proctor.router.ledger.types import Progress
from proctor.scorer.page.html import render
from proctor.scorer.policy import decide
from proctor.scorer.report.document import Report, to_json
from proctor.scorer.report.event import event_of
from tests.report_samples import approved, blocked, in_review
from tests.unit.samples import paired, samples

#: 600 items, 540 right canonically, of which 90 are lost on rewordings: D is 15 points.
LEAKED = paired([1] * 540 + [0] * 60, [3] * 450 + [0] * 150, [3] * 600)
#: Items of a clean model whose cost is known within some hundredths of a point.
MANY = 200_000


def suite(scoring: dict[str, Any] | None = None, governance: dict[str, Any] | None = None) -> Suite:
    return Suite.model_validate(
        {
            "audit_suite_id": "facts",
            "model_config": {"model_id": "m", "model_version": "sha256:a1b2c3d4e5f6", "endpoint": "local"},
            "dataset_config": {"benchmark_name": "facts"},
            "scoring_config": scoring or {},
            "governance": governance or {},
        }
    )


def clean_model(accuracy: float, cost: float) -> Fidelity:
    """A clean model with this canonical accuracy, which rewording costs so many points."""
    right, lost = round(accuracy * MANY), round(cost / 100 * MANY)
    answers = paired([1] * right + [0] * (MANY - right), [3] * (right - lost) + [0] * (MANY - right + lost), [3] * MANY)
    model = CleanModel("clean", "sha256:" + "c" * 64, "made for this test")
    return measure_fidelity(answers, strategy="wordings", benchmark="b", variants="sha256:5", model=model)


def outcome(answers: PairedAnswers, of: Suite, control: Fidelity | None) -> DecisionOutcome:
    chosen = NO_CONTROL if control is None else ChosenControl(control, same_rewordings=True)
    found = perturbation_evidence(answers, of.scoring, of.governance, None, chosen)
    comparable = ProtocolEvidence(verdict=Verdict.CLEAN, reasons=(), arms=())
    return decide(Evidence(perturbation=found, protocol=comparable, not_audited={}), of).outcome


@pytest.mark.parametrize(
    "scoring",
    [{}, {"contamination_threshold": 0.02}, {"contamination_threshold": 0.9}],
    ids=["both limits", "the score's needs the larger cost", "only D's is passed"],
)
def test_a_clean_model_with_that_cost_on_record_turns_the_block_into_a_review_and_one_with_less_does_not(
    scoring: dict[str, Any],
) -> None:
    """Against the gate itself, with a control whose own uncertainty is next to nothing."""
    of = suite(scoring)
    found = perturbation_evidence(LEAKED, of.scoring, of.governance, None)
    cost = explaining_cost(found, of.scoring, of.governance).of_block
    assert cost is not None
    assert outcome(LEAKED, of, None) is DecisionOutcome.BLOCK
    assert outcome(LEAKED, of, clean_model(0.9, cost + 0.2)) is DecisionOutcome.REVIEW
    assert outcome(LEAKED, of, clean_model(0.9, cost - 0.2)) is DecisionOutcome.BLOCK


def test_the_costs_are_what_the_lower_bounds_are_past_their_limits_and_d_itself() -> None:
    of = suite()
    found = perturbation_evidence(LEAKED, of.scoring, of.governance, None)
    low, low_score = found.score_inflation.low, found.contamination_score.low
    assert low is not None
    assert low_score is not None
    cost = explaining_cost(found, of.scoring, of.governance)
    assert cost.of_block == pytest.approx(max(low - 5, 90 * (low_score - 0.10)))
    assert cost.of_inflation == pytest.approx(15)


@given(samples())
def test_a_cost_explains_a_block_exactly_where_a_limit_is_passed_and_never_more_than_d(answers: PairedAnswers) -> None:
    of = suite({"significance_alpha": 0.5, "contamination_threshold": 0.02})
    found = perturbation_evidence(answers, of.scoring, of.governance, None)
    cost = explaining_cost(found, of.scoring, of.governance)
    passed = limits_passed(Held.of(found)._replace(p_value=0.0), of.scoring, of.governance)
    assert (cost.of_block is not None) is bool(passed)
    if cost.of_block is not None:
        assert cost.of_inflation is not None
        assert 0 < cost.of_block <= cost.of_inflation + 1e-9


@pytest.fixture(scope="module")
def report() -> Report:
    return blocked().report()


def _text(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).replace("\N{NO-BREAK SPACE}", " ").split())


def test_the_report_of_a_block_without_a_control_names_the_costs_and_the_command_that_records_one(
    report: Report, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = report.evidence.perturbation
    assert found is not None
    cost = explaining_cost(found, report.suite.scoring, report.suite.governance)
    assert cost.of_block is not None
    assert cost.of_inflation is not None
    (limit,) = [limit for limit in report.limits if limit.code == CODE]
    named = [float(number) for number in re.findall(r"([0-9.]+) points", limit.text)]
    assert named == [pytest.approx(cost.of_block, abs=0.1), pytest.approx(cost.of_inflation, abs=0.1)]
    assert named[0] >= cost.of_block
    assert named[1] >= cost.of_inflation
    assert 'proctor variants fidelity AUDIT --grounds "…"' in limit.text
    assert f"Clean model as control {limit.text}" in _text(render(report))
    document = json.loads(to_json(report))
    assert {"code": CODE, "text": limit.text} in document["limits"]
    progress = Progress(planned=1, done=1, leased=0, dead=0)
    event = event_of("a", report, "sha256:0", "report.html")
    ended = AuditResult("a", event, document, tmp_path / "report.html", progress, None)
    print_results([ended])
    assert limit.text in capsys.readouterr().out
    assert ended.summary()["harder_wordings"] == limit.text


@pytest.mark.parametrize("make", [approved, in_review])
def test_no_other_decision_speaks_of_it(make: Any, tmp_path: Path) -> None:
    other = make().report()
    assert CODE not in {limit.code for limit in other.limits}
    assert 'id="no-clean-control"' not in render(other)


def test_where_a_clean_model_is_on_record_the_block_says_nothing_of_it() -> None:
    of = suite()
    chosen = ChosenControl(clean_model(0.9, 0.0), same_rewordings=True)
    found = perturbation_evidence(LEAKED, of.scoring, of.governance, None, chosen)
    assert found.control is not None
    assert not_on_record(found, of.scoring, of.governance) is None


def test_a_block_by_the_article_s_rule_names_no_cost_that_would_lift_it() -> None:
    """It knows no control, so that no cost takes the block away; and of a D of 0 there is nothing to explain."""
    of = suite({"method": "per_item_t_test"})
    lucky = paired([1] * 60 + [0] * 60 + [1] * 480, [0] * 60 + [3] * 60 + [3] * 480, [3] * 600)
    found = perturbation_evidence(lucky, of.scoring, of.governance, None)
    assert explaining_cost(found, of.scoring, of.governance) == (None, None)
    limit = not_on_record(found, of.scoring, of.governance)
    assert limit is not None
    assert "points" not in limit.text
    both = perturbation_evidence(LEAKED, of.scoring, of.governance, None)
    cost = explaining_cost(both, of.scoring, of.governance)
    assert cost.of_block is None
    assert cost.of_inflation == pytest.approx(15)
