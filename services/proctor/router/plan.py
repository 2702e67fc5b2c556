"""From items and variants to trials, and from trials to shards. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from proctor.domain.canonical import short_id
from proctor.domain.item import Item, Variant
from proctor.domain.suite import PromptSection
from proctor.domain.trial import Arm, Shard, Trial
from proctor.router.pools.packs import SHARD_PROMPT_BYTES, SHARD_TRIALS
from proctor.router.submit.prompt_sizes import bounded_prompt
from proctor.text.prompt import utf8_bytes


def plan_trials(
    items: Sequence[Item],
    variants: Sequence[Variant],
    prompt: PromptSection,
    arms: tuple[Arm, Arm] = (Arm.CANONICAL, Arm.PERTURBED),
) -> Iterator[Trial]:
    """One canonical trial an item that has a variant, and one trial a variant; each is made when it is asked for.

    An item without a variant is not asked: nothing could be compared with its answer. Items of a cluster are asked one
    after the other, where the first of them stands, and each item beside its rewordings: prompts that begin alike (a
    passage, solved examples) are then near each other, and a server that keeps prefixes has them at hand.

    Args:
        items: in the order in which they are asked, but for those of a cluster.
        variants: of the items.
        prompt: how an item becomes a prompt.
        arms: those of the canonical wording and of the others.

    Raises:
        BadInputError: when a prompt would be too large (`proctor.router.submit.prompt_sizes`).
    """
    by_item: dict[str, list[Variant]] = {}
    for variant in variants:
        by_item.setdefault(variant.item_id, []).append(variant)
    for item in _side_by_side(items):
        rewordings = by_item.get(item.item_id)
        if not rewordings:
            continue
        yield Trial(
            arm=arms[0],
            item_id=item.item_id,
            prompt=bounded_prompt(prompt, item.item_id, item.question, item.choices),
            choices=item.choices,
        )
        for variant in rewordings:
            yield Trial(
                arm=arms[1],
                item_id=item.item_id,
                variant_id=variant.variant_id,
                prompt=bounded_prompt(prompt, item.item_id, variant.question, variant.choices, variant.labels),
                choices=variant.choices,
                labels=variant.labels,
            )


def _side_by_side(items: Sequence[Item]) -> Sequence[Item]:
    """Items in their order, but those of a cluster where the first of them stands."""
    first: dict[str, int] = {}
    for place, item in enumerate(items):
        if item.cluster is not None:
            first.setdefault(item.cluster, place)
    if not first:
        return items
    places = [place if item.cluster is None else first[item.cluster] for place, item in enumerate(items)]
    return [items[place] for place in sorted(range(len(items)), key=places.__getitem__)]


def plan_fresh(items: Iterable[Item], prompt: PromptSection) -> Iterator[Trial]:
    """One trial a fresh item. Raises as `plan_trials`."""
    for item in items:
        text = bounded_prompt(prompt, item.item_id, item.question, item.choices)
        yield Trial(arm=Arm.FRESH, item_id=item.item_id, prompt=text, choices=item.choices)


def replicated(trials: Iterable[Trial], replicates: int) -> Iterator[Trial]:
    """Each trial so many times, one after the other; but those of fresh items, which are compared by single answers."""
    for trial in trials:
        yield trial
        if trial.arm is not Arm.FRESH:
            for number in range(1, replicates):
                yield trial.model_copy(update={"replicate": number})


def plan_shards(
    trials: Iterable[Trial], *, shard_trials: int = SHARD_TRIALS, replicates_apart: bool = False
) -> Iterator[Shard]:
    """Cut trials into shards of one arm and stage, in an order that keeps an item's arms close in time.

    A model server that changes in the course of an audit then changes for both arms of the same items, instead
    of for the second half, which would be the reworded arm. No more is in memory than one open shard an arm, each of
    at most SHARD_PROMPT_BYTES, or of one trial; with `replicates_apart` one an arm and replicate, because all trials of
    a shard are asked by one seed.
    """
    open_shards: dict[tuple[str, Arm, int], _OpenShard] = {}
    for trial in trials:
        key = (trial.stage, trial.arm, trial.replicate if replicates_apart else 0)
        size = trial_bytes(trial)
        batch = open_shards.get(key)
        if batch is not None and batch.size + size > SHARD_PROMPT_BYTES:
            del open_shards[key]
            yield shard_of(batch.trials)
            batch = None
        if batch is None:
            batch = open_shards[key] = _OpenShard([])
        batch.trials.append(trial)
        batch.size += size
        if len(batch.trials) == shard_trials:
            del open_shards[key]
            yield shard_of(batch.trials)
    for batch in open_shards.values():
        yield shard_of(batch.trials)


@dataclass(slots=True)
class _OpenShard:
    trials: list[Trial]
    size: int = 0
    """Bytes of their texts."""


def trial_bytes(trial: Trial) -> int:
    """Bytes of the texts that a trial carries."""
    size = utf8_bytes(trial.prompt)
    return size + sum(map(utf8_bytes, trial.choices)) if trial.choices else size


class StoredShard(NamedTuple):
    """A shard that is in the artifact store, without its trials: they are in memory no longer than it takes."""

    shard_id: str
    stage: str
    arm: Arm
    n_trials: int
    digest: str


def shard_of(trials: Sequence[Trial]) -> Shard:
    """The shard that carries these trials, of one arm and stage."""
    shard_id = short_id([trial.trial_id for trial in trials])
    return Shard(shard_id=shard_id, stage=trials[0].stage, arm=trials[0].arm, trials=tuple(trials))
