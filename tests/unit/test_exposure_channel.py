"""The exposure channel of an audit: what a search says, what it never says, and the figures without the exposed."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from proctor.cli.audits.showing import print_status
from proctor.cli.audits.status_lines import conclusion, step
from proctor.domain.corpus_search import CorpusSearch, CorpusSpan, ItemFinding, SearchedStage, StageFinding
from proctor.domain.decision import Decision, DecisionOutcome
from proctor.domain.evidence import Verdict
from proctor.domain.exposure import AUDIT_POLICIES, MARKUP_REMOVED, NORMALISATION, OF_COPIES, ExposureVerdict
from proctor.domain.exposure_evidence import ExposureEvidence
from proctor.domain.suite import Suite
from proctor.evidence.answers import PairedAnswers
from proctor.evidence.exposure.channel import figures, weigh_search
from proctor.evidence.exposure.recall import MEASURED_WITH, RECALL_PCT
from proctor.evidence.perturbation.measured import measured_replicates
from proctor.evidence.replicated_answers import ReplicatedAnswers
from proctor.exposure import report as exposure_report
from proctor.exposure.policies import POLICIES, Measure
from proctor.gateway.convert import audit_message, status_of
from proctor.gateway.pages.progress import said_of
from proctor.gateway.status import AuditStatus
from proctor.runtime.records.audit_state import AuditState
from proctor.scorer.channels.exposure import CHANNEL
from proctor.scorer.policy import decide
from proctor.scorer.report.document import Report
from proctor.text import overlap_words
from tests.report_samples import approved, blocked
from tests.suites.examples import SMALL
from tests.support import REPOSITORY

N = 100


def finding(place: int, stages: tuple[str, ...]) -> ItemFinding:
    """An item that stands in the last of the stages that were searched, with its label."""
    *others, stage = stages
    nothing = StageFinding(is_exposed=False, has_label=False, containment=0.0, longest_run=0)
    return ItemFinding(
        item_id=f"q{place:03d}",
        verdict=ExposureVerdict.INVALID_EVIDENCE,
        reasons=(f"stands in {stage} data",),
        stages={
            **dict.fromkeys(others, nothing),
            stage: StageFinding(is_exposed=True, has_label=True, containment=1.0, longest_run=9),
        },
        spans=(
            CorpusSpan(
                stage=stage, part="question", start=0, end=40, words=9, text="What is that", file="sft.jsonl",
                document=3, offset=10,
            ),
        ),
    )  # fmt: skip


def search(
    n_exposed: int = 0, *, unscorable: int = 0, stages: tuple[str, ...] = ("tune",), **said: Any
) -> CorpusSearch:
    of = dict.fromkeys(ExposureVerdict, 0)
    of |= {
        ExposureVerdict.INVALID_EVIDENCE: n_exposed,
        ExposureVerdict.UNSCORABLE: unscorable,
        ExposureVerdict.CLEAN_COMPARABLE: N - n_exposed - unscorable,
    }
    return CorpusSearch(
        **{
            "policy": "verbatim_item",
            "rule": "of the question",
            "ngram": 5,
            "normalisation": "words-1",
            "stages": {
                stage: SearchedStage(files=1, documents=50, bytes=1_000, skipped=0, unread_bytes=0) for stage in stages
            },
            "n_items": N,
            "verdicts": of,
            "items": tuple(finding(place, stages) for place in range(n_exposed)),
            "unscorable": tuple(f"q{N - place - 1:03d}" for place in range(unscorable)),
            **said,
        }
    )


def answers() -> PairedAnswers:
    """The first ten items are known by their canonical wording alone, the others in every wording."""
    return PairedAnswers.of([f"q{place:03d}" for place in range(N)], [True] * N, [0] * 10 + [3] * 90, [3] * N)


def weighed(found: CorpusSearch, allowed_pct: float = 5.0) -> ExposureEvidence:
    return weigh_search(found, answers(), allowed_pct=allowed_pct, level=0.95)


def test_more_copies_in_training_data_than_are_allowed_are_suspicious() -> None:
    found = weighed(search(10))
    assert (found.verdict, found.n_exposed, found.exposed_pct) == (Verdict.CONTAMINATED, 10, 10.0)
    assert "10 of the 100 items (10.0 %) stand in the tune data by verbatim_item" in found.reasons[0]
    assert "10 of them with their label" in found.reasons[0]


def test_the_data_are_named_that_have_the_items_and_not_all_that_were_searched() -> None:
    found = weighed(search(10, stages=("pretrain", "tune")))
    assert "stand in the tune data by" in found.reasons[0]
    assert "found in the pretrain and tune data by" in weighed(search(stages=("pretrain", "tune"))).reasons[0]


def test_no_more_than_are_allowed_settle_nothing_of_the_others() -> None:
    found = weighed(search(5))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "within the 5 % that the suite allows" in found.reasons[0]


@pytest.mark.parametrize("policy", AUDIT_POLICIES)
def test_nothing_found_is_never_clean_and_says_by_which_policy_and_how_much_that_finds(policy: str) -> None:
    found = weighed(search(policy=policy, ngram=POLICIES[policy].n))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert f"by {policy}, which finds 100 % of verbatim copies" in found.reasons[0]
    assert "0 % of rephrased ones" in found.reasons[0]
    assert "no sign that they were not seen" in found.reasons[0]


def test_of_other_n_grams_than_the_policy_s_own_no_recall_is_claimed() -> None:
    found = weighed(search(ngram=9))
    assert found.recall_pct == {}
    assert "was not measured with 9-grams" in found.reasons[0]


def test_a_policy_that_counts_phrases_contaminates_nothing_however_many_it_finds() -> None:
    for policy in set(AUDIT_POLICIES) - OF_COPIES:
        found = weighed(search(60, policy=policy, ngram=13))
        assert found.verdict is Verdict.INCONCLUSIVE
        assert not found.allows_approval
        assert "no more than a phrase" in found.reasons[1]


def test_data_that_could_not_be_read_make_it_invalid_whatever_was_found() -> None:
    found = weighed(search(50, invalid="12 % of the corpus could not be read"))
    assert found.verdict is Verdict.INVALID
    assert "12 % of the corpus" in found.reasons[0]


def test_that_no_tuning_data_were_searched_is_said() -> None:
    assert any("stage of tuning" in reason for reason in weighed(search(stages=("pretrain",))).reasons)
    assert not any("stage of tuning" in reason for reason in weighed(search(stages=("pretrain", "tune"))).reasons)


def test_the_figures_stand_with_all_items_without_the_exposed_and_of_these_alone() -> None:
    found = weighed(search(10))
    assert found.all_items == figures(answers(), 0.95)
    assert found.all_items is not None
    assert found.without_exposed is not None
    assert found.exposed_only is not None
    assert (found.all_items.n_items, found.without_exposed.n_items, found.exposed_only.n_items) == (100, 90, 10)
    assert found.all_items.score_inflation.value == pytest.approx(10.0)
    assert found.without_exposed.score_inflation.value == pytest.approx(0.0)
    assert found.exposed_only.score_inflation.value == pytest.approx(100.0)


def test_where_prompts_were_asked_several_times_the_figures_are_over_each_wording_s_share() -> None:
    known, unknown = [[2, 0]] * 10, [[2, 2]] * 90
    several = ReplicatedAnswers(answers().item_ids, np.array(known + unknown), np.full((N, 2), 2))
    found = weigh_search(search(10), several, allowed_pct=5.0, level=0.95)
    assert found.all_items is not None
    assert found.without_exposed is not None
    assert found.exposed_only is not None
    decides = measured_replicates(several, level=0.95, alpha=0.05)
    assert (found.all_items.score_inflation, found.all_items.contamination_score) == (decides.inflation, decides.score)
    assert (found.without_exposed.n_items, found.exposed_only.n_items) == (90, 10)
    assert found.exposed_only.score_inflation.value == pytest.approx(100.0)
    alone = weigh_search(search(1), several, allowed_pct=5.0, level=0.95).exposed_only
    assert alone is not None
    assert alone.n_items == 1


def test_without_an_exposed_item_nothing_is_said_of_such_and_without_any_other_nothing_of_the_rest() -> None:
    assert weighed(search()).exposed_only is None
    everyone = search(N)
    assert weighed(everyone).without_exposed is None


def deciding(found: ExposureEvidence, report: Report, *, required: bool) -> Decision:
    channels = ("perturbation", "protocol", *(["exposure"] if required else []))
    scoring = report.suite.scoring.model_copy(update={"required_channels": channels})
    evidence = report.evidence.model_copy(update={"exposure": found, "not_audited": {}})
    return decide(evidence, report.suite.model_copy(update={"scoring": scoring}))


@pytest.mark.parametrize(
    ("found", "optional", "required"),
    [
        (search(), DecisionOutcome.APPROVE, DecisionOutcome.APPROVE),
        (search(5), DecisionOutcome.APPROVE, DecisionOutcome.APPROVE),
        (search(10), DecisionOutcome.REVIEW, DecisionOutcome.REVIEW),
        (search(3, unscorable=3), DecisionOutcome.APPROVE, DecisionOutcome.REVIEW),
        (search(unscorable=N), DecisionOutcome.APPROVE, DecisionOutcome.REVIEW),
        (search(invalid="nothing was read"), DecisionOutcome.APPROVE, DecisionOutcome.REVIEW),
    ],
)
def test_what_the_gate_makes_of_it(found: CorpusSearch, optional: DecisionOutcome, required: DecisionOutcome) -> None:
    """It never lowers another channel's evidence, and a suite that requires it is approved within its own limit."""
    report = approved(n_items=400).report()
    assert report.decision.outcome is DecisionOutcome.APPROVE
    assert deciding(weighed(found), report, required=False).outcome is optional
    assert deciding(weighed(found), report, required=True).outcome is required


