"""Suites that tests build on: a small one with every section, and another value for every field."""

from __future__ import annotations

import copy
import json
import re
from typing import Any, NamedTuple

import pytest

from proctor.domain.suite_fields import all_places
from tests.support import missing, shared_data

SMALL: dict[str, Any] = {
    "audit_suite_id": "small",
    "model_config": {"model_id": "org/model", "model_version": "sha256:a1b2c3d4e5f6", "endpoint": "local-triton"},
    "dataset_config": {"benchmark_name": "gsm8k", "sample_size": 50},
    "perturbation_config": {"num_variants_per_item": 3, "min_semantic_distance": 0.1, "max_semantic_distance": 0.4},
    "scoring_config": {"significance_alpha": 0.05, "required_channels": ["perturbation"]},
    "governance": {"audit_owner": "team"},
    "prompt_config": {"few_shot": []},
    "decoding_config": {"temperature": 0.0, "stop": []},
    "metric_config": {"extractor": "auto"},
}


class Change(NamedTuple):
    """One changed field. `around` stands in both suites, so that the change is the only difference."""

    field: str
    value: Any
    around: dict[str, Any]
    is_subject: bool
    """Whether the field belongs to the model and run, and leaves the protocol as it is."""


def _change(field: str, value: Any, *, subject: bool = False, **around: Any) -> Any:
    around = {name.replace("__", "."): setting for name, setting in around.items()}
    return pytest.param(Change(field, value, around, subject), id=field)


_REVISION = "740312add88f781978c0658806c59bc2815b9866"
_FEW_SHOT = {"question": "1 + 1 = ?", "choices": ["1", "2"], "answer": "2"}
_CHECK = "perturbation_config.answering_check"
_SOLVER = {"model": "org/solver", "endpoint": "solver"}


def _of_check(field: str, value: Any) -> Any:
    around = {f"{_CHECK}.solvers": [_SOLVER], f"{_CHECK}.decoding.temperature": 0.7}
    return pytest.param(Change(f"{_CHECK}.{field}", value, around, False), id=f"check {field}")


def _of_solver(field: str, value: Any, *, subject: bool = False) -> Any:
    change = Change(f"{_CHECK}.solvers.{field}", [{**_SOLVER, field: value}], {f"{_CHECK}.solvers": [_SOLVER]}, subject)
    return pytest.param(change, id=f"solver {field}")


def _of_fresh(field: str, value: Any, *, subject: bool = False) -> Any:
    change = Change(f"fresh_config.{field}", value, {"fresh_config.path": "fresh.jsonl"}, subject)
    return pytest.param(change, id=f"fresh {field}")


def _of_exposure(field: str, value: Any, *, subject: bool = False) -> Any:
    around = {"exposure_config.corpora": {"tune": ["sft/*.jsonl"]}}
    return pytest.param(Change(f"exposure_config.{field}", value, around, subject), id=f"exposure {field}")


def _of_control(field: str, value: Any, *, subject: bool = False) -> Any:
    change = Change(f"control_config.{field}", value, {"control_config.path": "control.jsonl"}, subject)
    return pytest.param(change, id=f"control {field}")


