"""The description of a version, and the keys of its tags: what comes from outside is text of bounded size."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from proctor.domain.decision import DecisionEvent, DecisionOutcome, Reason
from proctor.domain.scope import WORDING_ALONE, Scope
from proctor.registry.description import BEGIN, END, MAX_CHARACTERS, as_text, described
from proctor.registry.version_record import SuiteRecord, VersionRecord
from proctor.registry.version_tags import MAX_TAG_BYTES, suite_key, version_tags
from tests.standing_audits import sha


def record(text: str = "It is so.", *, suites: int = 1, suite: str = "facts") -> VersionRecord:
    event = DecisionEvent(
        audit_id="a-1",
        audit_suite_id=suite,
        model_id="org/m",
        model_digest=sha("1"),
        outcome=DecisionOutcome.APPROVE,
        reasons=(Reason(code="c", text=text),),
        fingerprint=sha("2"),
        protocol_digest=sha("3"),
        report_digest=sha("4"),
        report_path="https://proctor.example.org/audits/a-1/report",
        n_items=1_234,
        scope=Scope.WORDING,
    )
    of = VersionRecord.of_event(event)
    rows = tuple(SuiteRecord(f"{suite}-{n}", event.outcome, text, event, None, "") for n in range(suites))
    return of._replace(suites=rows)


def test_it_says_the_decision_its_reason_its_reach_and_where_the_report_is() -> None:
    html = MarkdownIt("commonmark", {"html": True}).render(described("", record()))
    assert "<strong>Proctor: approved</strong>" in html
    assert "<li>It is so.</li>" in html
    assert WORDING_ALONE.split(".", maxsplit=1)[0] in html.replace("&quot;", '"')
    assert 'href="https://proctor.example.org/audits/a-1/report"' in html
    assert "1,234 items" in html


def test_several_suites_are_a_table_and_many_are_counted() -> None:
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(described("", record(suites=3)))
    assert html.count("<tr>") == 4
    assert "\\-2 | approved" in described("", record(suites=3))


@given(st.text(max_size=300))
def test_whatever_is_said_is_shown_as_text(said: str) -> None:
    html = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(as_text(said) or "x")
    assert html.startswith("<p>")
    assert html.count("<") == 2


@given(st.text(max_size=6_000), st.text(max_size=400), st.integers(1, 60))
def test_a_person_s_words_stay_whole_and_the_whole_is_within_its_bound(own: str, said: str, suites: int) -> None:
    own = own.replace(BEGIN, "").replace(END, "")
    first = described(own, record(said, suites=suites))
    assert first.startswith(own.rstrip())
    assert len(first) <= max(MAX_CHARACTERS, len(own))
    assert described(first, record(said, suites=suites)) == first
    again = described(first, record("Otherwise."))
    assert again.startswith(own.rstrip())
    assert again.count(BEGIN) <= 1


@given(st.text(max_size=200), st.text(max_size=200))
def test_keys_of_suites_are_bounded_plain_and_apart(one: str, other: str) -> None:
    keys = suite_key(one), suite_key(other)
    assert (keys[0] == keys[1]) is (one == other)
    assert all(key.isascii() and len(key) <= 80 for key in keys)


@given(st.text(max_size=8_000), st.text(min_size=1, max_size=200))
def test_no_tag_is_larger_than_every_backend_takes(said: str, suite: str) -> None:
    tags = version_tags(record(said, suites=60, suite=suite))
    assert all(len(key) <= 250 and len(value.encode()) <= MAX_TAG_BYTES for key, value in tags.items())
    assert len(tags) < 200
    assert list(tags)[-1] == "proctor.decision"
