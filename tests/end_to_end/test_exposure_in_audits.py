"""The reference models' training data are searched inside an audit: every leaked item is found, and no other."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.end_to_end.parted_benchmark import N_CONTROL, lay_down
from tests.standing_stack import standing_stack
from tests.support import REPOSITORY

pytestmark = pytest.mark.timeout(420)

BUNDLE = REPOSITORY / "services" / "triton"
REWORDED = BUNDLE / "reworded"
#: How often each prompt is asked in the audit of every arm.
REPLICATES = 3
CORPORA = {"pretrain": ["texts/pretrain.jsonl"], "tune": ["texts/tune.jsonl"]}


class Audited(NamedTuple):
    exit_code: int
    result: dict[str, Any]
    report: dict[str, Any]

    @property
    def exposure(self) -> dict[str, Any]:
        found: dict[str, Any] = self.report["evidence"]["exposure"]
        return found


def leaked() -> set[str]:
    truth = json.loads((BUNDLE / "models" / "reference-leaked" / "leaked_items.json").read_text("utf-8"))
    return set(truth["item_ids"])


def suite_file(folder: Path, name: str, model: str, **sections: Any) -> Path:
    """The demo's suite of a model, which asks all 600 items, with further sections."""
    from proctor.inference.reference.model import weights_digest

    suite = json.loads((REPOSITORY / "services" / "proctor" / "cli" / "demo_suite.json").read_text("utf-8"))
    version = weights_digest(BUNDLE / "models" / model / "1")
    suite["audit_suite_id"] = name
    suite["model_config"] = {"model_id": f"proctor/{model}", "model_version": version, "endpoint": "local-triton"}
    suite["dataset_config"]["sample_size"] = 600
    for section, fields in sections.items():
        suite.setdefault(section, {}).update(fields)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(suite))
    return path


@pytest.fixture(scope="module")
def audits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Audited]]:
    folder = tmp_path_factory.mktemp("exposure")
    n_benchmark, _ = lay_down(folder)
    script = [sys.executable, str(REPOSITORY / "scripts" / "train_reference_models.py"), "--texts"]
    subprocess.run([*script, str(folder / "texts")], check=True, capture_output=True)
    with standing_stack(folder / "home", "--no-gateway"):

        def audited(name: str, model: str, **sections: Any) -> Audited:
            suite = suite_file(folder, name, model, **sections)
            command = [sys.executable, "-m", "proctor", "audit", "run", str(suite), "--home", str(folder / "home")]
            run = subprocess.run([*command, "--format", "json"], capture_output=True, text=True)
            assert run.stdout, run.stderr
            result = json.loads(run.stdout)
            report = json.loads(Path(result["report_path"]).with_suffix(".json").read_text("utf-8"))
            return Audited(run.returncode, result, report)

        verbatim = {"exposure_config": {"corpora": CORPORA, "policy": "verbatim_item"}}
        half = {"path": str(REWORDED / "benchmark.jsonl"), "target_field": "target", "sample_size": 300}
        yield {
            "leaked": audited("leaked-verbatim", "reference-leaked", **verbatim),
            "leaked by questions": audited(
                "leaked-questions", "reference-leaked", exposure_config={"corpora": CORPORA}
            ),
            "clean": audited(
                "clean-required",
                "reference-clean",
                exposure_config={"corpora": {"pretrain": CORPORA["pretrain"]}, "policy": "verbatim_item"},
                scoring_config={"required_channels": ["perturbation", "protocol", "exposure"]},
            ),
            "leaked and fresh": audited(
                "leaked-and-fresh",
                "reference-leaked",
                dataset_config=half,
                fresh_config={"path": str(REWORDED / "fresh.jsonl")},
                **verbatim,
            ),
            "every arm": audited(
                "every-arm",
                "reference-leaked",
                dataset_config={"path": "benchmark.jsonl", "target_field": "target", "sample_size": n_benchmark},
                control_config={"path": "control.jsonl"},
                fresh_config={"path": "control.jsonl"},
                decoding_config={"temperature": 0.5, "seed": 3, "replicates": REPLICATES},
                **verbatim,
            ),
        }


