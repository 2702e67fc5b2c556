"""Which suites are to be run on which versions of a registry: the operator's trigger file.

A rule names models by patterns, and suites by the paths of their files. A suite stays an ordinary one; what it says of
its model is replaced by what the registry says of the version, through placeholders.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Annotated, Any, Final

from pydantic import AfterValidator, AwareDatetime, Field
from pydantic_core import PydanticCustomError

from proctor.domain.base import Frozen
from proctor.domain.canonical import FULL_DIGEST, json_digest, short_id
from proctor.domain.errors import BadInputError
from proctor.domain.messages import Priority
from proctor.domain.problems import SuiteProblems, quoted
from proctor.domain.registered_version import (
    MODEL_DIGEST_TAG,
    MODEL_ID_TAG,
    RegisteredVersion,
    RegistryKind,
    registered_name,
)
from proctor.domain.suite import Suite
from proctor.domain.suite_problems import parse_suite

#: Rules of a file, and patterns or suites of a rule.
MAX_RULES: Final = 200
MAX_ENTRIES: Final = 100
_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")
_NAMES: Final = ("name", "version", "model_id", "digest", "source", "run_id")
_TAG: Final = "tag:"
#: What messages say of them.
PLACEHOLDERS: Final = ", ".join(f"{{{name}}}" for name in _NAMES) + " and {tag:KEY}"
#: A filled text is no longer than what a suite takes for an endpoint.
_MAX_TEMPLATE: Final = 2_048


def _template(text: str) -> str:
    for name in _PLACEHOLDER.findall(text):
        if name not in _NAMES and not (name.startswith(_TAG) and len(name) > len(_TAG)):
            raise PydanticCustomError(
                "unknown_placeholder", "holds an unknown placeholder", {"mend": f"use {PLACEHOLDERS}"}
            )
    if "{" in _PLACEHOLDER.sub("", text) or "}" in _PLACEHOLDER.sub("", text):
        raise PydanticCustomError("open_brace", "holds a brace without its other", {"mend": f"use {PLACEHOLDERS}"})
    return text


_Template = Annotated[str, Field(min_length=1, max_length=_MAX_TEMPLATE), AfterValidator(_template)]
_Pattern = Annotated[str, Field(min_length=1, max_length=512)]


class ModelFilling(Frozen):
    """What stands in a suite's `model_config` for a version; the suite's own word where nothing is said."""

    model_id: _Template = "{model_id}"
    model_version: _Template = "{digest}"
    endpoint: _Template | None = None
    served_name: _Template | None = None


class TriggerRule(Frozen):
    """Suites for the versions that its patterns meet."""

    name: str = Field(min_length=1, max_length=128)
    registry: RegistryKind = RegistryKind.MLFLOW
    models: tuple[_Pattern, ...] = Field(min_length=1, max_length=MAX_ENTRIES)
    """Patterns of names as the registry has them, with `*`, `?` and `[…]`; one of them is to meet."""
    tags: dict[str, _Pattern] = Field(default_factory=dict, max_length=MAX_ENTRIES)
    """Patterns of tags' values by their keys; all of them are to meet."""
    suites: tuple[Annotated[str, Field(min_length=1, max_length=4096)], ...] = Field(
        min_length=1, max_length=MAX_ENTRIES
    )
    """Files of suites, relative to the trigger file's folder."""
    model: ModelFilling = ModelFilling()
    priority: Priority = Priority.NORMAL

    def names(self, version: RegisteredVersion) -> bool:
        """Whether a version is in the rule's registry under a name that it looks for."""
        return self.registry is version.registry and any(fnmatchcase(version.name, one) for one in self.models)

    def meets(self, version: RegisteredVersion) -> bool:
        """Whether the rule is of a version; by its name alone where its tags are not known."""
        if not self.names(version):
            return False
        tags = version.tags
        return tags is None or all(
            key in tags and fnmatchcase(tags[key], pattern) for key, pattern in self.tags.items()
        )


class TriggerFile(Frozen):
    """What an operator writes."""

    since: AwareDatetime
    """What was registered before is left alone by whoever looks for versions that no webhook told of."""
    alias: str | None = Field(default=None, min_length=1, max_length=255, pattern=r"^[\w-]+$")
    """An alias that asks for the audits of the version on which it is set; none by default."""
    rules: tuple[TriggerRule, ...] = Field(min_length=1, max_length=MAX_RULES)


