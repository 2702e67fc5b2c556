"""What continuous integration is told of an audit: test results and a summary, of whatever a model is called."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite
from markdown_it import MarkdownIt

from proctor.cli.audits.ci.files import CiFiles, ci_options
from proctor.cli.audits.ci.junit import junit_xml
from proctor.cli.audits.ci.markdown import escaped, markdown
from proctor.cli.audits.ci.outcome import Check, Outcome, Result, outcome_of, undecided
from proctor.domain.decision import DecisionOutcome
from proctor.domain.errors import BadInputError
from proctor.domain.record.sign_off import SignedBy
from proctor.domain.standing import StandingKind
from proctor.gateway.status import AuditStatus, Stands, Verdict
from proctor.runtime.records.audit_state import AuditState
from proctor.scorer.report.document import Report
from tests import report_samples

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "]]></failure><failure>",
    "&lt;b&gt; &#60;i&#62; &copy;",
    "[click](javascript:alert(1)) ![x](http://evil.example/x.png)",
    "http://evil.example www.evil.example a@evil.example",
    "@everyone #1 !2 acme/model#3 ~label",
    "`code` ``` | a | b |\n|---|---|\n# heading\n- list\n1. list\n---",
    "**bold** _it_ ~~gone~~ $x^2$ \\",
    "\x1b[31mred\x00\x07 \u202egnp.exe \ufffe \ud800",
    "# first",
    "- first",
    "1. first",
    "+ first",
)


class Tags(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def shown(text: str) -> Tags:
    page = Tags()
    page.feed(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text))
    return page


def cases(outcome: Outcome) -> tuple[TestSuite, dict[str, TestCase]]:
    (suite,) = JUnitXml.fromstring(junit_xml(outcome))
    return suite, {case.name: case for case in suite}


def decided(report: Report, **changes: Any) -> Outcome:
    verdict = Verdict(
        outcome=report.decision.outcome,
        reasons=report.decision.reasons,
        report_path="/r",
        report_digest="sha256:r",
        scope=report.decision.scope,
    )
    status = AuditStatus(
        audit_id="3f2a-1", suite="facts", model_id="acme/m", state=AuditState.DECIDED, decision=verdict
    )
    return outcome_of(status.model_copy(update=changes), report, "https://proctor.example.org/")


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    return {
        "approve": report_samples.approved().report(),
        "block": report_samples.blocked().report(),
        "review": report_samples.in_review().report(),
    }


def test_an_approved_model_has_no_failure_and_a_blocked_one_says_what_was_not_met(reports: dict[str, Report]) -> None:
    suite, approved = cases(decided(reports["approve"]))
    assert (suite.failures, suite.errors) == (0, 0)
    assert approved["decision"].is_passed
    suite, blocked = cases(decided(reports["block"]))
    failed = {name for name, case in blocked.items() if any(isinstance(one, Failure) for one in case.result)}
    assert {"decision", "channel perturbation (required)", "Score inflation", "Contamination Score"} <= failed
    assert suite.failures == len(failed)
    (failure,) = blocked["decision"].result
    assert failure.type == "block"
    assert "all past the limit" in failure.message


def test_a_review_fails_by_what_could_not_be_told(reports: dict[str, Report]) -> None:
    _, found = cases(decided(reports["review"]))
    (failure,) = found["decision"].result
    assert failure.type == "review"


def test_what_somebody_signed_off_is_what_is_told_with_the_decision_behind_it(reports: dict[str, Report]) -> None:
    stands = Stands(
        outcome=DecisionOutcome.APPROVE,
        kind=StandingKind.SIGN_OFF,
        by=SignedBy(name="ada", via="token"),
        reason="a known leak",
        reference="RISK-7",
        at="2026-11-23T00:00:00Z",
        expires_at=None,
        sequence=4,
    )
    verdict = Verdict(
        outcome=DecisionOutcome.BLOCK,
        reasons=reports["block"].decision.reasons,
        report_path="/r",
        report_digest="sha256:r",
        stands=stands,
    )
    signed = decided(reports["block"], decision=verdict)
    _, found = cases(signed)
    assert found["decision"].is_passed
    assert not found["Score inflation"].is_passed
    page = shown(markdown(signed)).text
    assert "approved" in page
    assert "Decided was block" in page
    assert "ada" in page


def test_what_nobody_asked_for_is_skipped_and_what_was_required_and_did_not_run_is_an_error(
    reports: dict[str, Report],
) -> None:
    _, found = cases(decided(reports["approve"]))
    assert isinstance(found["channel fresh"].result[0], Skipped)
    report = reports["approve"]
    scoring = report.suite.scoring.model_copy(update={"required_channels": ("fresh",)})
    strict = report.model_copy(update={"suite": report.suite.model_copy(update={"scoring": scoring})})
    _, found = cases(decided(strict))
    assert isinstance(found["channel fresh (required)"].result[0], Error)


def test_an_audit_without_a_decision_is_an_error_with_its_reason() -> None:
    status = AuditStatus(audit_id="a", suite="s", model_id="m", state=AuditState.FAILED, detail="no answer from x")
    for outcome in (outcome_of(status, None), undecided("s", "m", "no answer from x")):
        suite, found = cases(outcome)
        assert suite.errors == 1
        assert "no answer from x" in found["decision"].result[0].message
        assert "no decision" in markdown(outcome)
        assert "no answer from x" in markdown(outcome)


def test_the_summary_has_the_decision_the_three_numbers_the_digests_and_links(reports: dict[str, Report]) -> None:
    page = shown(markdown(decided(reports["block"])))
    assert "Proctor: acme/m – blocked" in page.text
    for name in ("Score inflation", "Contamination Score", "p-value", "fingerprint", "sha256:r", "3f2a-1"):
        assert name in page.text
    links = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    assert links == [f"https://proctor.example.org/audits/3f2a-1{end}" for end in ("", "/report")]


@pytest.mark.parametrize("payload", HOSTILE)
def test_nothing_that_others_wrote_acts_in_either_file(payload: str) -> None:
    check = Check(payload, Result.FAILED, payload, f"{payload}\n{payload}")
    outcome = Outcome(
        payload, payload, payload, "block", payload, (payload, payload), (), (check, check), {"weights": payload}
    )
    suite, _ = cases(outcome)
    assert suite.failures == 2
    text = junit_xml(outcome).decode()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ufffe\ufffd]", text)
    page = shown(markdown(outcome))
    assert {tag for tag, _ in page.tags} == {
        "h2", "p", "ul", "li", "sub", "table", "thead", "tbody", "tr", "th", "td"
    }  # fmt: skip
    assert not re.search(r"(?<![\w/])[@#!]\w|[a-z]#\d|://|www\.", page.text.replace("\u2060", "\u2060 "))
    rows = [tag for tag, _ in page.tags if tag in ("li", "h2")]
    assert rows == ["h2", "li", "li"]


def test_what_is_escaped_reads_as_it_was_written() -> None:
    text = "acme/m_1 scored 13.1 points (95 % interval 10.1 to 15.8), p < 0.0001 & more"
    assert shown(escaped(text)).text.strip() == text


def test_long_texts_are_cut() -> None:
    outcome = undecided("s", "m" * 100_000, "x" * 100_000)
    assert len(markdown(outcome)) < 10_000
    assert len(junit_xml(outcome)) < 40_000


@click.command()
@ci_options
def ending(ci: CiFiles) -> None:
    if ci:
        ci.write(undecided("s", "m", "why"))


def test_files_are_written_where_they_are_wanted_and_a_missing_folder_is_said_before_anything_runs(
    tmp_path: Path,
) -> None:
    wanted = tmp_path / "proctor.xml"
    assert CliRunner().invoke(ending, ["--junit", str(wanted)]).exit_code == 0
    assert wanted.read_bytes().startswith(b"<?xml")
    run = CliRunner().invoke(ending, ["--markdown", str(tmp_path / "no" / "folder.md")])
    assert run.exit_code == 2
    assert "make it first" in run.output
    assert CliRunner().invoke(ending, []).exit_code == 0


@pytest.mark.parametrize("address", ["javascript:alert(1)", "https://x/) [y](http://z", "https://x y", "x"])
def test_links_lead_to_addresses_of_web_pages_alone(address: str, tmp_path: Path) -> None:
    run = CliRunner().invoke(ending, ["--dashboard", address, "--junit", str(tmp_path / "x")])
    assert isinstance(run.exception, BadInputError)
