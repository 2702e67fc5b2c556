"""Grading a shard: what its answers are worth, a row a trial. The same whoever does it when.

Pure, but for answers that are code: those are run, several at a time.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from proctor.domain.canonical import short_id
from proctor.domain.errors import StoreError
from proctor.domain.manifest import AnsweredShard, CompletionSet, GradeSet
from proctor.domain.trial import Completion, Outcome, Shard, Trial
from proctor.grading import Extractor, read_answer
from proctor.grading.settled import is_settled
from proctor.scorer.grading.targets import Targets


def grade_shard(answered: AnsweredShard, shard: Shard, said: CompletionSet, targets: Targets) -> GradeSet:
    """Grade what came back of a shard.

    Args:
        answered: the digests of `shard` and `said`, which the grades name.
        shard: the trials.
        said: their completions, in the shard's order; an error row gets no grade.
        targets: what is right, and how the answers are read.

    Raises:
        StoreError: the completions are not those of the shard's trials in their order, or an item is not the audit's.
        CodeExecutionError: the answers are code, and cannot be run now.
    """
    trial_ids = tuple([completion.trial_id for completion in said.completions])
    if not _are_of(trial_ids, shard):
        raise StoreError(f"the completions {answered.completions} are not those of the shard {answered.shard}")
    rows = list(zip(shard.trials, said.completions, strict=True))
    try:
        outcomes = _outcomes(rows, targets)
    except KeyError as error:
        raise StoreError(f"the shard {answered.shard} asks item {error}, which is none of the audit's") from None
    truncated = tuple([one.error is None and one.finish_reason == "length" for one in said.completions])
    return GradeSet(
        shard=answered.shard,
        completions=answered.completions,
        extractor=targets.extractor.name,
        arm=shard.arm,
        trial_ids=trial_ids,
        item_ids=tuple([trial.item_id for trial in shard.trials]),
        variant_ids=tuple([trial.variant_id for trial in shard.trials]),
        replicates=tuple([trial.replicate for trial in shard.trials]),
        outcomes=outcomes,
        truncated=truncated,
        cut_short=_cut_short(rows, outcomes, truncated, targets.extractor),
    )


def fits(grades: GradeSet, answered: AnsweredShard, extractor: Extractor) -> bool:
    """Whether these are the grades that grading the shard now would give."""
    named = (grades.shard, grades.completions, grades.extractor)
    # An earlier Proctor did not look whether the answer stood before the cut.
    complete = bool(grades.cut_short) or not any(grades.truncated)
    return complete and named == (answered.shard, answered.completions, extractor.name)


def _are_of(trial_ids: tuple[str, ...], shard: Shard) -> bool:
    if len(trial_ids) != len(shard.trials):
        return False
    # A shard's id is the digest of its trials' ids: one digest tells what would else take one a trial.
    return short_id(list(trial_ids)) == shard.shard_id or trial_ids == tuple(trial.trial_id for trial in shard.trials)


def _outcomes(rows: Sequence[tuple[Trial, Completion]], targets: Targets) -> tuple[Outcome | None, ...]:
    if targets.extractor.judge is None:
        return tuple([_outcome(trial, one, targets) for trial, one in rows])
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as running:
        return tuple(running.map(lambda row: _outcome(row[0], row[1], targets), rows))


def _cut_short(
    rows: Sequence[tuple[Trial, Completion]],
    outcomes: Sequence[Outcome | None],
    truncated: Sequence[bool],
    extractor: Extractor,
) -> tuple[bool, ...]:
    """Which answers were cut before they were given. One that is right was given, however it went on."""
    if not any(truncated):
        return ()
    return tuple(
        [
            cut and outcome is not Outcome.CORRECT and not is_settled(extractor, one.text, trial.choices, trial.labels)
            for (trial, one), outcome, cut in zip(rows, outcomes, truncated, strict=True)
        ]
    )


def _outcome(trial: Trial, completion: Completion, targets: Targets) -> Outcome | None:
    target = targets.by_item[trial.item_id]
    if completion.error is not None:
        return None
    return read_answer(trial, completion.text, target, targets.extractor).outcome
