"""The pairs that a calibration of the gate is learned from, read and made as a suite says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from proctor.domain.canonical import bytes_digest
from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.domain.suite import Suite
from proctor.formats.items import load_items
from proctor.formats.named_file import read_named_file
from proctor.formats.rewordings import MatchedRewordings, match_rewordings, parse_rewordings
from proctor.perturbation.admission.pairs import ChangedQuestion, LabelledPair, nearest_different, neighbours_needed
from proctor.perturbation.admission.window import Goals
from proctor.perturbation.candidate import Candidate
from proctor.perturbation.encoder import Encoder
from proctor.perturbation.recipe import Recipe, refuse_to_ask
from proctor.perturbation.suite_rewordings import matched_rewordings
from proctor.runtime.settings import Settings

#: Of the name of what was done to a question, which heads a line of what is printed; and such names in all.
_KIND_CHARACTERS: Final = 60
_KINDS: Final = 20


class CalibrationPairs(NamedTuple):
    """Labelled pairs, what they came from by digest, and what a person should know of them."""

    items: tuple[Item, ...]
    """The whole benchmark."""
    pairs: list[LabelledPair]
    changed: list[ChangedQuestion] | None
    """None where no such questions were given."""
    inputs: dict[str, str]
    notes: tuple[str, ...]


def labelled_pairs(
    suite: Suite,
    base: Path,
    settings: Settings,
    encoder: Encoder,
    goals: Goals,
    *,
    same: Path | None,
    other: Path | None,
    changed: Path | None = None,
) -> CalibrationPairs:
    """Equivalent and different pairs of a suite's whole benchmark, whatever sample the suite asks.

    Args:
        suite: names the benchmark and, without a file, the strategy whose rewordings are taken for equivalent.
        base: the folder that the suite's relative paths start from.
        settings: where the reference bundle and the operator's benchmarks are.
        encoder: finds the nearest different questions.
        goals: decides how many of those are needed.
        same: rewordings that are known to be equivalent.
        other: rewordings that are known not to be; by default the nearest different questions.
        changed: questions that were made from items and ask something else on purpose, each with its `kind`.

    Raises:
        BadInputError: when a file cannot be read or used.
    """
    loaded = load_items(suite.dataset, base, settings.bundle, settings.benchmarks, hub=settings.hub)
    items, benchmark = loaded.items, suite.dataset.benchmark_name
    inputs = {"items": loaded.digest}
    notes: list[str] = []
    if same is None:
        equivalent, note = _of_strategy(suite, base, settings.bundle, items)
        notes.append(note)
    else:
        equivalent = _of_file("--pairs", same, items, benchmark, inputs, notes)
    pairs = [LabelledPair(item, candidate, equivalent=True) for item, candidate in equivalent]
    if other is None:
        pairs += nearest_different(items, encoder, neighbours_needed(len(items), goals))
    else:
        different = _of_file("--different", other, items, benchmark, inputs, notes)
        pairs += [LabelledPair(item, candidate, equivalent=False) for item, candidate in different]
    on_purpose = None if changed is None else _changed(changed, items, benchmark, inputs, notes)
    return CalibrationPairs(items, pairs, on_purpose, inputs, tuple(notes))


def _of_strategy(
    suite: Suite, base: Path, bundle: Path, items: Sequence[Item]
) -> tuple[list[tuple[Item, Candidate]], str]:
    section, benchmark = suite.perturbation, suite.dataset.benchmark_name
    refuse_to_ask(section, "give rewordings that somebody has read in --pairs")
    data = (
        None if section.rewordings_path is None else read_named_file(base / section.rewordings_path, "rewordings_path")
    )
    matched = matched_rewordings(section, items, benchmark, data)
    chain = Recipe(section, benchmark=benchmark, bundle=bundle).chain(matched.by_item)
    pairs = [
        (item, candidate)
        for item in items
        for candidate in chain.candidates(item, seed=section.seed, limit=section.num_variants_per_item)
    ]
    return pairs, f"the rewordings of {chain.name!r} are taken for equivalent; nobody has read them"


def _of_file(
    option: str, path: Path, items: Sequence[Item], benchmark: str, inputs: dict[str, str], notes: list[str]
) -> list[tuple[Item, Candidate]]:
    return _candidates(_matched(option, path, items, benchmark, inputs, notes), items)


def _matched(
    option: str, path: Path, items: Sequence[Item], benchmark: str, inputs: dict[str, str], notes: list[str]
) -> MatchedRewordings:
    data = read_named_file(path, option)
    inputs[option.removeprefix("--")] = bytes_digest(data)
    rows = parse_rewordings(data, str(path))
    matched = match_rewordings(rows, items, benchmark)
    if matched.unmatched:
        first = matched.unmatched[0]
        note = f"{len(matched.unmatched)} of {len(rows)} rows of {path} belong to no item (line {first.line}: "
        notes.append(f"{note}{first.reason})")
    return matched


def _changed(
    path: Path, items: Sequence[Item], benchmark: str, inputs: dict[str, str], notes: list[str]
) -> list[ChangedQuestion]:
    matched = _matched("--changed", path, items, benchmark, inputs, notes)
    changed = []
    for item in items:
        for row in matched.by_item.get(item.item_id, ()):
            if not row.kind or len(row.kind) > _KIND_CHARACTERS:
                raise BadInputError(
                    f"{path}:{row.line}: a question that was changed on purpose needs its kind, e.g. analogous or "
                    f"extended, in at most {_KIND_CHARACTERS} characters"
                )
            candidate = Candidate(row.question, item.choices, "changed", 1, {})
            changed.append(ChangedQuestion(item, candidate, row.kind))
    if len({one.kind for one in changed}) > _KINDS:
        raise BadInputError(f"{path} has more than {_KINDS} kinds of changes: a share is reported for each")
    if not changed:
        raise BadInputError(f"{path} holds no question of an item of the benchmark")
    return changed


def _candidates(matched: MatchedRewordings, items: Sequence[Item]) -> list[tuple[Item, Candidate]]:
    return [
        (item, Candidate(row.question, row.choices or item.choices, "imported", 1, {"imported": {"line": row.line}}))
        for item in items
        for row in matched.by_item.get(item.item_id, ())
    ]
