"""A channel of another distribution, from the suite to the page: the recipe of docs/extending.md as it stands there."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from proctor.cli.audits.auditing import AuditResult
from proctor.cli.audits.plan_results import document
from proctor.cli.audits.results import print_results
from proctor.domain.decision import Decision, DecisionEvent, DecisionOutcome
from proctor.domain.errors import StoreError
from proctor.domain.estimate import Estimate
from proctor.domain.evidence import Evidence, Verdict
from proctor.domain.item import Item
from proctor.domain.plugins import declared
from proctor.domain.suite import Suite
from proctor.domain.suite_problems import SuiteProblems, parse_suite
from proctor.domain.suite_schema import suite_schema
from proctor.router.ledger.store import Progress
from proctor.scorer.channels.channel import ChannelInputs
from proctor.scorer.channels.plugin_calls import weigh_plugin
from proctor.scorer.channels.registry import CHANNELS
from proctor.scorer.grading.rows import RowsBuilder
from proctor.scorer.page.html import render
from proctor.scorer.report.document import Report, to_json
from proctor.studies.plan import plan_audit
from tests.installed_plugins import install
from tests.recipes import recipe
from tests.report_samples import SampleAudit, approved, blocked, poisoned
from tests.scored_audits import score

GROUP = "proctor.channels"
Install = Callable[..., None]


PROJECT: dict[str, Any] = tomllib.loads(recipe("A channel", "toml"))["project"]
REQUIRED: list[str] = json.loads(recipe("A channel", "json"))["scoring_config"]["required_channels"]
(NAME,) = PROJECT["entry-points"][GROUP]
BROKEN = """
from proctor.domain.channel_results import OtherEvidence, Section, Verdict
from proctor.domain.errors import StoreError
from proctor.domain.limitation import Limitation
from proctor.scorer.channels.channel import Channel, ChannelPlan, NotAudited

class Toy(Channel):
    compares, null_hypothesis, needs, gap = "This against that.", "They are equal.", "a file", "It was not looked at."
    def __init__(self, weigh=None, limitations=None, plan=None):
        self._weigh, self._limitations, self._plan = weigh, limitations, plan
    def weigh(self, inputs):
        return self._weigh(self, inputs) if self._weigh else self.found(Verdict.CLEAN, "All is well.")
    def limitations(self, suite, result):
        return self._limitations() if self._limitations else ()
    def plan(self, suite, items):
        return self._plan() if self._plan else ChannelPlan()

class Sly(OtherEvidence):
    more: str = "x"

def ragged(channel):
    table = Section(title="", introduction="", label="", columns=("one", "two"), rows=(("1",),))
    return channel.found(Verdict.CLEAN, "A table.", section=table)

def endless(channel):
    return channel.found(Verdict.CLEAN, *["Once more."] * 21)

def overwrites(inputs):
    inputs.rows.states[:] = 0

class Unread:
    def __iter__(self):
        raise StoreError("the store is away")

