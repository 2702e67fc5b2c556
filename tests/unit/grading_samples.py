"""Trials of two items whose targets are 4 and 5, their answers, and the grades of a shard of them."""

from __future__ import annotations

from proctor.domain.manifest import AnsweredShard, CompletionSet, GradeSet
from proctor.domain.trial import Arm, Completion, Trial
from proctor.grading import EXTRACTORS
from proctor.router.plan import shard_of
from proctor.scorer.grading.grade_sets import grade_shard
from proctor.scorer.grading.targets import Targets

NUMERIC = Targets(EXTRACTORS["numeric"], {"a": "4", "b": "5"})
ANSWERED = AnsweredShard(shard="sha256:" + "1" * 64, completions="sha256:" + "2" * 64)


def trial(item: str = "a", **fields: object) -> Trial:
    return Trial.model_validate({"arm": Arm.PERTURBED, "item_id": item, "prompt": "?", **fields})


def said(asked: Trial, text: str = "4", **fields: object) -> Completion:
    return Completion.model_validate({"trial_id": asked.trial_id, "text": text, "finish_reason": "stop", **fields})


def graded(*rows: tuple[Trial, Completion], shard_id: str | None = None) -> GradeSet:
    shard = shard_of([asked for asked, _ in rows])
    shard = shard if shard_id is None else shard.model_copy(update={"shard_id": shard_id})
    return grade_shard(ANSWERED, shard, CompletionSet(completions=tuple(one for _, one in rows)), NUMERIC)
