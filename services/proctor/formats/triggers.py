"""The operator's trigger file, with the suites that it names: loaded so that everything wrong is said at once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from proctor.domain.base import Frozen
from proctor.domain.errors import BadInputError
from proctor.domain.problems import Problem, SuiteProblems, path_text, quoted, value_at
from proctor.domain.strict_json import Document, read_document
from proctor.domain.suite import Suite
from proctor.domain.triggers import (
    MAX_ENTRIES,
    MAX_RULES,
    ModelFilling,
    TriggerFile,
    TriggerRule,
    Triggers,
    TriggerSuite,
    suite_digest,
)
from proctor.formats.suites import content_digests, load_suite, read_suite_file

_EXAMPLES: Final[Mapping[str, str]] = {
    "since": '"since": "2026-11-01T00:00:00Z"',
    "rules": '"rules": [{"name": "facts", "models": ["acme~*"], "suites": ["facts.json"]}]',
    "name": '"name": "facts"',
    "models": '"models": ["acme~*"]',
    "suites": '"suites": ["facts.json"]',
}


def load_triggers(path: str | Path, bundle: Path, benchmarks: Path | None = None) -> Triggers:
    """Load a trigger file and its suites, whose paths are relative to its folder.

    Args:
        path: the file.
        bundle: the reference bundle, for digests of the benchmark that Proctor ships.
        benchmarks: the operator's folder of benchmarks.

    Raises:
        BadInputError: when the file cannot be read.
        SuiteProblems: with every problem of the file and of its suites, each with its path and what to do.
    """
    path = Path(path)
    try:
        document = read_document(read_suite_file(path))
    except SuiteProblems as found:
        raise found.of(str(path)) from None
    file, problems = _validated(document)
    suites: dict[_Place, Suite] = {}
    for place, name in _named_suites(document.tree).items():
        where = path_text(("rules", place.rule, "suites", place.suite))
        try:
            suites[place] = load_suite(path.parent / name)
        except SuiteProblems as found:
            problems += [Problem(f"{where} → {one.path}", one.value, one.message, one.mend) for one in found.problems]
        except BadInputError as error:
            problems.append(Problem(where, quoted(name), "is no suite that can be read", str(error)))
    if file is None or problems:
        raise SuiteProblems(problems, str(path))

    def loaded(place: _Place) -> TriggerSuite:
        rule, suite = file.rules[place.rule], suites[place]
        suite_file = path.parent / rule.suites[place.suite]
        contents = content_digests(suite, suite_file.parent, bundle, benchmarks).model_dump()
        digest = suite_digest(suite, contents)
        return TriggerSuite(rule=rule, path=str(suite_file.absolute()), suite=suite, digest=digest)

    return Triggers(since=file.since, alias=file.alias, suites=tuple(map(loaded, suites)))


class _Place(NamedTuple):
    """Where a suite is named."""

    rule: int
    suite: int


def _named_suites(tree: Mapping[str, Any]) -> dict[_Place, str]:
    """The suites that a file names, however much else is wrong in it."""
    rules = tree.get("rules")
    found: dict[_Place, str] = {}
    for place, rule in enumerate(rules[:MAX_RULES] if isinstance(rules, list) else ()):
        names = rule.get("suites") if isinstance(rule, dict) else None
        for index, name in enumerate(names[:MAX_ENTRIES] if isinstance(names, list) else ()):
            if isinstance(name, str) and name and "\0" not in name:
                found[_Place(place, index)] = name
    return found


def _validated(document: Document) -> tuple[TriggerFile | None, list[Problem]]:
    problems = [fault.problem for fault in document.faults]
    try:
        file = TriggerFile.model_validate_json(json.dumps(document.tree), strict=True)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        # A list is called too short, too, by as many of its entries as are faulty.
        meant = [one for one in found if not (one["type"] == "too_short" and value_at(document.tree, one["loc"]))]
        return None, problems + [_worded(one, document.tree) for one in meant]
    return file, problems + _twice_named(file.rules) + _of_one_version(file.rules)


def _worded(error: ErrorDetails, tree: Mapping[str, Any]) -> Problem:
    path, kind = tuple(error["loc"]), error["type"]
    key = str(path[-1]) if path else ""
    context = error.get("ctx") or {}
    if kind == "missing":
        return Problem(path_text(path), "", "is missing", f"add {_EXAMPLES.get(key, f'{key!r}')}")
    shown = quoted(value_at(tree, path))
    if kind == "extra_forbidden":
        return Problem(path_text(path), shown, "is an unknown key", f"remove it; known here: {_known(path)}")
    if "mend" in context:
        return Problem(path_text(path), shown, error["msg"], str(context["mend"]))
    if kind.startswith("datetime") or kind.startswith("timezone"):
        mend = 'write a time with its zone, e.g. "2026-11-01T00:00:00Z"'
        return Problem(path_text(path), shown, "is no point in time", mend)
    if kind in ("enum", "literal_error"):
        return Problem(path_text(path), shown, "is not offered", f"write {context['expected']}")
    if kind == "string_pattern_mismatch":
        return Problem(path_text(path), shown, "has characters that do not belong here", "use letters, digits, _ and -")
    if kind in ("too_short", "string_too_short"):
        return Problem(path_text(path), shown, "is empty", f"write {_EXAMPLES.get(key, 'a value')}")
    message = error["msg"]
    return Problem(path_text(path), shown, "cannot be used here", message[:1].lower() + message[1:])


def _known(path: tuple[str | int, ...]) -> str:
    if len(path) == 1:
        return ", ".join(TriggerFile.model_fields)
    section: type[Frozen] = ModelFilling if path[2:3] == ("model",) and len(path) > 3 else TriggerRule
    return ", ".join(section.model_fields)


def _twice_named(rules: tuple[TriggerRule, ...]) -> list[Problem]:
    seen: dict[str, int] = {}
    problems = []
    for place, rule in enumerate(rules):
        first = seen.setdefault(rule.name, place)
        if first != place:
            where = path_text(("rules", place, "name"))
            problems.append(Problem(where, quoted(rule.name), f"is the name of rules[{first}], too", "rename one"))
    return problems


def _of_one_version(rules: tuple[TriggerRule, ...]) -> list[Problem]:
    """Rules that would take every version for one and the same model."""
    return [
        Problem(
            path_text(("rules", place, "model", "model_version")),
            quoted(rule.model.model_version),
            "is the same for every version",
            "write {digest}, or {tag:KEY} of the tag that holds the digest of a version's weights",
        )
        for place, rule in enumerate(rules)
        if "{" not in rule.model.model_version
    ]
