"""Whom an operator has told of decisions, whom a suite may name, and in which words they are told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proctor.domain.decision import DecisionEvent
from proctor.domain.errors import BadInputError
from proctor.domain.notify.notice import inert, notice_of
from proctor.domain.notify.recipients import MAX_NAMED_BY_A_SUITE, RecipientKind, Told, told_of
from proctor.domain.notify.settings import NotifySettings, Occasion, parse_notifications
from proctor.domain.suite import GovernanceSection
from proctor.runtime.settings import Settings
from tests.record_samples import an_event

KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SAID: dict[str, Any] = {
    "targets": {
        "ml-chat": "slack://TokenA/TokenB/TokenC",
        "ledger": {"cloudevents": "https://events.example.org/in", "secrets": [KEY]},
    },
    "rules": [
        {"to": ["ml-chat"], "suites": ["gsm8k-*"], "models": ["org/*"]},
        {"to": ["ledger", "ml-chat"], "on": ["approve", "review", "block"]},
    ],
    "mail": {"server": "mailtos://user:sesame@smtp.example.org/?from=proctor@example.org", "domains": ["Example.org"]},
    "names": {"ml-platform-team": ["ml-chat", "lead@elsewhere.example"]},
}
SETTINGS = NotifySettings.model_validate(SAID)


def told(
    occasion: Occasion, *named: str, owner: str = "unassigned", suite: str = "gsm8k-v1", model: str = "org/m",
    settings: NotifySettings = SETTINGS,
) -> Told:  # fmt: skip
    governance = GovernanceSection(notify_on_failure=named, audit_owner=owner)
    return told_of(settings, occasion, suite=suite, model=model, governance=governance)


def names(found: Told) -> list[str]:
    return [one.name for one in found.recipients]


def test_a_rule_says_who_is_told_of_reviews_and_blocks_and_of_approvals_where_it_says_so() -> None:
    only_chat = NotifySettings.model_validate({**SAID, "rules": SAID["rules"][:1]})
    assert names(told(Occasion.BLOCK, settings=only_chat)) == ["ml-chat"]
    assert names(told(Occasion.REVIEW, settings=only_chat)) == ["ml-chat"]
    assert names(told(Occasion.APPROVE, settings=only_chat)) == []
    assert names(told(Occasion.BLOCK, settings=only_chat, suite="mmlu-v1")) == []
    assert names(told(Occasion.BLOCK, settings=only_chat, model="other/m")) == []
    assert names(told(Occasion.APPROVE)) == ["ledger", "ml-chat"]


def test_whoever_is_named_twice_is_told_once() -> None:
    found = told(Occasion.BLOCK, "A@example.org", "a@example.org", "ml-platform-team")
    assert names(found) == ["ml-chat", "ledger", "a@example.org", "lead@elsewhere.example"]
    assert len({one.digest for one in found.recipients}) == 4
    assert {one.name: one.kind for one in found.recipients}["ledger"] is RecipientKind.EVENT


def test_a_suite_names_addresses_of_the_operator_s_domains_and_words_of_its_list_alone() -> None:
    refused = [
        "a@evil.example",
        "a@sub.example.org",
        "a@example.org.evil.example",
        "slack://A/B/C",
        "mailto://evil",
        "ml-chat",
        "Someone <a@example.org>",
        "a@example.org?bcc=b@evil.example",
        "a@example.org\nb@evil.example",
        '"a b"@example.org',
        "ａ@example.org",
    ]
    found = told(Occasion.BLOCK, "a@EXAMPLE.org", *refused, suite="mmlu", model="x")
    assert names(found) == ["ledger", "ml-chat", "a@EXAMPLE.org"]
    assert [one.name for one in found.unheard] == refused
    assert {one.why for one in found.unheard[:3]} == {"suites may not name addresses of its domain here"}


def test_a_suite_s_people_are_told_of_failures_alone() -> None:
    rules: list[Any] = []
    settings = NotifySettings.model_validate({**SAID, "rules": rules})
    for occasion, expected in ((Occasion.APPROVE, []), (Occasion.REVIEW, ["a@example.org"])):
        assert names(told(occasion, "a@example.org", settings=settings)) == expected
    owner = told(Occasion.BLOCK, owner="ml-platform-team", settings=settings)
    assert names(owner) == ["ml-chat", "lead@elsewhere.example"]
    assert names(told(Occasion.BLOCK, owner="b@example.org", settings=settings)) == ["b@example.org"]
    # An owner is any word; that it leads nowhere is no fault.
    assert told(Occasion.BLOCK, owner="somebody", settings=settings) == Told((), ())


def test_without_a_mail_server_no_address_is_told() -> None:
    settings = NotifySettings.model_validate({"targets": {"ops": "json://host/x"}})
    found = told(Occasion.BLOCK, "a@example.org", settings=settings)
    assert found.recipients == ()
    assert found.unheard[0].why == "no mail server is configured here"


def test_one_suite_cannot_fill_every_mailbox() -> None:
    rules: list[Any] = []
    settings = NotifySettings.model_validate({**SAID, "rules": rules})
    found = told(Occasion.BLOCK, *(f"a{n}@example.org" for n in range(100)), settings=settings)
    assert len(found.recipients) == MAX_NAMED_BY_A_SUITE
    assert len(found.unheard) == 100 - MAX_NAMED_BY_A_SUITE


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ({"targets": {"chat": "sesame"}}, "targets.chat: has not the form"),
        ({"targets": {"chat": {"cloudevents": "http://e.example/sesame", "secrets": [KEY]}}}, "neither https nor http"),
        ({"targets": {"chat": {"cloudevents": "https://e.example/?sesame", "secrets": [KEY]}}}, "a query or a fragmen"),
        ({"targets": {"chat": {"cloudevents": "https://e.example/", "secrets": ["sesame"]}}}, "what is no key"),
        ({"targets": {"chat": {"cloudevents": "https://e.example/", "secrets": ["whsec_c2VzYW1l"]}}}, "what is no key"),
        ({"targets": {"chat": {"cloudevents": "https://e.example/", "secrets": []}}}, "targets.chat.secrets: tuple"),
        ({"rules": [{"to": ["nobody"]}]}, 'rules[0].to names "nobody", which is neither a target nor'),
        ({"rules": [{"to": ["a@example.org"]}]}, "there is no mail.server to send to it"),
        ({"names": {"team": ["nobody"]}}, 'names.team names "nobody"'),
        ({"rules": [{"to": ["a"], "on": ["failure"]}]}, "rules[0].on[0]: input should be"),
        ({"mail": {"server": "sesame"}}, "mail.server: has not the form"),
        ({"target": {}}, "target: is an unknown key"),
        ({"targets": {"a b": "x://sesame"}}, 'targets["a b"]: has not the form'),
    ],
)
def test_what_is_wrong_is_said_with_its_place_and_without_a_key(said: dict[str, Any], fault: str) -> None:
    with pytest.raises(BadInputError) as refused:
        parse_notifications(json.dumps(said), source="PROCTOR_NOTIFY")
    assert fault in str(refused.value)
    assert "sesame" not in str(refused.value)
    assert KEY not in str(refused.value)


def test_settings_hand_it_on_to_child_processes_and_show_none_of_it(tmp_path: Path) -> None:
    file = tmp_path / "notify.json"
    file.write_text(json.dumps(SAID))
    for said in (json.dumps(SAID), f"@{file}"):
        settings = Settings.from_environment({"PROCTOR_NOTIFY": said})
        assert settings.notify.said == SETTINGS
        for secret in ("sesame", "TokenB", KEY):
            assert secret not in repr(settings)
            assert secret not in repr(settings.notify)
        again = Settings.from_environment(settings.to_environment())
        assert again.notify.said == SETTINGS
    assert settings.to_environment()["PROCTOR_NOTIFY"] == f"@{file}"
    assert not Settings.from_environment({}).notify


def test_a_notice_says_what_was_decided_why_and_where_the_report_is() -> None:
    event = DecisionEvent.model_validate(an_event("a-1", modelId="org/m", scope="wording"))
    notice = notice_of(event, Occasion.APPROVE, report="https://proctor.example.org/audits/a-1/report")
    assert notice.title == "Proctor: org/m is approved (suite)"
    lines = notice.body.splitlines()
    assert lines[0] == "Decision: approve"
    assert lines[1].startswith("Model: org/m (sha256:")
    assert lines[3].startswith("Scope: ")
    assert lines[-1] == "Report: https://proctor.example.org/audits/a-1/report"
    assert notice_of(event, Occasion.APPROVE, report=None).body.endswith("Report: proctor audit show a-1")


def test_text_of_others_is_cut_on_one_line_and_begins_nothing() -> None:
    assert inert("a\nb\x00c") == "a＼nb＼u0000c"
    assert inert("x" * 500, 10) == "x" * 9 + "…"
    assert inert("see https://evil.example :x: a:b sha256:00") == "see https：//evil.example ：x: a:b sha256:00"
