"""A clean model from its decided audit into the record store, and from there into the audit of another."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from proctor.cli.main import main
from proctor.domain.card import ContentDigests
from proctor.domain.decision import DecisionEvent, DecisionOutcome
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.evidence import Verdict
from proctor.domain.manifest import ItemSet, VariantSet
from proctor.perturbation.library.fidelity import fidelities, with_controls
from proctor.router.inputs import AuditInputs
from proctor.runtime.artifacts.chunks import put_items, put_variants
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.runtime.records.store import Records
from proctor.runtime.settings import Settings
from proctor.scorer.page.html import render
from proctor.scorer.report.document import Report, to_json
from tests.report_samples import OnPassages, SampleAudit, approved, blocked, in_review
from tests.scored_audits import DIGEST, assemble, clean_models, score

GROUNDS = "its training data were gathered before the benchmark was written"
STRATEGY, BENCHMARK = "template+option_shuffle", "proctor-facts"


class Answer(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.out)
        return document


Declare = Callable[..., Answer]


def rewordings(sample: SampleAudit) -> VariantSet:
    return VariantSet(variants=tuple(sample.variants), rejections=tuple(sample.rejections), encoder="e")


class Home:
    """A home in which audits have been decided, without a stack."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        settings = Settings(home=folder)
        self.records, self.artifacts = Records(settings.records_url), LocalArtifacts(Path(settings.artifacts))

    def audited(self, sample: SampleAudit, *, decided: bool = True, report: Report | None = None) -> str:
        """Put an audit on record as the services leave it; its id."""
        items = put_items(self.artifacts, ItemSet(items=tuple(sample.items)))
        inputs = AuditInputs(
            items=items,
            perturbation=DIGEST,
            rewordings=None,
            contents=ContentDigests(),
            endpoint=EndpointSpec(backend="triton", url="grpc://local", served_name="m", model_version=DIGEST),
            variants=put_variants(self.artifacts, items, rewordings(sample)),
        )
        suite = sample.suite.model_dump_json(by_alias=True)
        audit_id = self.records.create_audit("subject", suite, inputs.plain()).audit_id
        if decided:
            found = report or sample.report()
            event = DecisionEvent(
                audit_id=audit_id,
                audit_suite_id=found.suite.audit_suite_id,
                model_id=found.subject.model_id,
                model_digest=found.subject.digest,
                outcome=found.decision.outcome,
                reasons=found.decision.reasons,
                fingerprint=found.fingerprint,
                protocol_digest=found.protocol_digest,
                report_digest=self.artifacts.put(to_json(found)),
                report_path="report.html",
                n_items=found.counts.items_audited,
            )
            assert self.records.decide(audit_id, event.plain())
        return audit_id


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "home")
    with closing(made.records):
        yield made


@pytest.fixture
def declare(home: Home, capfd: pytest.CaptureFixture[str]) -> Declare:
    """Runs `proctor variants fidelity` with these arguments, in that home."""

    def run(audit_id: str, *arguments: str, grounds: str = GROUNDS) -> Answer:
        code = main(["variants", "fidelity", audit_id, "--grounds", grounds, "--home", str(home.folder), *arguments])
        return Answer(code, *capfd.readouterr())

    return run


def test_what_rewording_cost_a_clean_model_is_recorded_from_its_decided_audit(home: Home, declare: Declare) -> None:
    sample = approved()
    report = sample.report()
    found = report.evidence.perturbation
    assert found is not None
    answer = declare(home.audited(sample, report=report), "--format", "json")
    assert answer.code == 0, answer.err
    document = answer.document
    assert (document["strategy"], document["benchmark"], document["items"]) == (STRATEGY, BENCHMARK, 397)
    assert document["rewordings"] == rewordings(sample).rewordings_digest
    assert document["cost_points"] == found.score_inflation.value
    assert document["cost_points_ci"] == [found.score_inflation.low, found.score_inflation.high]
    assert (document["decision"], document["new"], document["notes"]) == ("approve", True, [])
    assert "cost the clean model proctor/reference-clean" in document["conclusion"]
    (kept,) = fidelities(home.records, STRATEGY, BENCHMARK)
    assert (kept.digest, kept.grounds, kept.digest_verified) == (DIGEST, GROUNDS, True)


