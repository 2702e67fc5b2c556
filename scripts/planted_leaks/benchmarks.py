"""Three benchmarks of three kinds, each with what an audit asks beside it and what a model is trained on.

All of it follows from the sources and a seed: which facts or problems are the benchmark's items, which are the fresh
ones, and which are left for training. No text of an item stands in the training text but by a leak.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from planted_leaks.relations import RELATIONS
from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.domain.suite import PromptSection
from proctor.text.prompt import render_prompt

#: Of the draws of items; the seeds of a study's runs are others.
DRAW_SEED: Final = 20_260_718
#: Of a relation with few answers (three networks broadcast most series) a benchmark takes no more than its share.
OPTIONS: Final = 4
_PROMPT: Final = PromptSection()


class Example(NamedTuple):
    """One text to train on: what is asked, and the answer, of which alone the loss is taken."""

    prompt: str
    answer: str


class Question(NamedTuple):
    """One fact or problem, in every wording that the study has of it."""

    item: Item
    reworded: tuple[str, ...]
    """For the audit; the gate has yet to admit them."""
    leaked: tuple[str, ...]
    """In which a leak is rephrased."""
    orders: tuple[tuple[str, ...], ...] = ()
    """Of multiple choice: the options for each of `leaked`."""


@dataclass(frozen=True)
class Kind:
    """A kind of benchmark."""

    name: str
    title: str
    extractor: str
    max_tokens: int
    strategy: str
    variants: int
    questions: Callable[[Path], list[Question]] = field(repr=False)


@dataclass(frozen=True)
class Benchmark:
    """A kind's questions, dealt out."""

    kind: Kind
    items: tuple[Question, ...]
    fresh: tuple[Question, ...]
    training: tuple[Question, ...]

    def canonical(self, question: Question) -> Example:
        """A question as the benchmark asks it."""
        return Example(prompt(question.item.question, question.item.choices), answer(question.item))

    def rephrased(self, question: Question, time: int) -> Example:
        """A question as a rephrased leak has it, the `time`-th time."""
        at = time % len(question.leaked)
        choices = question.orders[at] if question.orders else ()
        item = question.item.model_copy(update={"choices": choices})
        return Example(prompt(question.leaked[at], choices), answer(item))


def prompt(question: str, choices: Sequence[str]) -> str:
    """What a model is asked, in training as in an audit: the default template of suites."""
    return render_prompt(_PROMPT, question, choices)


def answer(item: Item) -> str:
    """The answer that training shows: the letter of the right option, or the target itself."""
    return f" {'ABCDEFGH'[item.choices.index(item.target)]}" if item.choices else f" {item.target}"


def deal(kind: Kind, data: Path, *, items: int, fresh: int) -> Benchmark:
    """Deal a kind's questions out, at random by `DRAW_SEED`.

    Args:
        kind: of the benchmark.
        data: the folder that holds `third_party/pararel` and `data/gsm8k`.
        items: of the benchmark.
        fresh: items of the same distribution, which no model is trained on.

    Raises:
        BadInputError: when a source is missing.
    """
    questions = kind.questions(data)
    order = np.random.default_rng([DRAW_SEED, len(questions)]).permutation(len(questions))
    dealt = [questions[index] for index in order]
    # Fresh items come first, so that a larger benchmark begins with the smaller one's items.
    return Benchmark(kind, tuple(dealt[fresh : fresh + items]), tuple(dealt[:fresh]), tuple(dealt[fresh + items :]))


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)
    except OSError as error:
        raise BadInputError(
            f"{path} cannot be read: {error.strerror}",
            "give the folder that holds third_party/pararel and data/gsm8k by --data (docs/study.md says whence)",
        ) from None


def _facts(data: Path) -> list[Question]:
    return [question for _, question in _pararel(data)]


def _pararel(data: Path) -> Iterator[tuple[str, Question]]:
    for relation, wordings in RELATIONS.items():
        seen = set[str]()
        for row in _rows(data / "third_party" / "pararel" / f"{relation}.jsonl"):
            subject, target = row["sub_label"], row["obj_label"]
            # Its answer is in the question ("Toyota RAV4"), or the subject has two of them.
            if subject in seen or target.lower() in subject.lower():
                continue
            seen.add(subject)

            def said(template: str, subject: str = subject) -> str:
                asked = template.format(subject=subject)
                return asked[0].upper() + asked[1:]

            item = Item(
                item_id=f"{relation}-{len(seen):04d}",
                question=said(wordings.canonical),
                target=target,
                dimension=relation,
                metadata={"subject": subject},
            )
            yield relation, Question(item, tuple(map(said, wordings.reworded)), tuple(map(said, wordings.leaked)))


def _letters(data: Path) -> list[Question]:
    """The same facts, each with three other answers of its relation, drawn as often as they are right."""
    found = list(_pararel(data))
    answers: Mapping[str, list[str]] = {
        relation: [question.item.target for of, question in found if of == relation] for relation in RELATIONS
    }
    rng = np.random.default_rng([DRAW_SEED, OPTIONS])
    questions = []
    for relation, question in found:
        options, pool = [question.item.target], answers[relation]
        while len(options) < OPTIONS:
            other = pool[int(rng.integers(len(pool)))]
            if other not in options:
                options.append(other)
        orders = [tuple(options[place] for place in rng.permutation(OPTIONS)) for _ in range(1 + len(question.leaked))]
        item = question.item.model_copy(update={"choices": orders[0]})
        questions.append(question._replace(item=item, orders=tuple(orders[1:])))
    return questions


def _worked(data: Path) -> list[Question]:
    """GSM8K's test problems, answered without working; its training problems are what models are trained on."""
    folder = data / "data" / "gsm8k"
    return [
        Question(_problem(f"gsm8k-{row['index']}", row["original"], row["answer"]), (row["rephrased"],), ())
        for row in _rows(folder / "rephrased.jsonl")
        if row["rephrased"].strip()
    ]


def _problem(item_id: str, question: str, target: str) -> Item:
    return Item(item_id=item_id, question=question, target=target.rpartition("####")[2].strip().replace(",", ""))


def training_problems(data: Path) -> tuple[Question, ...]:
    """GSM8K's training problems."""
    rows = _rows(data / "data" / "gsm8k" / "train.jsonl")
    return tuple(
        Question(_problem(f"gsm8k-train-{number}", row["question"], row["answer"]), (), ())
        for number, row in enumerate(rows)
    )


KINDS: Final = {
    kind.name: kind
    for kind in (
        Kind("facts", "short facts, free answer", "exact", 8, "imported", 3, _facts),
        Kind("letters", "the same facts, four options, a letter", "choice_letter", 4, "imported+option_shuffle", 3,
             _letters),
        Kind("worked", "GSM8K, the number alone", "numeric", 12, "imported", 1, _worked),
    )
}  # fmt: skip