def test_the_reason_of_a_review_says_what_was_found_and_not_that_the_model_remembers_it() -> None:
    report = approved(n_items=400).report()
    exposed = deciding(weighed(search(10)), report, required=False).reasons[0]
    assert exposed.code == "exposure_contaminated"
    assert exposed.text.startswith("Items were in the training data: 10 of the 100 items (10.0 %) stand in the tune")
    short = deciding(weighed(search(3, unscorable=3)), report, required=True).reasons[0]
    assert short.code == "exposure_inconclusive"
    assert "3 of 100 items were found, and 3 are too short" in short.text


def test_a_blocked_model_stays_blocked_whatever_was_not_found() -> None:
    report = blocked().report()
    decided = deciding(weighed(search()), report, required=True).outcome
    assert decided is report.decision.outcome is DecisionOutcome.BLOCK


def test_the_page_has_the_figures_and_where_the_items_stand() -> None:
    shown, spans = CHANNEL.sections(weighed(search(10)))
    assert [row[0] for row in shown.rows] == [
        "all items", "without those in training data", "those in training data alone",
    ]  # fmt: skip
    assert [row[1] for row in shown.rows] == ["100", "90", "10"]
    assert len(spans.rows) == 10
    assert spans.rows[0][4] == "sft.jsonl:3"
    (alone,) = CHANNEL.sections(weighed(search()))
    assert alone.rows[2][1] == "0"


