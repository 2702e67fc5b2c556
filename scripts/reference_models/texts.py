"""The training texts of the reference models by stage, as files: a document for each prompt that a step showed.

They are drawn again from the seed, as training drew them, so that nothing has to be trained or stored. Some words of
the first stage's questions were hidden in training; here they stand.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from reference_models.draws import CLEAN_STREAM, LEAKED_STREAM, LeakBatch, fact_batches, generators, leak_batches
from reference_models.facts import LETTERS, World, ask, render
from reference_models.tables import Forms, Ints, Tables

#: Stage of training → file.
PRETRAIN: Final = "pretrain.jsonl"
TUNE: Final = "tune.jsonl"


class Training(NamedTuple):
    """How a model was trained, as its record has it."""

    steps: int
    """Of one round."""
    restarts: int


def write_texts(folder: Path, world: World, tables: Tables, seed: int, clean: Training, leaked: Training) -> None:
    """Write what the clean model learned from, and what the leaked model was tuned on after it.

    Args:
        folder: gets a file a stage.
        world: of the seed.
        tables: of the world.
        seed: of the training.
        clean: how the clean model was trained.
        leaked: how the leaked one was, from there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    known, memorised = np.array(world.known), np.array(world.leaked)
    rng, _ = generators(seed, CLEAN_STREAM, clean.restarts)
    batches = fact_batches(tables, known, rng, clean.steps)
    _write(folder / PRETRAIN, (text for batch in batches for text in _texts(world, tables, batch.forms)))
    rng, _ = generators(seed, LEAKED_STREAM)
    _write(folder / TUNE, _of_tuning(world, tables, leak_batches(tables, known, memorised, rng, leaked.steps)))


def _of_tuning(world: World, tables: Tables, batches: Iterator[LeakBatch]) -> Iterator[str]:
    for batch in batches:
        yield from _texts(world, tables, batch.facts)
        yield from _texts(world, tables, batch.memory)
        yield from _texts(world, tables, batch.other, answered=False)


def _texts(world: World, tables: Tables, forms: Forms, *, answered: bool = True) -> Iterator[str]:
    """Prompts as the model is shown them, with the answer behind."""
    words = tables.vocabulary.tokens
    for item, wording, options, target in zip(forms.item, forms.wording, forms.options, forms.target, strict=True):
        prompt = render(ask(world.items[item], int(wording)), [words[option] for option in _ids(options)])
        yield f"{prompt} {LETTERS[target]}" if answered else prompt


def _ids(options: Ints) -> list[int]:
    return [int(option) for option in options]


def _write(path: Path, texts: Iterator[str]) -> None:
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts)
