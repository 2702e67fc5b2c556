"""Which suites are run on what is registered, as the operator's file says it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proctor.domain.errors import BadInputError
from proctor.domain.problems import SuiteProblems
from proctor.domain.registered_version import RegisteredVersion, RegistryKind
from proctor.domain.triggers import Triggers, filled, request_key
from proctor.formats.triggers import load_triggers
from tests.registry_webhooks import DIGEST, SINCE, trigger_file
from tests.support import run_proctor

SUITE: dict[str, Any] = {
    "audit_suite_id": "sums-v1",
    "model_config": {"model_id": "m", "model_version": "sha256:" + "0" * 64, "endpoint": "http://127.0.0.1:9/v1"},
    "dataset_config": {"benchmark_name": "sums", "path": "items.jsonl", "sample_size": 8},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "first.json").write_text(json.dumps(SUITE))
    (tmp_path / "items.jsonl").write_text('{"question": "1 + 1", "answer": "2"}\n')
    return tmp_path


def loaded(folder: Path, **rule: Any) -> Triggers:
    return load_triggers(trigger_file(folder, **rule), folder)


def version(name: str = "acme~m", number: str = "3", **tags: str) -> RegisteredVersion:
    said = {"proctor.model_digest": DIGEST, **tags}
    return RegisteredVersion(
        registry=RegistryKind.MLFLOW, name=name, version=number, tags=said, source="s3://b/m", run_id="r"
    )


def problems_of(folder: Path, content: Any) -> list[str]:
    path = folder / "triggers.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(SuiteProblems) as raised:
        load_triggers(path, folder)
    return raised.value.lines()


def test_a_version_is_audited_by_the_suites_whose_patterns_its_name_and_tags_meet(folder: Path) -> None:
    triggers = loaded(folder, models=["acme~*", "other"], tags={"stage": "cand*"})
    assert [one.suite.audit_suite_id for one in triggers.of(version(stage="candidate"))] == ["sums-v1"]
    assert triggers.of(version("other", stage="candidate"))
    assert triggers.of(version("Acme~m", stage="candidate")) == ()
    assert triggers.of(version(stage="draft")) == ()
    assert triggers.of(version()) == ()


def test_of_a_version_whose_tags_are_not_known_the_name_decides_until_they_are(folder: Path) -> None:
    triggers = loaded(folder, tags={"stage": "candidate"})
    assert triggers.of(RegisteredVersion(registry=RegistryKind.MLFLOW, name="acme~m", version="1"))


def test_a_rule_is_of_its_own_registry_alone(folder: Path) -> None:
    assert loaded(folder, registry="huggingface", models=["*"]).of(version()) == ()


def test_two_rules_with_one_suite_ask_for_one_audit(folder: Path) -> None:
    path = trigger_file(folder)
    said = json.loads(path.read_text())
    said["rules"].append({**said["rules"][0], "name": "again", "models": ["*"]})
    path.write_text(json.dumps(said))
    found = load_triggers(path, folder).of(version())
    assert [one.rule.name for one in found] == ["all of acme"]


def test_what_the_registry_writer_registered_is_not_audited_again(folder: Path) -> None:
    own = version().model_copy(update={"source": "proctor://acme~m/sha256-ab"})
    assert loaded(folder).of(own) == ()


def test_a_suite_gets_its_model_from_the_registry(folder: Path) -> None:
    filling = {"endpoint": "http://127.0.0.1:9/{tag:port}", "served_name": "{name}-v{version}"}
    triggers = loaded(folder, model={**filling, "served_name": "m-v{version}"})
    model = filled(triggers.suites[0], version(port="v1")).model
    assert (model.model_id, model.model_version) == ("acme/m", DIGEST)
    assert (model.endpoint, model.served_name) == ("http://127.0.0.1:9/v1", "m-v3")


def test_what_a_rule_does_not_fill_in_stays_the_suite_s_own(folder: Path) -> None:
    triggers = loaded(folder)
    suite = filled(triggers.suites[0], version())
    assert suite.model.endpoint == SUITE["model_config"]["endpoint"]
    assert suite.model_copy(update={"model": triggers.suites[0].suite.model}) == triggers.suites[0].suite


def test_a_model_id_in_a_tag_is_the_way_back_from_the_registered_name(folder: Path) -> None:
    suite = filled(loaded(folder).suites[0], version(**{"proctor.model_id": "acme/m"}))
    assert suite.model.model_id == "acme/m"


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (version(**{"proctor.model_digest": "sha256:abcdef123456"}), "nothing for {digest}"),
        (version(**{"proctor.model_digest": "latest"}), 'set the tag proctor.model_digest to "sha256:"'),
        (version(**{"proctor.model_id": "acme/other"}), "written to another registered model"),
        (version("acme~<b>m</b>"), "model_config.model_id"),
        (version("acme~\u202em\n"), r'model_config.model_id: "acme/\u202em\n"'),
        (version("acme~" + "m" * 300), "keep it to 200"),
    ],
)
def test_a_version_that_cannot_be_audited_is_refused_with_what_to_do(
    folder: Path, one: RegisteredVersion, words: str
) -> None:
    with pytest.raises(BadInputError) as raised:
        filled(loaded(folder).suites[0], one)
    assert words in str(raised.value)
    assert str(raised.value).isprintable()


def test_a_tag_cannot_bring_a_placeholder_of_its_own(folder: Path) -> None:
    triggers = loaded(folder, model={"served_name": "{tag:served}"})
    with pytest.raises(BadInputError, match="served_name"):
        filled(triggers.suites[0], version(served="{digest}"))


def test_one_audit_is_one_registry_model_version_and_suite(folder: Path) -> None:
    hub = version().model_copy(update={"registry": RegistryKind.HUGGINGFACE})
    others = [version(number="4"), version("acme~n"), hub]
    keys = {request_key(one, "sha256:1") for one in (version(), *others)} | {request_key(version(), "sha256:2")}
    assert len(keys) == 5
    assert request_key(version(stage="x"), "sha256:1") == request_key(version(), "sha256:1")


def test_a_suite_is_another_one_when_it_asks_something_else_and_not_for_another_model(folder: Path) -> None:
    first = loaded(folder).suites[0].digest
    (folder / "first.json").write_text(
        json.dumps({**SUITE, "model_config": {**SUITE["model_config"], "model_id": "n"}})
    )
    assert loaded(folder).suites[0].digest == first
    (folder / "items.jsonl").write_text('{"question": "1 + 2", "answer": "3"}\n')
    second = loaded(folder).suites[0].digest
    (folder / "first.json").write_text(json.dumps({**SUITE, "scoring_config": {"significance_alpha": 0.01}}))
    assert len({first, second, loaded(folder).suites[0].digest}) == 3


def test_everything_that_is_wrong_is_said_at_once_with_its_place_and_the_mend(folder: Path) -> None:
    (folder / "bad.json").write_text(json.dumps({**SUITE, "audit_suite_id": "", "dataset_confg": {}}))
    lines = problems_of(
        folder,
        {
            "since": "yesterday",
            "alias": "a b",
            "rulez": [],
            "rules": [
                {"name": "a", "models": ["x"], "suites": ["bad.json", "gone.json"], "model": {"endpoint": "{host}"}},
                {"name": "b", "models": [], "suites": ["first.json"], "registry": "neptune", "tag": {}},
                {"models": ["x"], "suites": ["first.json"], "model": {"served_name": "{name", "servd": ""}},
            ],
        },
    )
    expected = [
        'since: "yesterday" is no point in time',
        'alias: "a b" has characters that do not belong here',
        "rulez: [] is an unknown key; remove it; known here: since, alias, rules",
        'rules[0].model.endpoint: "{host}" holds an unknown placeholder; use {name}',
        "rules[0].suites[0] → audit_suite_id",
        "rules[0].suites[0] → dataset_confg: {} is an unknown key; did you mean dataset_config?",
        'rules[0].suites[1]: "gone.json" is no suite that can be read',
        "rules[1].models: [] is empty",
        "rules[1].registry: \"neptune\" is not offered; write 'mlflow' or 'huggingface'",
        "rules[1].tag: {} is an unknown key; remove it; known here: name, registry",
        "rules[2].name: is missing; add",
        'rules[2].model.served_name: "{name" holds a brace',
        'rules[2].model.servd: "" is an unknown key; remove it; known here: model_id',
    ]
    text = "\n".join(lines)
    assert [words for words in expected if words not in text] == [], text
    assert not any("rules: " in line and "is empty" in line for line in lines), "a list is not empty for its faults"


def test_rules_of_one_name_and_rules_of_one_version_are_refused(folder: Path) -> None:
    rule = {"name": "a", "models": ["x"], "suites": ["first.json"], "model": {"model_version": DIGEST}}
    text = "\n".join(problems_of(folder, {"since": SINCE, "rules": [rule, rule]}))
    assert 'rules[1].name: "a" is the name of rules[0], too' in text
    assert "is the same for every version; write {digest}" in text


@pytest.mark.parametrize("content", ["", "[]", "{", '{"since": 1, "since": 2}', "[" * 200])
def test_a_file_that_is_no_object_is_one_clear_problem(folder: Path, content: str) -> None:
    assert problems_of(folder, content)


def test_the_command_says_what_a_version_would_be_audited_by(folder: Path) -> None:
    file = trigger_file(folder)
    args = ("triggers", "validate", file, "--model", "acme~m", "--tag", f"proctor.model_digest={DIGEST}")
    told = run_proctor(*args, "--format", "json", home=folder)
    assert told.returncode == 0, told.stderr
    (suite,) = json.loads(told.stdout)["suites"]
    assert suite["model"] == f"acme/m {DIGEST} at http://127.0.0.1:9/v1"
    assert "no rule is of other" in run_proctor("triggers", "validate", file, "--model", "other", home=folder).stdout


def test_the_command_prints_every_problem_on_a_line_and_exits_with_2(folder: Path) -> None:
    file = folder / "triggers.json"
    file.write_text('{"since": "x", "rules": []}')
    told = run_proctor("triggers", "validate", file, home=folder)
    assert told.returncode == 2
    assert told.stderr.count("triggers.json: ") == 2
    assert told.stderr.endswith("2 problems.\n")
