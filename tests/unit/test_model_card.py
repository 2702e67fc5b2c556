"""A decision in a model card: what the owner wrote stays, and the metadata stays YAML."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.decision import DecisionEvent, DecisionOutcome, Reason
from proctor.registry.description import BEGIN, END
from proctor.registry.model_card import decision_in, with_decision
from proctor.registry.version_record import VersionRecord
from tests.stand_in_hub import metadata
from tests.standing_audits import sha

REVISION = "a" * 40


def record(text: str = "It is so.", suite: str = "facts", audit: str = "a-1") -> VersionRecord:
    event = DecisionEvent(
        audit_id=audit,
        audit_suite_id=suite,
        model_id="acme/m",
        model_digest=sha("1"),
        outcome=DecisionOutcome.REVIEW,
        reasons=(Reason(code="c", text=text),),
        fingerprint=sha("2"),
        protocol_digest=sha("3"),
        report_digest=sha("4"),
        report_path="r.html",
        n_items=3,
    )
    return VersionRecord.of_event(event)


@pytest.mark.parametrize(
    "card",
    [
        "",
        "# Words alone\n",
        "---\n---\n# Empty\n",
        "---\nlicense: mit\n---\n# A model\n",
        "---\r\nlicense: mit\r\n---\r\nWindows\r\n",
        "---\nmodel-index:\n- name: x\n  results: []\n---\n\n---\n\nA rule.\n",
    ],
)
def test_what_is_there_stays_and_the_decision_is_read_back(card: str) -> None:
    once = with_decision(card, record(), REVISION)
    assert with_decision(once, record(), REVISION) == once
    assert decision_in(once)["decision"] == "review"
    said = metadata(once)
    assert said["proctor"]["version"] == REVISION
    assert said.get("license", "mit") == "mit"
    for line in card.splitlines():
        assert line.strip() in once
    again = with_decision(once, record("Otherwise."), REVISION)
    assert again.count(BEGIN) == again.count("proctor: {") == 1
    assert "Otherwise" in again


def test_somebody_else_s_key_of_our_name_stays_alone() -> None:
    card = "---\nproctor: exam software\n---\n"
    once = with_decision(card, record(), REVISION)
    assert "proctor: exam software" in once
    assert decision_in(once) == {}
    assert BEGIN in once


@given(st.text(max_size=200), st.text(min_size=1, max_size=100), st.text(max_size=100))
def test_hostile_words_break_neither_the_metadata_nor_the_section(text: str, suite: str, audit: str) -> None:
    once = with_decision("---\nlicense: mit\n---\nOwn words.\n", record(text, suite, audit), REVISION)
    assert once.count(BEGIN) == once.count(END) == 1
    assert decision_in(once)["audit_id"] == audit
    assert metadata(once)["proctor"]["audit_suite_id"] == suite
    section = once[once.index(BEGIN) : once.index(END)]
    assert "<" not in section.removeprefix(BEGIN)
    assert with_decision(once, record(text, suite, audit), REVISION) == once


@given(st.text(max_size=400))
def test_whatever_a_card_says_is_read_without_an_error(card: str) -> None:
    decision_in(card)
    decision_in(f"---\nproctor: {card}\n---\n")
