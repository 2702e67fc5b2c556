"""Profiles of suites: defaults by domain, which a suite's own word goes before, and which the card shows resolved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from proctor.cli.suite import suite as command
from proctor.domain import profiles
from proctor.domain.card import ContentDigests, protocol_card
from proctor.domain.profiles import PROFILES, Profile
from proctor.domain.suite import Suite
from proctor.domain.suite_problems import parse_suite
from tests.suites.examples import SMALL

#: It leaves out what profiles set.
BARE = {key: value for key, value in SMALL.items() if key != "perturbation_config"}


def suite(profile: str, **perturbation: Any) -> Suite:
    tree = {**BARE, "governance": {"profile": profile}}
    if perturbation:
        tree["perturbation_config"] = perturbation
    return parse_suite(json.dumps(tree))


def fingerprint(of: Suite) -> str:
    return protocol_card(of, ContentDigests(), evaluator_version="proctor").fingerprint


@pytest.mark.parametrize(
    ("profile", "window", "variants"),
    [
        ("standard", (0.15, 0.45), 3),
        ("strict", (0.15, 0.45), 3),
        ("factual", (0.15, 0.30), 3),
        ("reasoning", (0.20, 0.50), 3),
        ("high_stakes", (0.15, 0.45), 4),
    ],
)
def test_a_profile_has_the_article_s_numbers(profile: str, window: tuple[float, float], variants: int) -> None:
    rewording = suite(profile).perturbation
    assert (rewording.min_semantic_distance, rewording.max_semantic_distance) == window
    assert rewording.num_variants_per_item == variants


def test_what_the_suite_says_itself_goes_before_its_profile() -> None:
    rewording = suite("reasoning", min_semantic_distance=0.02).perturbation
    assert (rewording.min_semantic_distance, rewording.max_semantic_distance) == (0.02, 0.50)


def test_every_profile_is_a_suite_and_survives_being_written_out() -> None:
    for name in PROFILES:
        of = suite(name)
        assert Suite.model_validate(of.plain()) == of
        assert parse_suite(json.dumps(of.plain())) == of


def test_a_changed_profile_changes_the_fingerprint_and_not_what_is_on_record(monkeypatch: pytest.MonkeyPatch) -> None:
    before = suite("reasoning")
    on_record = before.plain()
    changed = Profile("tried out", sets={("perturbation_config", "max_semantic_distance"): 0.55})
    monkeypatch.setattr(profiles, "PROFILES", {**PROFILES, "reasoning": changed})
    assert fingerprint(suite("reasoning")) != fingerprint(before)
    assert fingerprint(parse_suite(json.dumps(on_record))) == fingerprint(before)


def test_the_card_has_the_name_and_the_numbers() -> None:
    card = protocol_card(suite("factual"), ContentDigests(), evaluator_version="proctor").plain()
    policy = card["contamination_policy"]
    assert policy["profile"] == "factual"
    assert policy["perturbation"]["max_semantic_distance"] == 0.30
    same_numbers = suite("standard", max_semantic_distance=0.30)
    assert fingerprint(same_numbers) != fingerprint(suite("factual"))


def test_validate_says_what_the_profile_set_and_what_the_suite_did(tmp_path: Path) -> None:
    file = tmp_path / "suite.json"
    tree = {**BARE, "governance": {"profile": "reasoning"}, "perturbation_config": {"min_semantic_distance": 0.1}}
    file.write_text(json.dumps(tree))
    shown = CliRunner().invoke(command, ["validate", str(file)]).output
    assert "reasoning: min_semantic_distance is the suite's own, sets max_semantic_distance to 0.5" in shown
    tree["perturbation_config"] = {"min_semantic_distance": 0.6}
    file.write_text(json.dumps(tree))
    refused = CliRunner().invoke(command, ["validate", str(file)])
    assert "is not below max_semantic_distance, which is 0.5" in refused.output


@pytest.mark.parametrize("profile", PROFILES)
def test_init_writes_a_valid_suite_of_each_profile(tmp_path: Path, profile: str) -> None:
    file = tmp_path / "suite.json"
    assert CliRunner().invoke(command, ["init", str(file), "--profile", profile]).exit_code == 0
    written = json.loads(file.read_text())
    for (section, field), value in PROFILES[profile].sets.items():
        assert written[section][field] == value
    assert CliRunner().invoke(command, ["validate", str(file)]).exit_code == 0


@pytest.mark.parametrize("profile", ["medical", "", 5, None, ["reasoning"], {"reasoning": 1}])
def test_what_is_no_profile_is_refused_with_those_that_there_are(tmp_path: Path, profile: object) -> None:
    file = tmp_path / "suite.json"
    file.write_text(json.dumps({**BARE, "governance": {"profile": profile}}))
    refused = CliRunner().invoke(command, ["validate", str(file)])
    assert refused.exit_code == 2
    assert "governance.profile" in refused.output
