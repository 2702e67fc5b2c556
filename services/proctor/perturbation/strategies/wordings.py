"""A benchmark's own versioned wordings: ways to ask each kind of question, filled from the item's metadata."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from proctor.domain.canonical import bytes_digest
from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.perturbation.candidate import Draft, Rewrite, seeded_rank
from proctor.perturbation.strategies.base import Strategy
from proctor.text.normalise import canonical_text

_PLACE: Final = re.compile(r"\{(\w+)\}")
_BENCHMARK: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class WordingsData:
    """The templates of a benchmark by dimension. `digest` is of the file's bytes."""

    version: str
    digest: str
    templates: Mapping[str, tuple[str, ...]]


def load_wordings(bundle: Path, benchmark: str) -> WordingsData:
    """Read `<bundle>/<benchmark>/wordings.json`.

    Raises:
        BadInputError: when the benchmark has no wordings of its own, or the file is not of this form.
    """
    path = bundle / benchmark / "wordings.json"
    try:
        data = path.read_bytes() if _BENCHMARK.fullmatch(benchmark) else None
    except (FileNotFoundError, NotADirectoryError):
        data = None
    except OSError as error:
        raise BadInputError(f"{path} cannot be read: {error.strerror}") from None
    if data is None:
        raise BadInputError(
            f"perturbation_strategy 'wordings' needs wordings that come with the benchmark, and {benchmark!r} has "
            "none here: use 'option_shuffle', or 'imported' with rewordings_path"
        )
    try:
        document = json.loads(data)
        templates = {
            dimension: tuple(_template(text) for text in texts) for dimension, texts in document["templates"].items()
        }
        return WordingsData(str(document["version"]), bytes_digest(data), templates)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadInputError(
            f'{path} is not of the form {{"benchmark", "version", "templates": {{dimension: [text, ...]}}}}: {error!r}'
        ) from None


def _template(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{value!r} is not a template")
    return value


class Wordings(Strategy):
    """The other wordings of an item's dimension, sampled without replacement."""

    name = "wordings"
    #: What a benchmark's author wrote keeps the question by its author's word; the rest is for the gate to find.
    preserves = frozenset({"options", "target"})

    def __init__(self, data: WordingsData) -> None:
        self._data = data

    def data_digest(self, item: Item) -> str:
        """Version and digest of the wordings file."""
        return f"wordings/1 {self._data.version} {self._data.digest}"

    def rewrites(self, item: Item, *, seed: int, limit: int) -> Sequence[Rewrite]:
        """The wordings other than the item's own that its metadata can fill."""
        templates = self._data.templates.get(item.dimension, ())
        ranked = sorted(
            range(len(templates)), key=lambda index: seeded_rank("wordings", seed, item.content_hash, index)
        )
        rewrites: list[Rewrite] = []
        taken = {canonical_text(item.question)}
        for index in ranked:
            question = _fill(templates[index], item.metadata)
            if question is None or canonical_text(question) in taken:
                continue
            taken.add(canonical_text(question))
            rewrites.append(self._ask(question, index))
            if len(rewrites) == limit:
                break
        return rewrites

    def nothing_for(self, item: Item) -> tuple[str, str]:
        """The wordings file does not cover the item, or has no other wording."""
        if item.dimension not in self._data.templates:
            return "no_wordings", f"the benchmark has no wordings of the dimension {item.dimension!r}"
        return "no_wordings", "no other wording can be filled from the item's metadata"

    def _ask(self, question: str, index: int) -> Rewrite:
        def apply(draft: Draft) -> Draft:
            return replace(draft, question=question).noting("wordings", version=self._data.version, wording=index)

        return apply


def _fill(template: str, metadata: Mapping[str, Any]) -> str | None:
    """The template with the item's values, in one pass so that a value with braces stays what it is."""
    names = set(_PLACE.findall(template))
    if not all(isinstance(metadata.get(name), str) for name in names):
        return None
    return _PLACE.sub(lambda match: str(metadata[match[1]]), template)