CHANGES = [
    _change("$schema", "https://schemas.example/audit-suite/v1.0", subject=True),
    _change("audit_suite_id", "other", subject=True),
    _change("model_config.model_id", "org/other", subject=True),
    _change("model_config.model_version", "sha256:a1b2c3d4e5f7", subject=True),
    _change("model_config.endpoint", "https://host/v1", subject=True),
    _change("model_config.backend", "openai", subject=True),
    _change("model_config.served_name", "other", subject=True),
    _change("dataset_config.benchmark_name", "mmlu"),
    _change("dataset_config.dataset_variant", "socratic"),
    _change("dataset_config.dataset_version", "1.1.0"),
    _change("dataset_config.sample_size", 51),
    _change("dataset_config.sampling_seed", 43),
    _change("dataset_config.selection", "first"),
    _change("dataset_config.path", "test.jsonl", subject=True),
    _change("dataset_config.hub_id", "openai/gsm8k", dataset_config__hub_revision=_REVISION),
    _change(
        "dataset_config.hub_revision", "0" * 40, dataset_config__hub_revision=_REVISION, dataset_config__hub_id="a/b"
    ),
    _change("dataset_config.split", "train"),
    _change("dataset_config.id_field", "id"),
    _change("dataset_config.question_field", "prompt"),
    _change("dataset_config.choices_field", "options"),
    _change("dataset_config.target_field", "target"),
    _change("dataset_config.cluster_field", "passage_id"),
    _change("dataset_config.private", True, subject=True),
    _change("perturbation_config.num_variants_per_item", 4),
    _change("perturbation_config.min_semantic_distance", 0.11),
    _change("perturbation_config.max_semantic_distance", 0.41),
    _change(
        "perturbation_config.gate",
        "calibrated",
        perturbation_config__calibration_path="calibration.json",
    ),
    _change("perturbation_config.calibration_path", "calibration.json", subject=True),
    _change("perturbation_config.max_containment", 0.9),
    _change("perturbation_config.min_margin", 0.05),
    _change("perturbation_config.min_edit_distance", 0.05),
    _change("perturbation_config.perturbation_strategy", "wordings+option_shuffle"),
    _change("perturbation_config.paraphrase_model", "org/paraphraser"),
    _change("perturbation_config.paraphraser.endpoint", "http://host/v1", subject=True),
    _change("perturbation_config.paraphraser.backend", "openai", subject=True),
    _change("perturbation_config.paraphraser.served_name", "other", subject=True),
    _change("perturbation_config.paraphraser.version", "sha256:a1b2c3d4e5f6"),
    _change("perturbation_config.paraphraser.chat_template", "none"),
    _change("perturbation_config.paraphraser.templates", "2"),
    _change("perturbation_config.paraphraser.decoding.temperature", 0.1),
    _change("perturbation_config.paraphraser.decoding.top_p", 0.9),
    _change("perturbation_config.paraphraser.decoding.max_tokens", 8),
    _change("perturbation_config.paraphraser.decoding.seed", 7),
    _change("perturbation_config.paraphraser.decoding.stop", ["\n"]),
    _change("perturbation_config.rewordings_path", "rewordings.jsonl", subject=True),
    _change("perturbation_config.seed", 1),
    _change("perturbation_config.max_token_overlap", 0.8),
    _change("perturbation_config.strict_relations", True),
    _change("perturbation_config.min_yield", 0.6),
    _change(f"{_CHECK}.solvers", [_SOLVER]),
    _of_solver("model", "org/other"),
    _of_solver("endpoint", "elsewhere", subject=True),
    _of_solver("backend", "openai", subject=True),
    _of_solver("served_name", "other", subject=True),
    _of_solver("version", "sha256:b1b2c3d4e5f6"),
    _of_solver("chat_template", "user"),
    _of_check("samples", 6),
    _of_check("alpha", 0.04),
    _of_check("min_skill", 0.4),
    _of_check("disagreeing", "listed"),
    _of_check("allowed", ["0123456789abcdef"]),
    _of_check("decoding.temperature", 0.1),
    _of_check("decoding.top_p", 0.9),
    _of_check("decoding.max_tokens", 8),
    _of_check("decoding.stop", ["\n"]),
    _change("scoring_config.contamination_threshold", 0.11),
    _change("scoring_config.significance_alpha", 0.01),
    _change("scoring_config.max_allowed_contaminated_items_pct", 4.0),
    _change("scoring_config.method", "per_item_t_test"),
    _change("scoring_config.confidence_level", 0.9),
    _change("scoring_config.guess_chance", 0.1),
    _change("scoring_config.max_cut_short_pct", 5.0),
    _change("scoring_config.design.kind", "sequential"),
    _change("scoring_config.design.looks", [0.5, 1.0], scoring_config__design__kind="sequential"),
    _change("scoring_config.design.spending", "obrien_fleming", scoring_config__design__kind="sequential"),
    _change("scoring_config.design.futility", 0.0, scoring_config__design__kind="sequential"),
    _change("scoring_config.required_channels", ["perturbation", "protocol", "noise"]),
    _change("governance.profile", "strict"),
    _change("governance.audit_owner", "other", subject=True),
    _change("governance.review_required_above_cs", 0.3),
    _change("governance.block_deployment_above_contaminated_pct", 6.0),
    _change("governance.required_weights", "proven", subject=True),
    _change("governance.approval_expires_after_days", 90, subject=True),
    _change("governance.approval_ends_when_superseded", True, subject=True),
    _change("governance.result_retention_days", 30, subject=True),
    _change("governance.notify_on_failure", ["a@example.org"], subject=True),
    _change("prompt_config.template", "Q: {question}\nA:"),
    _change("prompt_config.chat_template", "user"),
    _change("prompt_config.few_shot", [_FEW_SHOT]),
    _change("prompt_config.few_shot.question", [{**_FEW_SHOT, "question": "?"}], prompt_config__few_shot=[_FEW_SHOT]),
    _change("prompt_config.few_shot.choices", [{**_FEW_SHOT, "choices": []}], prompt_config__few_shot=[_FEW_SHOT]),
    _change("prompt_config.few_shot.answer", [{**_FEW_SHOT, "answer": "3"}], prompt_config__few_shot=[_FEW_SHOT]),
    _change("protocol_config.protocol", "router_worker"),
    _change("protocol_config.max_routers", 3),
    _change("protocol_config.sampling", "independent"),
    _change("protocol_config.matched_clean", False),
    _change("protocol_config.router.model", "org/router"),
    _change("protocol_config.router.endpoint", "http://host/v1", subject=True),
    _change("protocol_config.router.backend", "openai", subject=True),
    _change("protocol_config.router.served_name", "other", subject=True),
    _change("protocol_config.router.version", "sha256:a1b2c3d4e5f6"),
    _change("protocol_config.router.chat_template", "user"),
    _change("protocol_config.router.decoding.temperature", 0.1),
    _change("protocol_config.router.decoding.top_p", 0.9),
    _change("protocol_config.router.decoding.max_tokens", 8),
    _change("protocol_config.router.decoding.seed", 7),
    _change("protocol_config.router.decoding.stop", ["\n"]),
    _change("decoding_config.temperature", 0.7),
    _change("decoding_config.top_p", 0.9),
    _change("decoding_config.max_tokens", 8),
    _change("decoding_config.seed", 7),
    _change("decoding_config.stop", ["\n"]),
    _change("metric_config.extractor", "numeric"),
    _of_fresh("path", "other.jsonl", subject=True),
    _of_fresh("panel_path", "panel.jsonl", subject=True),
    _of_fresh("sample_size", 100),
    _of_fresh("id_field", "name"),
    _of_fresh("question_field", "text"),
    _of_fresh("choices_field", "options"),
    _of_fresh("target_field", "right"),
    _of_exposure("corpora", {"pretrain": ["web/*.jsonl"]}),
    _of_exposure("policy", "verbatim_item"),
    _of_exposure("ngram", 8),
    _of_exposure("without_markup", True),
    _of_exposure("text_columns", ["body"]),
    _of_exposure("max_skipped_pct", 2.0),
    _change("decoding_config.replicates", 3, decoding_config__temperature=0.5),
    _of_control("path", "other.jsonl", subject=True),
    _of_control("sample_size", 100),
    _of_control("id_field", "name"),
    _of_control("question_field", "text"),
    _of_control("choices_field", "options"),
    _of_control("target_field", "right"),
    _of_control("cluster_field", "passage"),
]
#: These have one value only, so that there is no other to change them to.
UNCHANGEABLE = {"metric_config.name", "protocol_config.templates", f"{_CHECK}.decoding.seed"}
#: Has no value but its default where no plug-in is installed, and is not written then.
PLUGINS = {"protocol_config.stages"}
#: Not written where it stands at its default, so that suites keep the bytes of the time before it.
NOT_WRITTEN = {
    "governance.profile", "governance.required_weights",
    "governance.approval_expires_after_days", "governance.approval_ends_when_superseded",
    "perturbation_config.min_margin", "dataset_config.cluster_field", "decoding_config.replicates",
    "scoring_config.max_cut_short_pct",
    *(f"scoring_config.design.{field}" for field in ("kind", "looks", "spending", "futility")),
}  # fmt: skip
#: Of a section that is absent by default.
_OPTIONAL = (f"{_CHECK}.", "fresh_config.", "exposure_config.", "control_config.")
ABSENT = {place.dotted for place in all_places() if place.dotted.startswith(_OPTIONAL)}
#: What an audit may use is no part of what it finds.
BESIDE_THE_CARD = {"budget_config.max_trials": 10, "budget_config.max_tokens": 10, "budget_config.max_cost": 0.5}


def leaf_fields() -> set[str]:
    """Every field that holds a value, by dotted path."""
    lists = ("prompt_config.few_shot", f"{_CHECK}.solvers")
    return {place.dotted for place in all_places() if place.section is None or place.dotted in lists}


def with_changes(changes: dict[str, Any], base: dict[str, Any] = SMALL) -> dict[str, Any]:
    """A suite's data with some fields set; a path ends at a list, so list members are set whole."""
    data = copy.deepcopy(base)
    for path, value in changes.items():
        *sections, name = re.sub(r"(few_shot|solvers)\..*", r"\1", path).split(".")
        target: Any = data
        for section in sections:
            target = target.setdefault(section, {}) if isinstance(target, dict) else None
        if isinstance(target, dict):
            target[name] = value
    return data


def article_suite() -> str:
    """The suite of the article that the project comes from, exactly as it is printed there."""
    article = shared_data().parent / "seeds" / "contamination-audit-article.txt"
    if not article.is_file():
        missing(f"no article at {article}")
    text = article.read_text("utf-8")
    start = text.index('{\n  "$schema"')
    _, length = json.JSONDecoder().raw_decode(text[start:])
    return text[start : start + length]
