"""Whether a benchmark's items are private: the suite says so, or the operator does, by its name or by what it holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from proctor.domain.item import Item
from proctor.domain.problems import visible
from proctor.domain.suite import Suite
from proctor.runtime.settings import Settings
from proctor.text.sameness import question_digest

_MARKS: Final = "which the operator of this deployment marks as private"


def private_by_word(suite: Suite, settings: Settings) -> str | None:
    """Why a suite's items are private, as far as its own words tell; None where they do not."""
    return "dataset_config.private is true" if suite.dataset.private else marked_by_name(suite, settings)


def marked_by_name(suite: Suite, settings: Settings) -> str | None:
    """Why a suite's items are private by what the operator says of their benchmark's name; None where they are not."""
    name, hub_id = suite.dataset.benchmark_name, suite.dataset.hub_id
    if settings.private_benchmarks.by_name(name, hub_id) is None:
        return None
    return f"the benchmark is {visible(name)}{'' if hub_id is None else f' ({visible(hub_id)})'}, {_MARKS}"


def private_by_content(dataset_digest: str | None, items: Iterable[Item], settings: Settings) -> str | None:
    """Why items are private whatever they are called; None where they are not.

    Args:
        dataset_digest: of the file that they come from; None where there is none.
        items: those that are to be asked. They are gone through only where the operator marks single items.
        settings: the operator's marks.
    """
    marked = settings.private_benchmarks
    if dataset_digest in marked.datasets:
        return f"the dataset is a file {_MARKS}"
    if marked.items and marked.by_item(question_digest(item.question, item.choices) for item in items):
        return f"the dataset holds an item {_MARKS}"
    return None
