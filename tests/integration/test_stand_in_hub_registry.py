"""Decisions on the Hugging Face Hub, against a stand-in of its HTTP API: pull requests on a model's card."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import HfApi, ModelCard

from proctor.cli.main import main
from proctor.domain.decision import DecisionEvent, DecisionOutcome
from proctor.domain.errors import RegistryError
from proctor.domain.registered_version import RegistryKind
from proctor.registry.description import BEGIN
from proctor.registry.model_registry import RegistryUnavailableError, VersionGoneError
from proctor.runtime.records.requests import NewRequest
from tests.stand_in_hub import Model, StandInHub, metadata, stand_in_hub
from tests.standing_audits import DecidedAudits, decided_audits, sha

REPO = "acme/model"
URI = "hf://"
CARD = "---\nlicense: mit\ntags:\n- text\n---\n# A model\n\nBy its owner.\n"
APPROVE, BLOCK = DecisionOutcome.APPROVE, DecisionOutcome.BLOCK


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInHub]:
    with stand_in_hub() as opened:
        opened.models[REPO] = Model(sha("1"), CARD)
        monkeypatch.setenv("HF_ENDPOINT", opened.url)
        monkeypatch.setenv("HF_TOKEN", "hf_proctor")
        yield opened


@pytest.fixture
def audits(tmp_path: Path) -> Iterator[DecidedAudits]:
    with decided_audits(tmp_path, dashboard_url="https://proctor.example.org") as opened:
        yield opened


def decided(audits: DecidedAudits, outcome: DecisionOutcome = APPROVE, **named: str) -> DecisionEvent:
    event = audits.decide(REPO, outcome, **named)  # type: ignore[arg-type]
    audits.write(URI, event)
    return event


def test_a_decision_is_a_pull_request_with_metadata_and_a_section(hub: StandInHub, audits: DecidedAudits) -> None:
    model = hub.models[REPO]
    audited = model.shas["main"]
    event = decided(audits)
    assert model.cards["main"] == CARD
    card = ModelCard(model.cards["refs/pr/1"])
    said = metadata(hub.models[REPO].cards["refs/pr/1"])
    assert (said["license"], said["tags"]) == ("mit", ["text"])
    assert said["proctor"]["decision"] == "approve"
    assert said["proctor"]["version"] == audited
    assert said["proctor"]["audit_id"] == event.audit_id
    assert card.text.startswith("# A model\n\nBy its owner.\n")
    assert f"Audited revision\\: {audited}" in card.text
    assert "**Proctor: approved**" in card.text


def test_the_client_of_the_hub_s_makers_finds_the_same_pull_request(hub: StandInHub, audits: DecidedAudits) -> None:
    decided(audits)
    api = HfApi(endpoint=hub.url, token="hf_proctor")
    (found,) = api.get_repo_discussions(REPO, author="proctor-bot", discussion_type="pull_request")
    assert (found.title, found.is_pull_request) == ("Proctor's decision on the weights 111111111111", True)
    assert api.whoami()["name"] == "proctor-bot"


def test_the_same_decision_opens_no_second_request_and_makes_no_second_commit(
    hub: StandInHub, audits: DecidedAudits
) -> None:
    event = decided(audits)
    audits.write(URI, event)
    assert (len(hub.models[REPO].requests), hub.models[REPO].commits) == (1, 1)


def test_a_new_decision_is_a_further_commit_in_the_open_request(hub: StandInHub, audits: DecidedAudits) -> None:
    decided(audits)
    decided(audits, BLOCK, suite="numbers")
    model = hub.models[REPO]
    assert (len(model.requests), model.commits) == (1, 2)
    card = model.cards["refs/pr/1"]
    assert card.count(BEGIN) == 1
    assert metadata(card)["proctor"]["decision"] == "block"
    assert "numbers" in card


def test_what_the_owner_has_merged_is_not_proposed_again_and_what_changes_then_is(
    hub: StandInHub, audits: DecidedAudits
) -> None:
    event = decided(audits)
    hub.models[REPO].merge(1)
    audits.write(URI, event)
    assert len(hub.models[REPO].requests) == 1
    decided(audits, BLOCK, suite="numbers")
    assert [one["status"] for one in hub.models[REPO].requests] == ["merged", "open"]


def test_a_request_that_somebody_else_opened_under_our_title_is_left_alone(
    hub: StandInHub, audits: DecidedAudits
) -> None:
    model = hub.models[REPO]
    title = "Proctor's decision on the weights 111111111111"
    for number in range(1, 6):
        author = {"name": "somebody" if number != 4 else "proctor-bot"}
        model.requests.append(
            {"num": number, "title": title if number != 4 else "Another", "author": author, "status": "open",
             "isPullRequest": True, "createdAt": "2026-11-23T00:00:00.000Z", "repo": {"name": REPO, "type": "model"}}
        )  # fmt: skip
        model.cards[f"refs/pr/{number}"] = "theirs"
    decided(audits)
    assert {model.cards[f"refs/pr/{number}"] for number in range(1, 6)} == {"theirs"}
    assert len(model.requests) == 6


def test_other_weights_on_the_hub_are_not_decided_on(hub: StandInHub, audits: DecidedAudits) -> None:
    with pytest.raises(RegistryError, match=r"the weights on main of acme/model are sha256:1+ and not"):
        decided(audits, weights="2")
    assert not hub.models[REPO].requests


def test_the_commit_that_a_trigger_asked_about_is_named_whatever_main_is_by_now(
    hub: StandInHub, audits: DecidedAudits
) -> None:
    model = hub.models[REPO]
    audited = model.shas["main"]
    request = NewRequest("k" * 40, RegistryKind.HUGGINGFACE.value, REPO, audited, sha("5"), "delivery", None, "facts")
    audits.records.requests.add([request])
    model.put("main", CARD + "More words.\n")
    decided(audits, request="k" * 40)
    assert metadata(model.cards["refs/pr/1"])["proctor"]["version"] == audited


def test_a_hub_that_is_away_and_a_model_that_is_gone_are_told_apart(hub: StandInHub, audits: DecidedAudits) -> None:
    event = audits.decide(REPO, APPROVE)
    hub.down = True
    with pytest.raises(RegistryUnavailableError):
        audits.write(URI, event)
    hub.down = False
    del hub.models[REPO]
    with pytest.raises(VersionGoneError, match="shows no such commit"):
        audits.write(URI, event)


def test_without_a_token_nothing_is_proposed(
    hub: StandInHub, audits: DecidedAudits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(RegistryError, match="set HF_TOKEN"):
        decided(audits)
    assert hub.calls == []


def test_the_guard_reads_the_merged_card_and_takes_the_weights_from_the_hub(
    hub: StandInHub, audits: DecidedAudits, capsys: pytest.CaptureFixture[str]
) -> None:
    decided(audits)
    hub.models[REPO].merge(1)
    check = [
        "gate",
        "check",
        f"{REPO}@main",
        "--registry",
        URI,
        "--home",
        str(audits.settings.home),
        "--format",
        "json",
    ]
    assert main(check) == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == "approve"
    hub.models[REPO].digest = sha("2")
    assert main(check) == 1
    assert "model_differs" in [one["code"] for one in json.loads(capsys.readouterr().out)["reasons"]]


def test_the_token_stands_in_no_message_and_no_card(hub: StandInHub, audits: DecidedAudits) -> None:
    decided(audits)
    assert "hf_proctor" not in "".join(hub.models[REPO].cards.values()) + "".join(hub.calls)
