"""Reading a finished audit's answers from the artifact store: graded rows, and the few answers that are shown."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping

from pydantic import ValidationError

from proctor.domain.errors import NewerVersionError, StoreError
from proctor.domain.manifest import AnsweredShard, AuditManifest, CompletionSet, GradeSet, RewriteSet
from proctor.domain.trial import Completion, Grade, Outcome, Shard, Trial
from proctor.grading import grade
from proctor.runtime.artifacts.calls import Call, MessageKey, calls_of, calls_of_shard, messages_in, trials_of
from proctor.runtime.artifacts.store import ArtifactStore, get_model
from proctor.scorer.grading.grade_sets import fits, grade_shard
from proctor.scorer.grading.rows import Rows, RowsBuilder
from proctor.scorer.grading.targets import Targets
from proctor.scorer.report.shown import GradedTrial, ShownAnswers, show

logger = logging.getLogger(__name__)


def grade_answered(store: ArtifactStore, answered: AnsweredShard, targets: Targets) -> GradeSet:
    """Grade a shard whose completions are in the store.

    Raises:
        StoreError: the shard or its completions cannot be read, or do not belong together.
    """
    shard = get_model(store, answered.shard, Shard)
    return grade_shard(answered, shard, get_model(store, answered.completions, CompletionSet), targets)


def load_rows(store: ArtifactStore, manifest: AuditManifest, targets: Targets) -> Rows:
    """The graded trials of an audit: as they were graded when they came in, and graded now where they were not.

    Raises:
        StoreError: a shard or its completions cannot be read, or do not belong together.
    """
    builder = RowsBuilder(targets.by_item)
    for answered in manifest.answered:
        builder.add(_grades_at_hand(store, answered, targets) or grade_answered(store, answered, targets))
    for dead in manifest.dead:
        builder.add_given_up(get_model(store, dead.shard, Shard))
    return builder.rows()


def load_shown(
    store: ArtifactStore, manifest: AuditManifest, targets: Targets, rows: Rows, item_ids: Collection[str]
) -> ShownAnswers:
    """The direct answers to these items, with their texts. Raises as `load_rows`."""
    n_answered, found = len(manifest.answered), list[GradedTrial]()
    for place in rows.shards_that_ask(item_ids):
        if place < n_answered:
            known = _known_outcomes(store, manifest.answered[place], targets)
            found += [
                _graded(trial, said, targets, known.get(trial.trial_id))
                for trial, said in calls_of_shard(store, manifest.answered[place])
                if said is not None and trial.item_id in item_ids
            ]
        else:
            dead = trials_of(store, manifest.dead[place - n_answered])
            found += [GradedTrial(trial, None, None) for trial in dead]
    return show(found, item_ids)


class StoredStage:
    """What was asked and said in a stage of a plug-in, one shard in memory at a time. Each time that it is gone through
    it is read anew. Raises as `load_rows`.
    """

    def __init__(self, store: ArtifactStore, digest: str) -> None:
        self._store, self._digest = store, digest

    def __iter__(self) -> Iterator[Call]:
        return calls_of(self._store, get_model(self._store, self._digest, RewriteSet))


class StoredMessages:
    """What the routers wrote, by arm, item and router, one shard in memory at a time; a call that failed left no
    message. Each time that they are gone through they are read anew. Raises as `load_rows`.
    """

    def __init__(self, store: ArtifactStore, manifest: AuditManifest) -> None:
        self._store, self._transmitted = store, manifest.transmitted

    def __iter__(self) -> Iterator[tuple[MessageKey, str]]:
        if self._transmitted is not None:
            yield from messages_in(self._store, get_model(self._store, self._transmitted, RewriteSet).answered)


def _grades_at_hand(store: ArtifactStore, answered: AnsweredShard, targets: Targets) -> GradeSet | None:
    if answered.grades is None:
        return None
    try:
        grades = get_model(store, answered.grades, GradeSet)
    except (StoreError, ValidationError, NewerVersionError) as error:
        # Grading it again gives the same rows.
        logger.warning("the grades of shard %s cannot be used: %s", answered.shard, error)
        return None
    return grades if fits(grades, answered, targets.extractor) else None


def _known_outcomes(store: ArtifactStore, answered: AnsweredShard, targets: Targets) -> Mapping[str, Outcome | None]:
    """What was graded and is not to be graded twice: programs, which might do otherwise the next time."""
    grades = None if targets.extractor.judge is None else _grades_at_hand(store, answered, targets)
    return {} if grades is None else dict(zip(grades.trial_ids, grades.outcomes, strict=True))


def _graded(trial: Trial, said: Completion, targets: Targets, known: Outcome | None) -> GradedTrial:
    if said.error is not None:
        return GradedTrial(trial, said, None)
    if known is not None:
        name, extracted = targets.extractor.name, targets.extractor.extract(said.text, trial.choices, trial.labels)
        shown = Grade(trial_id=trial.trial_id, outcome=known, extracted=extracted, extractor=name)
        return GradedTrial(trial, said, shown)
    return GradedTrial(trial, said, grade(trial, said, targets.by_item[trial.item_id], targets.extractor))