class TriggerSuite(Frozen):
    """A suite of a rule, loaded."""

    rule: TriggerRule
    path: str
    """Its file, from the root or as the process found it."""
    suite: Suite
    digest: str
    """Of the suite and the files that it names, without its model: what makes two requests the same."""


class Triggers(Frozen):
    """A trigger file with its suites."""

    since: datetime
    alias: str | None
    suites: tuple[TriggerSuite, ...]

    @property
    def digest(self) -> str:
        """Of all that decides what is started."""
        return json_digest(
            [self.since.isoformat(), *([one.digest, one.rule.model_dump(mode="json")] for one in self.suites)]
        )

    def of(self, version: RegisteredVersion) -> tuple[TriggerSuite, ...]:
        """The suites that a version is to be audited by, each once; the first rule that brings one counts."""
        if version.is_own:
            return ()
        found: dict[str, TriggerSuite] = {}
        for one in self.suites:
            if one.rule.meets(version):
                found.setdefault(one.digest, one)
        return tuple(found.values())


def suite_digest(suite: Suite, contents: Mapping[str, Any]) -> str:
    """The digest of what a suite asks, whatever model it names, with those of the files that it names."""
    said = suite.model_dump(mode="json", by_alias=True)
    # The URI is kept and says nothing; the model is the registry's word.
    return json_digest({"suite": {**said, "model_config": None, "$schema": None}, "contents": dict(contents)})


def request_key(version: RegisteredVersion, digest: str) -> str:
    """The identity of one audit to be: registry, model, version and suite."""
    return short_id([version.registry.value, version.name, version.version, digest], length=40)


def filled(one: TriggerSuite, version: RegisteredVersion) -> Suite:
    """The suite with a version as its model.

    Raises:
        BadInputError: when a placeholder stands for what the registry does not say, or the suite is none with it.
    """
    said = one.suite.model_dump(mode="json", by_alias=True)
    filling = one.rule.model.model_dump(exclude_none=True)
    model = {**said["model_config"], **{key: _filled(text, version, key) for key, text in filling.items()}}
    try:
        suite = parse_suite(json.dumps({**said, "model_config": model}))
    except SuiteProblems as problems:
        raise problems.of(f"{one.path} for {_shown(version)}") from None
    if version.registry is RegistryKind.MLFLOW and registered_name(suite.model.model_id) != version.name:
        raise BadInputError(
            f"{_shown(version)}: model_config.model_id comes to {quoted(suite.model.model_id)}, whose decision would "
            f"be written to another registered model; let rule {quoted(one.rule.name)} fill in {{model_id}}, and "
            f"have the tag {MODEL_ID_TAG} fit the name"
        )
    return suite


def _filled(text: str, version: RegisteredVersion, field: str) -> str:
    def value(match: re.Match[str]) -> str:
        found = _value(match[1], version)
        if found:
            return found
        raise BadInputError(
            f"{_shown(version)} has nothing for {{{match[1]}}}, of which the rule makes model_config.{field}: "
            f"{_mend(match[1], version)}"
        )

    return _PLACEHOLDER.sub(value, text)


def _value(name: str, version: RegisteredVersion) -> str:
    tags = version.tags or {}
    if name.startswith(_TAG):
        return tags.get(name.removeprefix(_TAG), "")
    if name == "digest":
        # A prefix is enough for a suite, but the version's decision is looked up by the whole.
        digest = tags.get(MODEL_DIGEST_TAG, "")
        return digest if FULL_DIGEST.fullmatch(digest) else ""
    if name == "model_id":
        return tags.get(MODEL_ID_TAG) or version.name.replace("~", "/")
    known: Mapping[str, str] = {
        "name": version.name,
        "version": version.version,
        "source": version.source,
        "run_id": version.run_id,
    }
    return known[name]


def _mend(name: str, version: RegisteredVersion) -> str:
    if name == "digest":
        if version.registry is RegistryKind.HUGGINGFACE:
            return "a repository with one file of weights (*.safetensors) has it"
        return f'set the tag {MODEL_DIGEST_TAG} to "sha256:" and the 64 hex digits of the weights'
    return f"set the tag {name.removeprefix(_TAG)}" if name.startswith(_TAG) else "register it with one"


def _shown(version: RegisteredVersion) -> str:
    return f"version {quoted(version.version)} of {quoted(version.name)} ({version.registry})"