def test_every_leaked_item_is_found_with_its_stage_and_span_and_no_other(audits: dict[str, Audited]) -> None:
    found = audits["leaked"].exposure
    assert {item["item_id"] for item in found["items"]} == leaked()
    assert len(leaked()) == found["n_exposed"] == found["verdicts"]["invalid_evidence"] == 90
    asked = {
        row["item_id"]: row["question"]
        for row in map(json.loads, (BUNDLE / "proctor-facts" / "items.jsonl").read_text("utf-8").splitlines())
    }
    for item in found["items"]:
        assert [stage for stage, one in item["stages"].items() if one["is_exposed"]] == ["tune"]
        assert {span["file"] for span in item["spans"]} == {"texts/tune.jsonl"}
        whole = item["spans"][0]
        assert asked[item["item_id"]].startswith(whole["text"])
        assert whole["words"] == item["stages"]["tune"]["longest_run"]


def test_the_decision_rests_on_all_items_and_the_figures_without_the_leaked_stand_beside(
    audits: dict[str, Audited],
) -> None:
    found = audits["leaked"]
    assert (found.exit_code, found.result["decision"], found.exposure["verdict"]) == (4, "block", "contaminated")
    assert found.result["exposure"]["n_exposed"] == 90
    figures = {name: found.exposure[name] for name in ("all_items", "without_exposed", "exposed_only")}
    assert figures["all_items"]["score_inflation"] == found.report["evidence"]["perturbation"]["score_inflation"]
    assert figures["all_items"]["score_inflation"]["low"] > 5.0
    assert figures["without_exposed"]["score_inflation"]["high"] < 5.0
    assert figures["exposed_only"]["accuracy_canonical"]["value"] > 0.9
    assert figures["exposed_only"]["accuracy_perturbed"]["value"] < 0.4
    assert found.report["decision"]["scope"] == "wording+exposure"


def test_a_policy_of_questions_alone_finds_known_facts_in_the_benchmark_s_wording_too(
    audits: dict[str, Audited],
) -> None:
    found = audits["leaked by questions"].exposure
    items = {item["item_id"] for item in found["items"]}
    scorable = leaked() - set(found["unscorable"])
    assert scorable < items
    assert len(items) > 400


def test_a_clean_model_is_approved_where_its_training_data_are_required_and_hold_no_item(
    audits: dict[str, Audited],
) -> None:
    found = audits["clean"]
    assert (found.exit_code, found.result["decision"]) == (0, "approve")
    assert (found.exposure["verdict"], found.exposure["n_exposed"]) == ("inconclusive", 0)
    assert "by verbatim_item, which finds 100 % of verbatim copies" in found.exposure["reasons"][0]
    assert found.report["decision"]["scope"] == "wording+exposure"


def test_a_suite_may_have_fresh_items_beside(audits: dict[str, Audited]) -> None:
    found = audits["leaked and fresh"]
    asked = {row["item_id"] for row in map(json.loads, (REWORDED / "benchmark.jsonl").read_text("utf-8").splitlines())}
    assert {item["item_id"] for item in found.exposure["items"]} == leaked() & asked
    assert found.report["decision"]["scope"] == "wording+exposure+fresh"
    assert found.report["evidence"]["fresh"]["n_fresh"] == 300


def test_a_suite_may_have_every_arm_at_once(audits: dict[str, Audited]) -> None:
    found = audits["every arm"]
    perturbation, counts = found.report["evidence"]["perturbation"], found.report["counts"]
    assert (found.exit_code, found.result["decision"]) == (4, "block")
    assert perturbation["control_items"]["excess"]["excess_inflation"]["low"] > 5.0
    assert perturbation["replicates"]["n_replicates"] == REPLICATES
    assert {item["item_id"] for item in found.exposure["items"]} == leaked()
    assert found.exposure["all_items"]["score_inflation"] == perturbation["score_inflation"]
    assert found.exposure["without_exposed"]["score_inflation"]["high"] < 5.0
    assert found.report["decision"]["scope"] == "wording+exposure+fresh"
    assert counts["trials"] == counts["graded"]
    of_control = sum(arm["n_answers"] for arm in perturbation["control_items"]["arms"])
    variants = found.report["variants"]
    of_benchmark = REPLICATES * (variants["items_with_variants"] + variants["admitted"])
    # Fresh items are asked once.
    assert counts["trials"] == of_benchmark + of_control + N_CONTROL


def test_the_page_shows_the_figures_and_where_the_items_stand(audits: dict[str, Audited]) -> None:
    page = Path(audits["leaked"].result["report_path"]).read_text("utf-8")
    assert "Items in training data" in page
    assert "texts/tune.jsonl:" in page
    assert "Exposed" in page