def test_the_same_declaration_again_is_nothing_new_and_other_grounds_are_refused(home: Home, declare: Declare) -> None:
    audit = home.audited(approved())
    assert "on record already" not in declare(audit).out
    assert "on record already" in declare(audit).out
    other = declare(audit, grounds="I changed my mind")
    assert (other.code, other.out) == (1, "")
    assert f"measured on the grounds {GROUNDS!r}" in other.err


def test_a_blocked_model_is_no_clean_control_unless_the_grounds_are_held_against_it(
    home: Home, declare: Declare
) -> None:
    audit = home.audited(blocked())
    refused = declare(audit)
    assert (refused.code, refused.out) == (2, "")
    assert "was blocked: proctor/reference-leaked lost" in refused.err
    assert "add --despite-block" in refused.err
    assert fidelities(home.records, STRATEGY, BENCHMARK) == ()
    accepted = declare(audit, "--despite-block")
    assert accepted.code == 0
    assert "the audit of proctor/reference-leaked was blocked; reports" in accepted.out
    assert fidelities(home.records, STRATEGY, BENCHMARK)[0].own_decision is DecisionOutcome.BLOCK


def test_an_audit_that_is_not_there_or_not_decided_is_refused(home: Home, declare: Declare) -> None:
    nowhere = declare("nowhere-1\x1b[2J")
    assert (nowhere.code, nowhere.out) == (2, "")
    assert "there is no audit 'nowhere-1" in nowhere.err
    assert "\x1b" not in nowhere.err
    undecided = declare(home.audited(approved(), decided=False))
    assert (undecided.code, undecided.out) == (2, "")
    assert "is not decided, its state is 'created'" in undecided.err


@pytest.mark.parametrize("grounds", ["", "  \n ", "x" * 301])
def test_a_declaration_without_grounds_or_with_a_treatise_is_refused(
    home: Home, declare: Declare, grounds: str
) -> None:
    answer = declare(home.audited(approved(n_items=60)), grounds=grounds)
    assert (answer.code, answer.out) == (2, "")
    assert "say in 1 to 300 why the model cannot have seen the benchmark" in answer.err


def test_a_cost_that_is_known_no_better_than_the_limit_controls_nothing(home: Home, declare: Declare) -> None:
    answer = declare(home.audited(approved(n_items=30)))
    assert (answer.code, answer.out) == (2, "")
    assert "with 27 items the cost of rewording is known to" in answer.err
    assert "audit the clean model with more items" in answer.err


def test_answers_that_cannot_be_compared_measure_no_cost(home: Home, declare: Declare) -> None:
    sample = approved(n_items=60)
    report = sample.report()
    protocol = report.evidence.protocol.model_copy(update={"verdict": Verdict.INVALID})
    incomparable = report.model_copy(update={"evidence": report.evidence.model_copy(update={"protocol": protocol})})
    answer = declare(home.audited(sample, report=incomparable))
    assert (answer.code, answer.out) == (2, "")
    assert "cannot be compared, so they measure no cost" in answer.err


def test_a_model_whose_weights_were_not_proven_is_recorded_with_a_note(home: Home, declare: Declare) -> None:
    answer = declare(home.audited(in_review(n_items=200)))
    assert answer.code == 0
    assert "note: the endpoint of acme/chat-7b did not prove which weights it serves" in answer.out
    assert not fidelities(home.records, STRATEGY, BENCHMARK)[0].digest_verified


