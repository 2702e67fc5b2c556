"""The versioned instructions for the rewording model, in which the item's text is material and never a part."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from pydantic import Field

from proctor.domain.base import Frozen
from proctor.domain.canonical import bytes_digest
from proctor.domain.errors import BadInputError
from proctor.text.filling import fill, tag_for

_FILE: Final = re.compile(r"instructions-([0-9]+)\.json")

Paragraphs = tuple[str, ...]


class Instructed(Frozen):
    """The instructions of a strategy that asks once: candidates take them in turn."""

    prompt: Paragraphs = Field(min_length=1)
    cue: str
    """Ends a prompt that goes out as a completion, where a chat's turn would begin."""
    instructions: tuple[str, ...] = Field(min_length=1)


class Translated(Frozen):
    """The instructions of a translation there and back: candidates take the languages in turn."""

    there: Paragraphs = Field(min_length=1)
    back: Paragraphs = Field(min_length=1)
    cue: str
    languages: tuple[str, ...] = Field(min_length=1)


class Instructions(Frozen):
    """All instructions of a version."""

    version: str
    paraphrase_llm: Instructed
    back_translation: Translated
    forward_full: Instructed
    noisy_rewrite: Instructed


class LoadedInstructions(NamedTuple):
    """A version, and the digest of its file's bytes."""

    content: Instructions
    digest: str


def known_versions() -> list[str]:
    """The versions that come with this Proctor, the oldest first."""
    found = (_FILE.fullmatch(entry.name) for entry in files(__package__).iterdir())
    return sorted((match[1] for match in found if match), key=int)


@cache
def load_instructions(version: str) -> LoadedInstructions:
    """The instructions of a version.

    Raises:
        BadInputError: for a version that does not come with this Proctor.
    """
    if version not in known_versions():
        raise BadInputError(
            f"perturbation_config.paraphraser.templates {version!r} does not exist; there are: "
            f"{', '.join(known_versions())}"
        )
    data = (files(__package__) / f"instructions-{version}.json").read_bytes()
    return LoadedInstructions(Instructions.model_validate_json(data), bytes_digest(data))


def prompt_of(paragraphs: Sequence[str], question: str, values: Mapping[str, str]) -> str:
    """The prompt about a question.

    Filled in one pass, so braces in the question stay what they are; and the question stands between tags that it
    does not hold itself.

    Args:
        paragraphs: text with {tag}, {question} and the names of `values`.
        question: the wording to work on.
        values: what else is put in.
    """
    return fill(paragraphs, {**values, "tag": tag_of(question), "question": question})


def tag_of(question: str) -> str:
    """The name of the tags around a question: `question`, or with a number where the text has such tags itself."""
    return tag_for(question, "question")
