"""An audit on real workers with a strategy, a backend, a stage, two channels and a registry of another distribution:
the recipes of docs/extending.md as they stand there, all at once."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from proctor.domain.manifest import RewriteSet
from proctor.router.audit import view
from proctor.runtime.artifacts.calls import calls_of
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.runtime.artifacts.store import get_model
from proctor.runtime.records.store import Records
from proctor.runtime.settings import Settings
from tests.toy_audit import N_ITEMS, install_recipes, items, path_with, write_suite

pytestmark = pytest.mark.timeout(180)

TOY: Final = "toy 1.2"


class Audited(NamedTuple):
    """An audit that was run, and what it left."""

    folder: Path
    environment: Mapping[str, str]
    result: dict[str, Any]
    document: dict[str, Any]
    page: str
    """What a reader sees of it."""

    def proctor(self, *arguments: str | Path) -> str:
        """What a command says that succeeds where the toys are installed."""
        return proctor(self.environment, *arguments)

    @property
    def home(self) -> Path:
        return self.folder / "home"


def proctor(variables: Mapping[str, str], *arguments: str | Path, code: int = 0) -> str:
    command = [sys.executable, "-m", "proctor", *map(str, arguments)]
    run = subprocess.run(command, env=variables, capture_output=True, text=True)
    assert run.returncode == code, run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Audited:
    folder = tmp_path_factory.mktemp("toys")
    suite, written = write_suite(folder), folder / "registry"
    written.mkdir()
    path = path_with(install_recipes(folder / "site"))
    variables = {**os.environ, "PYTHONPATH": path, "PROCTOR_REGISTRY_URI": f"share://{written}"}
    run = proctor(variables, "audit", "run", suite, "--home", folder / "home", "--format", "json", code=3)
    result = json.loads(run)
    page = Path(result["report_path"])
    document = json.loads(page.with_suffix(".json").read_bytes())
    shown = " ".join(re.sub("<[^>]*>", " ", page.read_text()).split())
    return Audited(folder, variables, result, document, shown)


def test_the_model_is_asked_through_the_backend_in_the_words_of_the_strategy(audited: Audited) -> None:
    assert audited.result["accuracy_canonical"] == audited.result["accuracy_perturbed"] == 0.5
    assert audited.result["n_trials"] == 3 * N_ITEMS
    made = audited.document["variants"]
    assert (made["strategy"], made["admitted"]) == ("polite", 2 * N_ITEMS)
    openings = {row["question"]["text"].partition(" What")[0] for item in made["items"] for row in item["variants"]}
    assert openings == {"Please tell me:", "Could you say this?", "I should like to know:"}


def test_the_channels_verdicts_decide_and_stand_in_the_json(audited: Audited) -> None:
    found = audited.document["evidence"]["others"]
    verdicts = {"published": "contaminated", "admitted": "clean"}
    assert {name: channel["verdict"] for name, channel in found.items()} == verdicts
    assert audited.result["other_verdicts"] == verdicts
    # Nothing else stands against approval.
    assert audited.result["decision"] == "review"
    assert audited.result["reason_codes"] == ["published_contaminated"]
    assert audited.document["decision"]["reasons"] == [
        {"code": "published_contaminated", "text": "The published channel says contaminated."}
    ]


def test_the_page_shows_each_channel_with_its_verdict_its_table_and_what_it_cannot_say(audited: Audited) -> None:
    assert "published required Contaminated Accuracy on items that were published until" in audited.page
    assert "admitted required Clean under this policy Items that the model says it has seen" in audited.page
    assert "Earlier items are answered better by 100.0 points." in audited.page
    assert "earlier 40 100.0 % later 40 0.0 %" in audited.page
    assert "Later items may be harder, for people as for models" in audited.page
    assert "The published channel says contaminated." in audited.page


def test_what_was_said_in_the_stage_is_kept_and_stands_in_the_report_as_its_channel_weighs_it(audited: Audited) -> None:
    said = "The model says of 0 of 80 items that it has seen them."
    assert audited.document["evidence"]["others"]["admitted"]["reasons"] == [said]
    assert said in audited.page
    asked = {item["id"]: f"Answer yes or no.\n\n{item['question']}" for item in items()}
    for trial, completion in calls_of_stage(audited, "self_report"):
        assert trial.prompt.endswith(asked.pop(trial.item_id))
        assert completion is not None
        assert completion.text == trial.prompt[::-1]
    assert not asked


def calls_of_stage(audited: Audited, kind: str) -> list[Any]:
    settings = Settings(home=audited.home)
    with closing(Records(settings.records_url)) as records:
        (record,) = records.audits()
        said = view(records, record.audit_id).inputs.asked[kind].said
    assert said is not None
    store = LocalArtifacts(Path(settings.artifacts))
    return list(calls_of(store, get_model(store, said, RewriteSet)))


def test_the_card_names_each_plug_in_that_gave_the_score_with_its_version(audited: Audited) -> None:
    parts = ("backend backwards", "channel admitted", "channel published", "stage self_report", "strategy polite")
    assert audited.document["card"]["plugins"] == dict.fromkeys(parts, TOY)
    assert f"Plug-ins {' '.join(f'{part} {TOY}' for part in parts)}" in audited.page
    assert (
        audited.proctor("suite", "fingerprint", audited.folder / "suite.json").split()[0]
        == (audited.document["fingerprint"])
    )


def test_the_plan_says_what_the_channels_say_of_it_and_what_the_stage_asks(audited: Audited) -> None:
    plan = audited.proctor("audit", "plan", audited.folder / "suite.json", "--format", "json")
    notes = json.loads(plan)["notes"]
    assert f"the published channel: the dates of {N_ITEMS} items are read; no model is asked for them" in notes
    assert f"the admitted channel of {TOY} needs the stage self_report in protocol_config.stages" in notes
    assert any(f"the stage self_report of {TOY} asks {N_ITEMS} prompts" in note for note in notes)
    assert any(note.endswith("the other required channels are clean: admitted, published") for note in notes)


def test_the_decision_is_in_the_registry(audited: Audited) -> None:
    version = audited.result["registry_version"]
    assert version == "5" * 12
    event = json.loads((audited.folder / "registry" / f"{version}.json").read_text())
    assert (event["outcome"], event["reportDigest"]) == ("review", audited.result["report_digest"])


def test_answers_of_the_audit_are_compared_in_the_log_format(audited: Audited) -> None:
    answered = audited.document["evidence"]["perturbation"]["items"]
    rights = {
        "canonical": [bool(item["canonical_correct"]) for item in answered],
        "reworded": [item["perturbed_correct"] > 0 for item in answered],
    }
    for name, right in rights.items():
        lines = (f"{item['item_id']}: {is_right:d}\n" for item, is_right in zip(answered, right, strict=True))
        (audited.folder / f"{name}.log").write_text("".join(["tally 1\n", *lines]))
    files = [audited.folder / f"{name}.log" for name in rights]
    compared = json.loads(audited.proctor("compare", *files, "--format", "json"))
    assert compared["formats"] == {"a": f"tally of {TOY}", "b": f"tally of {TOY}"}
    assert (compared["n"], compared["only_a"], compared["only_b"]) == (N_ITEMS, 0, 0)


def test_nothing_of_a_worker_went_wrong(audited: Audited) -> None:
    logs = {path.name: path.read_text() for path in (audited.home / "logs").glob("worker-*.log")}
    assert len(logs) == 5
    assert [name for name, text in logs.items() if "Traceback" in text] == []
