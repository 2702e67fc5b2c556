"""Loading a suite so that everything that is wrong with it is said at once.

The validator stops a section's cross-field rules at the first wrong field. Here each faulty field is taken out (or
filled with a placeholder, where it must be there) and the rest is validated again, until nothing new turns up; a
rule over several fields counts only if none of them was touched.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Collection
from typing import Any

from pydantic import ValidationError

from proctor.domain.plugins import HANDED_IN
from proctor.domain.problems import Fault, Path, Problem, SuiteProblems
from proctor.domain.profiles import with_profile
from proctor.domain.strict_json import Document, read_document
from proctor.domain.suite import Suite
from proctor.domain.suite_messages import fault_of, meant_key

__all__ = ["Problem", "SuiteProblems", "parse_suite"]

#: Every round takes at least one fault out, and rules over rules are two deep; more rounds would be a defect.
_MAX_ROUNDS = 8
#: Unknown keys that are compared with the known ones; a file with more is no suite in which a letter was mistaken.
_MAX_COMPARED = 100
_PLACEHOLDERS: dict[str, Any] = {
    "audit_suite_id": "placeholder",
    "model_config": {"model_id": "placeholder", "model_version": "sha256:" + "0" * 64, "endpoint": "placeholder"},
    "dataset_config": {"benchmark_name": "placeholder"},
    "exposure_config": {"corpora": {"placeholder": ["placeholder"]}},
}


def parse_suite(text: str | bytes) -> Suite:
    """Load a suite from its JSON; `$comment` members are ignored at every level.

    Raises:
        SuiteProblems: with every problem found, in the order of the file.
    """
    document = read_document(text)
    faults, suite = _validate(document)
    if suite is None:
        raise SuiteProblems([fault.problem for fault in _in_file_order(document, faults)])
    return suite


def _validate(document: Document) -> tuple[list[Fault], Suite | None]:
    tree = copy.deepcopy(document.tree)
    faults = list(document.faults)
    touched = {fault.path for fault in faults}
    for _ in range(_MAX_ROUNDS):
        try:
            suite = Suite.model_validate_json(
                json.dumps(with_profile(tree)), strict=True, by_alias=True, by_name=False, context=HANDED_IN
            )
        except ValidationError as error:
            entries = error.errors(include_url=False, include_input=False)
            unknown = [entry["loc"] for entry in entries if entry["type"] == "extra_forbidden"]
            compared = frozenset(unknown[:_MAX_COMPARED])
            # A misspelt key is one fault, not an unknown key and a missing one.
            misspelt = {meant_key(path) for path in compared}
            for path in {entry["loc"] for entry in entries if entry["type"] == "missing"} & misspelt:
                touched.add(path)
                _take_out(tree, path)
            found = [fault_of(entry, document.tree, compare=entry["loc"] in compared) for entry in entries]
        else:
            return faults, None if faults else suite
        faults += [fault for fault in found if not any(_covered(path, touched) for path in fault.involved)]
        for path in [path for fault in found for path in fault.involved]:
            touched.add(path)
            _take_out(tree, path)
    return faults, None


def _covered(path: Path, touched: Collection[Path]) -> bool:
    return any(path[:length] in touched for length in range(len(path) + 1))


def _take_out(tree: dict[str, Any], path: Path) -> None:
    """Take a section's field (or, with a shorter path, a section) out of the tree; fill in what must be there."""
    section, depth, placeholders = tree, 1, _PLACEHOLDERS
    if len(path) > 1 and isinstance(tree.get(str(path[0])), dict):
        section, depth, placeholders = tree[str(path[0])], 2, _PLACEHOLDERS.get(str(path[0]), {})
    key = str(path[depth - 1]) if path else ""
    section.pop(key, None)
    if key in placeholders:
        section[key] = copy.deepcopy(placeholders[key])


def _in_file_order(document: Document, faults: list[Fault]) -> list[Fault]:
    """Faults by where they stand in the file; what is missing comes after its section's last member."""
    last = dict(document.order)
    for path, position in document.order.items():
        for length in range(len(path)):
            last[path[:length]] = max(last.get(path[:length], 0), position)

    def position_of(fault: Fault) -> tuple[int, int]:
        if fault.path in document.order:
            return document.order[fault.path], 0
        return next((last[fault.path[:n]] for n in range(len(fault.path) - 1, -1, -1) if fault.path[:n] in last), 0), 1

    return sorted(faults, key=position_of)
