"""From items and variants to trials, and from trials to shards. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from proctor.domain.canonical import short_id
from proctor.domain.item import Item, Variant
from proctor.domain.suite import PromptSection
from proctor.domain.trial import Arm, Shard, Trial
from proctor.evidence.protocol.channel import MAX_FAILED_SHARE
from proctor.router.packs import SHARD_TRIALS
from proctor.text.prompt import render_prompt


def plan_trials(items: Sequence[Item], variants: Sequence[Variant], prompt: PromptSection) -> list[Trial]:
    """One canonical trial an item that has a variant, and one trial a variant.

    An item without a variant is not asked: nothing could be compared with its answer.
    """
    by_item: dict[str, list[Variant]] = {}
    for variant in variants:
        by_item.setdefault(variant.item_id, []).append(variant)
    trials = []
    for item in items:
        rewordings = by_item.get(item.item_id)
        if not rewordings:
            continue
        trials.append(
            Trial(
                arm=Arm.CANONICAL,
                item_id=item.item_id,
                prompt=render_prompt(prompt, item.question, item.choices),
                choices=item.choices,
            )
        )
        trials.extend(
            Trial(
                arm=Arm.PERTURBED,
                item_id=item.item_id,
                variant_id=variant.variant_id,
                prompt=render_prompt(prompt, variant.question, variant.choices, variant.labels),
                choices=variant.choices,
                labels=variant.labels,
            )
            for variant in rewordings
        )
    return trials


def plan_shards(trials: Sequence[Trial], *, shard_trials: int = SHARD_TRIALS) -> Iterator[Shard]:
    """Cut trials into shards of one arm and stage, in an order that keeps an item's arms close in time.

    A model server that changes in the course of an audit then changes for both arms of the same items, instead
    of for the second half, which would be the reworded arm.
    """
    open_shards: dict[tuple[str, Arm], list[Trial]] = {}
    for trial in trials:
        batch = open_shards.setdefault((trial.stage, trial.arm), [])
        batch.append(trial)
        if len(batch) == shard_trials:
            yield shard_of(open_shards.pop((trial.stage, trial.arm)))
    for batch in open_shards.values():
        yield shard_of(batch)


def too_many_dead(shards: Iterable[Shard], dead: Collection[str]) -> bool:
    """Whether so much of an arm was given up that no decision but review could come of what was answered.

    Such an audit is better left open: started again, it asks for what is missing, and a decision ends it. The same
    share bounds what a round of rewordings may lose: an endpoint that is down is mended, not audited around.
    """
    asked, lost = Counter[Arm](), Counter[Arm]()
    for shard in shards:
        asked[shard.arm] += len(shard.trials)
        lost[shard.arm] += len(shard.trials) if shard.shard_id in dead else 0
    return any(lost[arm] > MAX_FAILED_SHARE * asked[arm] for arm in asked)


def shard_of(trials: Sequence[Trial]) -> Shard:
    """The shard that carries these trials, of one arm and stage."""
    shard_id = short_id([trial.trial_id for trial in trials])
    return Shard(shard_id=shard_id, stage=trials[0].stage, arm=trials[0].arm, trials=tuple(trials))