def test_a_leaked_model_is_held_against_the_clean_one_and_its_report_says_so(home: Home, declare: Declare) -> None:
    # A digest of its own: every sample has the same one, and no model is its own control.
    clean, leaked = approved(), blocked()
    clean_report = clean.report()
    subject = clean_report.subject.model_copy(update={"digest": "sha256:" + "c" * 64})
    audit = home.audited(clean, report=clean_report.model_copy(update={"subject": subject}))
    assert declare(audit).code == 0
    made = with_controls(rewordings(leaked), home.records, STRATEGY, BENCHMARK)
    result = score(leaked.suite, leaked.items, leaked.asked, clean_models(leaked.manifest, made))
    assert result.decision.outcome is DecisionOutcome.BLOCK
    assert "excess_inflation_past_limit" in [reason.code for reason in result.decision.reasons]
    report = assemble(
        leaked.manifest,
        ItemSet(items=tuple(leaked.items)),
        made,
        result.answers,
        result.evidence,
        result.decision,
        versions={},
    )
    found = report.evidence.perturbation
    assert found is not None
    assert found.control is not None
    assert (found.control.model_id, found.control.same_rewordings) == ("proctor/reference-clean", False)
    assert Report.model_validate_json(to_json(report)) == report
    page = render(report)
    assert 'id="clean-control"' in page
    assert GROUNDS in page
    assert "told apart by what rewording cost" in page
    assert 'id="clean-control"' not in render(leaked.report())


def test_what_is_on_record_of_the_audited_model_itself_changes_nothing_but_a_sentence(
    home: Home, declare: Declare
) -> None:
    sample = approved()
    assert declare(home.audited(sample)).code == 0
    made = with_controls(rewordings(sample), home.records, STRATEGY, BENCHMARK)
    assert made.rewordings_digest == rewordings(sample).rewordings_digest
    alone = score(sample.suite, sample.items, sample.asked)
    again = score(sample.suite, sample.items, sample.asked, clean_models(sample.manifest, made))
    assert again.decision == alone.decision
    before, after = alone.evidence.perturbation, again.evidence.perturbation
    assert before is not None
    assert after is not None
    assert "no model is its own control" in after.reasons[-1]
    assert after.model_copy(update={"reasons": before.reasons}) == before


def test_nothing_on_record_changes_no_byte_of_the_variants(home: Home) -> None:
    made = rewordings(approved(n_items=30))
    assert with_controls(made, home.records, STRATEGY, BENCHMARK).model_dump_json() == made.model_dump_json()


def test_hostile_grounds_change_no_markup_of_the_page(home: Home, declare: Declare) -> None:
    clean, leaked = approved(), blocked(n_items=60)
    assert declare(home.audited(clean), grounds='</q><script>alert("x")</script>\u202e').code == 0
    made = with_controls(rewordings(leaked), home.records, STRATEGY, BENCHMARK)
    on_record = clean_models(leaked.manifest, made)._replace(model_digest="sha256:" + "e" * 64)
    result = score(leaked.suite, leaked.items, leaked.asked, on_record)
    items = ItemSet(items=tuple(leaked.items))
    page = render(assemble(leaked.manifest, items, made, result.answers, result.evidence, result.decision, versions={}))
    assert "&lt;script&gt;alert" in page
    assert "<script" not in page
    assert "\u202e" not in page


def test_a_clean_model_on_passages_is_known_as_well_as_its_report_says(home: Home, declare: Declare) -> None:
    audit = OnPassages(model_id="org/clean", per_passage=3, n_items=600, leaked=0.0)
    report = audit.report()
    answer = declare(home.audited(audit, report=report), "--format", "json")
    assert answer.code == 0
    [measured] = fidelities(home.records, STRATEGY, BENCHMARK)
    assert report.evidence.perturbation is not None
    assert measured.cost == report.evidence.perturbation.score_inflation
    assert "199 clusters" in measured.cost.method, "the last three items get no rewording"
    assert measured.accuracy == report.evidence.perturbation.accuracy_canonical


def test_too_few_passages_measure_no_cost(home: Home, declare: Declare) -> None:
    audit = OnPassages(model_id="org/clean", per_passage=40, n_items=600, leaked=0.0)
    answer = declare(home.audited(audit))
    assert answer.code == 2
    assert "measures no cost of rewording: The items come in 15 clusters" in answer.err