RAISES = Toy(lambda channel, inputs: 1 / 0)
NOTHING = Toy(lambda channel, inputs: None)
WORDS = Toy(lambda channel, inputs: "clean")
WITHOUT_REASON = Toy(lambda channel, inputs: channel.found(Verdict.CONTAMINATED))
SURROGATE = Toy(lambda channel, inputs: channel.found(Verdict.CLEAN, "\\ud83d"))
UNKNOWN_VERDICT = Toy(lambda channel, inputs: channel.found("splendid", "It is."))
RAGGED = Toy(lambda channel, inputs: ragged(channel))
ENDLESS = Toy(lambda channel, inputs: endless(channel))
OVERWRITES = Toy(lambda channel, inputs: overwrites(inputs))
ABSENT = Toy(lambda channel, inputs: NotAudited("there is no file \\ud83d"))
ODD_ABSENT = Toy(lambda channel, inputs: channel.found(Verdict.NOT_AUDITED, "there is no file"))
SLY = Toy(lambda channel, inputs: Sly(**channel.found(Verdict.CLEAN, "All is well.").model_dump()))
UNREAD = Toy(lambda channel, inputs: list(Unread()))
LIMITS_RAISE = Toy(limitations=lambda: 1 / 0)
LIMITS_ODD = Toy(limitations=lambda: 7)
PLAN_RAISES = Toy(plan=lambda: 1 / 0)
PLAN_ODD = Toy(plan=lambda: ["x"])
"""


def _forget() -> None:
    declared.cache_clear()
    for name in set(CHANNELS._loaded) - set(CHANNELS.built_in):
        del CHANNELS._loaded[name]
    for module in ("published_channel", "toy_channel"):
        sys.modules.pop(module, None)


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    _forget()
    yield
    _forget()


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recipe's distribution, installed."""
    points = PROJECT["entry-points"]
    modules = {"published_channel": recipe("A channel")}
    folder = install(tmp_path / "dist", modules, points, name=PROJECT["name"], version=PROJECT["version"])
    monkeypatch.syspath_prepend(str(folder))
    declared.cache_clear()


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a channel `toy` that is one of the broken ones."""

    def installed(attribute: str, source: str = BROKEN) -> None:
        points = {GROUP: {"toy": f"toy_channel:{attribute}"}}
        monkeypatch.syspath_prepend(str(install(tmp_path / "toy", {"toy_channel": source}, points)))
        declared.cache_clear()

    return installed


def requiring(*channels: str, **more: Any) -> dict[str, Any]:
    return {"scoring_config": {"required_channels": channels, **more}}


def dated(sample: SampleAudit, day: Callable[[Item], str]) -> SampleAudit:
    sample.items = [item.model_copy(update={"metadata": {"published": day(item)}}) for item in sample.items]
    return sample


def alike(sample: SampleAudit) -> SampleAudit:
    """Every other item is from after the end of the training data."""
    return dated(sample, lambda item: "2024-05-01" if int(item.item_id[-4:]) % 2 else "2024-09-01")


def remembered(sample: SampleAudit) -> SampleAudit:
    """What the model does not know is from after the end of the training data."""
    return dated(sample, lambda item: "2024-05-01" if item.item_id in sample.known else "2024-09-01")


def channel_on_page(report: Report, name: str) -> str:
    page = render(report)
    return page[page.index(f"<h3>{name}</h3>") :].split("</li>")[0]


def test_a_suite_may_require_a_channel_that_is_installed(published: None) -> None:
    assert parse_suite(suite_text(REQUIRED)).scoring.required_channels == ("perturbation", "protocol", NAME)
    Draft202012Validator(suite_schema()).validate(json.loads(suite_text(REQUIRED)))


def test_a_channel_that_nobody_declares_is_refused_with_those_that_there_are(toy: Install) -> None:
    with pytest.raises(SuiteProblems, match=r'"published" is none of "perturbation", .*, "protocol"; write'):
        parse_suite(suite_text(REQUIRED))
    toy("RAISES")
    with pytest.raises(SuiteProblems, match='"protocol", "toy"; did you mean "toy"'):
        parse_suite(suite_text(["tyo"]))
    assert list(Draft202012Validator(suite_schema()).iter_errors(json.loads(suite_text(REQUIRED))))


def test_built_in_names_need_no_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.domain.channels.declared", lambda group: pytest.fail("entry points were read"))
    parse_suite(suite_text(list(CHANNELS.built_in)))


def test_a_suite_on_record_is_read_where_the_channel_is_not_installed() -> None:
    plain = json.loads(suite_text(REQUIRED))
    assert Suite.model_validate(plain).scoring.required_channels[-1] == NAME


def suite_text(channels: Sequence[str]) -> str:
    suite = {
        "audit_suite_id": "s",
        "model_config": {"model_id": "org/m", "model_version": "sha256:" + "ab" * 32, "endpoint": "http://h/v1"},
        "dataset_config": {"benchmark_name": "b", "sample_size": 40},
        "scoring_config": {"required_channels": channels},
    }
    return json.dumps(suite)


def test_a_contaminated_verdict_keeps_a_model_from_approval_and_shows_in_document_and_page(published: None) -> None:
    report = remembered(approved(changes=requiring(*REQUIRED))).report()
    found = report.evidence.others[NAME]
    assert found.verdict is Verdict.CONTAMINATED
    assert report.decision.outcome is DecisionOutcome.REVIEW
    assert "published_contaminated" in [reason.code for reason in report.decision.reasons]
    said = json.loads(to_json(report))["evidence"]["others"][NAME]
    assert said["verdict"] == "contaminated"
    assert said["figures"]["ahead"]["unit"] == "points"
    assert said["figures"]["ahead"]["value"]["low"] > 50
    page = render(report)
    row = channel_on_page(report, NAME)
    assert "Contaminated" in row
    assert "required" in row
    assert "Earlier items are answered better by" in row
    assert "no better than later ones" in row
    section = page[page.index('id="channel-published"') :].split("</section>")[0]
    assert "Items by the day they were published" in section
    assert re.search(r'<th scope="row">later</th><td class="n">\d+</td><td class="n">\d+\.\d %</td>', section)
    assert re.search(r"<dt>ahead</dt><dd>[\d.]+ points \(95.%", section)
    assert "limit-published_later_and_harder" in page


def test_a_clean_verdict_lets_the_gate_approve(published: None) -> None:
    limits = {"contamination_threshold": 0.2, "max_allowed_contaminated_items_pct": 20.0}
    governance = {"governance": {"block_deployment_above_contaminated_pct": 20.0}}
    report = alike(approved(changes=requiring(*REQUIRED, **limits) | governance)).report()
    assert report.evidence.others[NAME].verdict is Verdict.CLEAN
    assert report.decision.outcome is DecisionOutcome.APPROVE


def test_a_contaminated_verdict_softens_no_block_and_makes_none(published: None) -> None:
    assert alike(blocked(changes=requiring(*REQUIRED))).report().decision.outcome is DecisionOutcome.BLOCK
    assert remembered(blocked(changes=requiring(*REQUIRED))).report().decision.outcome is DecisionOutcome.BLOCK


def test_a_channel_without_its_inputs_is_not_audited_and_the_model_is_reviewed(published: None) -> None:
    report = approved(changes=requiring(*REQUIRED)).report()
    assert NAME not in report.evidence.others
    assert report.evidence.verdict_of(NAME) is Verdict.NOT_AUDITED
    assert report.decision.outcome is DecisionOutcome.REVIEW
    first = report.decision.reasons[0]
    assert first.code == "published_not_audited"
    assert "not audited: the items do not say which were published" in first.text
    assert "Not audited" in channel_on_page(report, NAME)
    assert "published_not_audited" in {limit.code for limit in report.limits}
    assert b'"others"' not in to_json(report)


def test_a_channel_that_no_suite_requires_takes_no_part(published: None) -> None:
    report = remembered(approved()).report()
    assert report.evidence.others == {}
    assert report.decision.outcome is DecisionOutcome.APPROVE
    assert NAME not in report.evidence.not_audited
    assert f"<h3>{NAME}</h3>" not in render(report)


def test_the_plan_says_what_the_channel_says_of_it(published: None, tmp_path: Path) -> None:
    notes = plan_of(REQUIRED, tmp_path)["notes"]
    assert "the published channel of published-channel 1.0 needs items that say in their metadata when" in str(notes)
    assert "the published channel: the dates of 40 items are read; no model is asked for them" in notes
    assert any(note.endswith("the other required channels are clean: published") for note in notes)
    assert "published" not in str(plan_of(["perturbation"], tmp_path)["notes"])


def plan_of(channels: Sequence[str], folder: Path) -> dict[str, Any]:
    suite = Suite.model_validate(json.loads(suite_text(channels)))
    return document(plan_audit(suite, folder, folder, audits=20))


def test_the_page_is_the_same_where_the_channel_is_not_installed(published: None) -> None:
    report = remembered(approved(n_items=100, changes=requiring(*REQUIRED))).report()
    page, stored = render(report), to_json(report)
    _forget()
    sys.path[:] = [place for place in sys.path if not (Path(place) / "published_channel.py").exists()]
    assert NAME not in CHANNELS
    again = Report.model_validate_json(stored)
    assert to_json(again) == stored
    assert render(again) == page


def test_the_command_prints_the_verdict(published: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = remembered(approved(n_items=100, changes=requiring(*REQUIRED))).report()
    event = DecisionEvent(
        audit_id="a",
        audit_suite_id="s",
        model_id="m",
        model_digest="d",
        outcome=report.decision.outcome,
        reasons=report.decision.reasons,
        fingerprint="f",
        protocol_digest="p",
        report_digest="r",
        report_path="report.html",
        n_items=report.counts.items_audited,
    )
    progress = Progress(planned=1, done=1, leased=0, dead=0)
    ended = AuditResult("a", event, json.loads(to_json(report)), tmp_path / "report.html", progress, None)
    assert ended.summary()["other_verdicts"] == {NAME: "contaminated"}
    print_results([ended])
    assert "published channel: contaminated" in capsys.readouterr().out


def test_hostile_text_of_a_channel_changes_no_markup(published: None) -> None:
    report = remembered(approved(n_items=100, changes=requiring(*REQUIRED))).report()
    page = render(poisoned(report, '"><script>alert(1)</script>\u202e'))
    assert "<script" not in page
    assert "\u202e" not in page
    assert page.count("<section") == render(report).count("<section")


def scored(sample: SampleAudit) -> tuple[Evidence, Decision]:
    result = score(sample.suite, sample.items, sample.asked)
    return result.evidence, result.decision


@pytest.mark.parametrize(
    ("attribute", "said"),
    [
        ("RAISES", "raised ZeroDivisionError"),
        ("NOTHING", "answered with a NoneType"),
        ("WORDS", "answered with a str"),
        ("WITHOUT_REASON", "raised ValidationError"),
        ("SURROGATE", "raised ValidationError"),
        ("UNKNOWN_VERDICT", "raised KeyError"),
        ("RAGGED", "raised ValidationError"),
        ("ENDLESS", "raised ValidationError"),
        ("OVERWRITES", "raised ValueError"),
    ],
)
def test_a_channel_that_fails_is_invalid_and_every_other_is_what_it_was(
    attribute: str, said: str, toy: Install, caplog: pytest.LogCaptureFixture
) -> None:
    toy(attribute)
    evidence, decision = scored(approved(changes=requiring("toy")))
    found = evidence.others["toy"]
    assert found.verdict is Verdict.INVALID
    assert found.reasons == (f"The toy channel of toy 1.2 {said}, so nothing is known from it.",)
    assert decision.outcome is DecisionOutcome.REVIEW
    assert decision.reasons[0].code == "toy_invalid"
    assert evidence.model_copy(update={"others": {}}) == scored(approved(changes=requiring("perturbation")))[0]
    if said.startswith("raised"):
        assert "Traceback" in caplog.text


@pytest.mark.parametrize("attribute", ["ABSENT", "ODD_ABSENT"])
def test_a_channel_that_says_that_it_did_not_run_is_not_audited(attribute: str, toy: Install) -> None:
    toy(attribute)
    sample = approved(n_items=60, changes=requiring("toy"))
    evidence, decision = scored(sample)
    assert evidence.not_audited["toy"].startswith("there is no file")
    assert "It was not looked at." in [limit.text for limit in sample.report().limits]
    assert decision.outcome is DecisionOutcome.REVIEW


@pytest.mark.parametrize(
    ("attribute", "source"),
    [
        ("MISSING", BROKEN),
        ("ANY", "raise OSError('no such card')"),
        ("Toy", BROKEN),
        ("HALF", BROKEN + "class Half(Toy):\n    gap = None\n"),
    ],
)
def test_a_channel_that_cannot_be_loaded_is_not_audited(attribute: str, source: str, toy: Install) -> None:
    toy(attribute, source)
    evidence, decision = scored(approved(n_items=60, changes=requiring("toy")))
    assert evidence.not_audited["toy"] == "it could not be loaded where the audit was scored"
    assert decision.outcome is DecisionOutcome.REVIEW


def test_a_channel_that_is_not_installed_where_it_is_scored_is_not_audited() -> None:
    sample = approved(n_items=60, changes=requiring("toy"))
    evidence, decision = scored(sample)
    assert evidence.verdict_of("toy") is Verdict.NOT_AUDITED
    assert decision.reasons[0].code == "toy_not_audited"
    assert "did not run, so nothing is known from it" in str(sample.report().limits)


def test_a_result_brings_nothing_along_that_a_report_cannot_hold(toy: Install) -> None:
    toy("SLY")
    report = approved(n_items=60, changes=requiring("toy")).report()
    assert "more" not in json.loads(to_json(report))["evidence"]["others"]["toy"]
    assert report.evidence.verdict_of("toy") is Verdict.CLEAN


@pytest.mark.parametrize("attribute", ["LIMITS_RAISE", "LIMITS_ODD"])
def test_a_channel_that_cannot_say_its_limitations_still_has_its_verdict(attribute: str, toy: Install) -> None:
    toy(attribute)
    report = approved(n_items=60, changes=requiring("toy")).report()
    assert report.evidence.verdict_of("toy") is Verdict.CLEAN
    assert "toy_limitations_unknown" in {limit.code for limit in report.limits}


@pytest.mark.parametrize("attribute", ["PLAN_RAISES", "PLAN_ODD", "MISSING"])
def test_a_plan_is_made_whatever_a_channel_says_of_it(attribute: str, toy: Install, tmp_path: Path) -> None:
    toy(attribute)
    notes = plan_of(["toy"], tmp_path)["notes"]
    assert any("toy channel" in note and ("raised" in note or "cannot be loaded" in note) for note in notes)


def test_an_input_that_cannot_be_read_is_no_fault_of_the_channel(toy: Install) -> None:
    toy("UNREAD")
    sample = approved(n_items=20, changes=requiring("toy"))
    rows = RowsBuilder([item.item_id for item in sample.items]).rows()
    with pytest.raises(StoreError, match="the store is away"):
        weigh_plugin("toy", ChannelInputs(sample.suite, sample.items, rows))


def test_a_channel_may_be_named_as_a_field_of_the_evidence_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("others", "not_audited", "plain"):
        points = {GROUP: {name: "toy_channel:SLY"}}
        monkeypatch.syspath_prepend(
            str(install(tmp_path / name, {"toy_channel": BROKEN}, points, name=f"toy-{name.replace('_', '-')}"))
        )
    declared.cache_clear()
    report = approved(n_items=60, changes=requiring("others", "not_audited", "plain")).report()
    assert {name: report.evidence.verdict_of(name) for name in report.evidence.others} == dict.fromkeys(
        ("not_audited", "others", "plain"), Verdict.CLEAN
    )
    assert 'id="channels"' in render(report)


def test_every_channel_says_what_it_is() -> None:
    for name in CHANNELS.built_in:
        channel = CHANNELS.get(name)
        for text in (channel.compares, channel.null_hypothesis, channel.gap):
            assert text.endswith("."), name
            assert text[0].isupper(), name
        assert not channel.needs.endswith("."), name
        assert channel.word(Verdict.NOT_AUDITED) == "Not audited"


def test_figures_without_a_bound_or_a_value_are_worded(toy: Install) -> None:
    figures = (
        'figures={"a": Figure(value=None), "b": Figure(value=-2.5, unit="points"), '
        '"c": Figure(value=Estimate(value=1.0, low=None, high=2.0, level=0.9, method="m"))}'
    )
    source = BROKEN + (
        "from proctor.domain.channel_results import Figure\nfrom proctor.domain.estimate import Estimate\n"
        f'FIGURES = Toy(lambda channel, inputs: channel.found(Verdict.CLEAN, "So.", {figures}))\n'
    )
    toy("FIGURES", source)
    report = approved(n_items=60, changes=requiring("toy")).report()
    assert isinstance(report.evidence.others["toy"].figures["c"].value, Estimate)
    page = render(report).replace("\N{NO-BREAK SPACE}", " ")
    assert '<h2 id="channel-toy">The toy channel</h2>' in page
    assert "<dt>a</dt><dd>undefined</dd>" in page
    assert "<dt>b</dt><dd>−2.5 points</dd>" in page
    assert "<dt>c</dt><dd>1 (90 % interval unbounded to 2)</dd>" in page
