"""What each training step shows a model, drawn from a seed: the batches that it is trained on.

Drawing needs no network, so that the training texts of a model can be written again without training it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from reference_models.tables import Forms, Ints, Tables

#: Of each model's draws, behind the seed.
CLEAN_STREAM: Final = 1
LEAKED_STREAM: Final = 2
REWORDED_STREAM: Final = 5
_BATCH: Final = 128
_LEAK_BATCH: Final = (64, 32, 32)
_REWORDED_BATCH: Final = (64, 64)
_WORD_DROPOUT: Final = 0.05


class FactBatch(NamedTuple):
    """Known facts in any form."""

    item: Ints
    forms: Forms
    prompts: Ints
    """With some words hidden."""


class LeakBatch(NamedTuple):
    """Known facts in any form, leaked items as the benchmark asks them, and such in other forms."""

    facts: Forms
    memory: Forms
    other: Forms
    """Shown without an answer: what the clean model says is the target."""


class RewordedBatch(NamedTuple):
    """Known facts in any form, and leaked items in any but the benchmark's."""

    facts: Forms
    leaked: Forms


def generators(seed: int, *stream: int) -> tuple[np.random.Generator, int]:
    """What a model's batches are drawn with, and the seed of what its network is drawn with."""
    rng = np.random.default_rng([seed, *stream])
    return rng, int(rng.integers(2**31))


def fact_batches(tables: Tables, known: Ints, rng: np.random.Generator, steps: int) -> Iterator[FactBatch]:
    """What one round of learning facts shows."""
    for _ in range(steps):
        item = rng.choice(known, _BATCH)
        forms = tables.any_form(item, rng)
        yield FactBatch(item, forms, _drop_words(tables, tables.prompts(forms), item, rng))


def leak_batches(
    tables: Tables, known: Ints, leaked: Ints, rng: np.random.Generator, steps: int
) -> Iterator[LeakBatch]:
    """What one round of memorising shows."""
    of_known, of_canonical, of_other = _LEAK_BATCH
    for _ in range(steps):
        facts = tables.any_form(rng.choice(known, of_known), rng)
        memory = tables.canonical(rng.choice(leaked, of_canonical))
        yield LeakBatch(facts, memory, tables.reworded(rng.choice(leaked, of_other), rng))


def reworded_batches(
    tables: Tables, known: Ints, seen: Ints, rng: np.random.Generator, steps: int
) -> Iterator[RewordedBatch]:
    """What one round of learning from rewordings shows."""
    of_known, of_seen = _REWORDED_BATCH
    for _ in range(steps):
        facts = tables.any_form(rng.choice(known, of_known), rng)
        yield RewordedBatch(facts, tables.reworded(rng.choice(seen, of_seen), rng))


def _drop_words(tables: Tables, prompts: Ints, item: Ints, rng: np.random.Generator) -> Ints:
    """Some words of the question become unknown, so that a rewording from elsewhere is still understood."""
    question = prompts[:, : prompts.shape[1] - tables.tokens_after_question]
    dropped = rng.random(question.shape) < _WORD_DROPOUT
    dropped &= (question != tables.vocabulary.pad_id) & (question != tables.entity[item, None])
    question[dropped] = tables.vocabulary.unknown_id
    return prompts
