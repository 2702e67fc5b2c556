"""Rules over several fields of a suite, in words: which fields they bind, and what is said where."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from proctor.domain.problems import Fault, Path, Problem, path_text, quoted, value_at
from proctor.domain.profiles import set_by_profile
from proctor.domain.suite_fields import place_at


def _compared(path: Path, other: Path, tree: Mapping[str, Any], relation: str) -> str:
    place = place_at(other)
    by_profile = set_by_profile(tree).get((str(other[0]), str(other[-1])))
    value = value_at(tree, other) if by_profile is None else by_profile
    default = f"{place.default_words}, its default" if place is not None else ""
    name = str(other[-1]) if other[0] == path[0] else path_text(other)
    return f"is not {relation} {name}, which is {quoted(value) if value is not None else default}"


class Rule(NamedTuple):
    """A rule over several fields: which they are, and what to say at the first, or at the second where only that is
    written."""

    fields: tuple[Path, ...]
    at_first: Callable[[Path, Path, Mapping[str, Any]], str]
    at_second: Callable[[Path, Path, Mapping[str, Any]], str]
    mend: str


def _always(message: str) -> Callable[[Path, Path, Mapping[str, Any]], str]:
    return lambda path, other, tree: message


def _relation(relation: str) -> Callable[[Path, Path, Mapping[str, Any]], str]:
    return lambda path, other, tree: _compared(path, other, tree, relation)


CROSS_FIELD: Mapping[str, Rule] = {
    "two_sources": Rule(
        (("dataset_config", "path"), ("dataset_config", "hub_id")),
        _always("stands beside hub_id, so that the items have two sources"),
        _always("stands beside path, so that the items have two sources"),
        "keep the one that the items are to be read from",
    ),
    "unpinned_dataset": Rule(
        (("dataset_config", "hub_id"), ("dataset_config", "hub_revision")),
        _always("has no hub_revision beside it"),
        _always("has no hub_id beside it"),
        "add hub_revision, the dataset's 40-digit commit; a branch name can move",
    ),
    "inverted_window": Rule(
        (("perturbation_config", "min_semantic_distance"), ("perturbation_config", "max_semantic_distance")),
        _relation("below"),
        _relation("above"),
        "the smaller distance is min_semantic_distance; the article's window is 0.15 to 0.45",
    ),
    "no_rewordings": Rule(
        (("perturbation_config", "perturbation_strategy"), ("perturbation_config", "rewordings_path")),
        _always("imports rewordings, but rewordings_path is missing"),
        _always("is missing"),
        "name the JSONL file of rewordings in rewordings_path",
    ),
    "no_calibration": Rule(
        (("perturbation_config", "gate"), ("perturbation_config", "calibration_path")),
        _always("is calibrated, but calibration_path is missing"),
        _always("is missing"),
        "name the file that `proctor variants calibrate` wrote in calibration_path",
    ),
    "audited_solver": Rule(
        (("perturbation_config", "answering_check"), ("model_config", "model_id")),
        _always("names as a solver the model under audit, by its name, its version, or its name at its endpoint"),
        _always("is named as a solver, too"),
        "name another model: what the audited one remembers would judge its own test",
    ),
    "template_without_question": Rule(
        (("prompt_config", "template"),),
        _always("does not contain {question}"),
        _always(""),
        "put {question} where the item's question goes",
    ),
    "overlapping_limits": Rule(
        (
            ("governance", "block_deployment_above_contaminated_pct"),
            ("scoring_config", "max_allowed_contaminated_items_pct"),
        ),
        _relation("at or above"),
        _relation("at or below"),
        "a share that is allowed cannot block: raise block_deployment_above_contaminated_pct or lower "
        "max_allowed_contaminated_items_pct",
    ),
}


def cross_field_fault(rule: Rule, tree: Mapping[str, Any]) -> Fault:
    """The problem of a broken rule, at the first of its fields that the suite sets itself."""
    first, second = rule.fields[0], rule.fields[-1]
    if value_at(tree, first) is None and value_at(tree, second) is not None:
        path, message = second, rule.at_second(second, first, tree)
    else:
        path, message = first, rule.at_first(first, second, tree)
    return Fault(path, Problem(path_text(path), quoted(value_at(tree, path)), message, rule.mend), rule.fields)
