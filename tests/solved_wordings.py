"""Sums in several wordings, some of which ask another sum, and solvers whose answers to them are known."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from proctor.domain.item import Item, Measurements, Variant
from proctor.domain.manifest import AnsweredShard, CompletionSet, RewriteSet
from proctor.domain.suite import PromptSection
from proctor.domain.trial import CHECK_STAGE, Completion, Trial
from proctor.router.plan import plan_trials, shard_of
from proctor.runtime.artifacts.store import ArtifactStore, put_model

Solves = Callable[[Trial], str | None]
"""What a solver answers to a trial; None where no answer comes."""
_MEASURED = Measurements(semantic_distance=0.2, token_overlap=0.1, edit_distance=0.6)
_ASKED = re.compile(r"(\d+) (plus one|plus two)")


def solved(prompt: str) -> int:
    """The answer of a wording: it stands in the wording what is added."""
    number, added = _ASKED.findall(prompt)[-1]
    return int(number) + {"plus one": 1, "plus two": 2}[added]


def knows(trial: Trial) -> str:
    """A solver that answers what a wording asks, in one sentence or another."""
    return f"Let us see. The answer is {solved(trial.prompt)}." if trial.replicate % 2 else f"{solved(trial.prompt)}"


def rewordings(item: Item, *, bad: bool) -> tuple[Variant, Variant]:
    """Two rewordings of an item; the second asks another sum where it is bad."""
    other = item.question.replace("plus one", "plus two") if bad else item.question
    return (
        Variant(
            item_id=item.item_id, item_hash=item.content_hash, strategy="wordings",
            question=f"Please say: {item.question}", measurements=_MEASURED,
        ),
        Variant(
            item_id=item.item_id, item_hash=item.content_hash, strategy="wordings",
            question=f"Tell me now. {other}", measurements=_MEASURED,
        ),
    )  # fmt: skip


def asked_solver(
    store: ArtifactStore,
    items: Iterable[Item],
    variants: Iterable[Variant],
    solves: Solves,
    *,
    samples: int,
    solver: int = 0,
) -> str:
    """Have a solver asked both wordings, as the router has it; returns the digest of the RewriteSet."""
    answered = []
    for sample in range(samples):
        for planned in plan_trials(tuple(items), tuple(variants), PromptSection()):
            trial = planned.model_copy(update={"stage": CHECK_STAGE, "router_index": solver, "replicate": sample})
            text = solves(trial)
            said = (
                Completion(trial_id=trial.trial_id, error="HTTP 500", finish_reason="error")
                if text is None
                else Completion(
                    trial_id=trial.trial_id, text=text, finish_reason="stop", model_digest=f"weights {solver}"
                )
            )
            answered.append(
                AnsweredShard(
                    shard=put_model(store, shard_of([trial])),
                    completions=put_model(store, CompletionSet(completions=(said,))),
                )
            )
    return put_model(store, RewriteSet(answered=tuple(answered)))