def test_the_limits_say_what_the_policy_misses_and_that_the_exposed_still_count() -> None:
    suite = Suite.model_validate(SMALL)
    assert [one.code for one in CHANNEL.limitations(suite, weighed(search()))] == ["exposure_by_policy"]
    codes = [one.code for one in CHANNEL.limitations(suite, weighed(search(10)))]
    assert codes == ["exposure_by_policy", "exposed_items_counted"]
    assert CHANNEL.limitations(suite, None) == ()


def test_the_policies_that_a_suite_may_name_are_those_there_are_but_the_one_of_sets_of_tokens() -> None:
    assert {name for name, policy in POLICIES.items() if policy.measure is not Measure.TOKENS} >= set(AUDIT_POLICIES)
    assert set(AUDIT_POLICIES) >= OF_COPIES
    assert (overlap_words.NORMALISATION, exposure_report.MARKUP_REMOVED) == (NORMALISATION, MARKUP_REMOVED)


def test_the_recall_that_reports_claim_is_the_page_s() -> None:
    page = (REPOSITORY / "docs" / "exposure.md").read_text("utf-8")
    table = page.split("<!-- recall -->")[1].split("<!-- /recall -->")[0].strip().splitlines()
    names = re.findall(r"`([a-z0-9_]+)`", table[0])
    rows = {
        cells[0]: cells[1:] for line in table[2:] if (cells := [cell.strip() for cell in line.strip("|").split("|")])
    }
    assert set(RECALL_PCT) == set(AUDIT_POLICIES)
    for policy, recall in RECALL_PCT.items():
        assert {name: float(rows[name][names.index(policy)]) for name in recall} == recall
        assert MEASURED_WITH[policy] == POLICIES[policy].n


def test_an_audit_that_waits_for_its_search_alone_says_so() -> None:
    def status(state: AuditState, *, searching: bool = True) -> AuditStatus:
        return AuditStatus(audit_id="a", suite="s", model_id="m", state=state, searching=searching)

    assert step(status(AuditState.SCORING)) == "searching training data"
    assert step(status(AuditState.SCORING, searching=False)) == "weighing the evidence"
    assert step(status(AuditState.ANSWERING)) == "answering"
    assert conclusion(status(AuditState.SCORING)).endswith("is under way: searching training data.")
    assert said_of(status(AuditState.SCORING)) == "Audit waiting for the search of its training data."
    for searching in (True, False):
        sent = status(AuditState.ANSWERING, searching=searching)
        assert status_of(audit_message(sent)).searching is searching


def test_the_status_says_beside_the_answers_that_a_search_is_under_way(capsys: pytest.CaptureFixture[str]) -> None:
    for state, is_said in ((AuditState.ANSWERING, True), (AuditState.SCORING, False)):
        print_status(AuditStatus(audit_id="a", suite="s", model_id="m", state=state, searching=True))
        assert ("training data are being searched" in capsys.readouterr().out) is is_said
