"""Answers of logs put into the artifact store, from which an audit takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from proctor.domain.log_origin import ChunkOfItems, LoggedAnswer, LoggedAnswers, LoggedChunk, LogOrigin
from proctor.domain.manifest import CHUNK_ITEMS
from proctor.domain.trial import Trial
from proctor.router.submit.logged import Matched
from proctor.runtime.artifacts.chunks import CHUNK_BYTES
from proctor.runtime.artifacts.store import ArtifactStore, put_model
from proctor.text.prompt import utf8_bytes

#: Of an answer beside its text, about.
_ROW_BYTES: Final = 300


def keep_answers(store: ArtifactStore, trials: Sequence[Trial], matched: Matched, files: Sequence[str]) -> LogOrigin:
    """Store the answers of logs, and return where they are and where they came from.

    Args:
        store: of the audit.
        trials: every trial, those of an item side by side.
        matched: their answers.
        files: digests of the logs.

    Raises:
        StoreError: when the store cannot be written to.
    """
    parts = tuple(
        ChunkOfItems(item_ids=tuple(item_ids), chunk=put_model(store, LoggedChunk(answers=tuple(answers))))
        for item_ids, answers in _chunks(trials, matched)
    )
    return LogOrigin(
        format=matched.format,
        files=tuple(sorted(set(files))),
        model=matched.model,
        settings=matched.settings,
        finish_reasons=matched.finish_reasons,
        token_counts=matched.token_counts,
        answers=put_model(store, LoggedAnswers(answered=parts)),
        n_answers=len(trials),
    )


def _chunks(trials: Sequence[Trial], matched: Matched) -> Iterator[tuple[list[str], list[LoggedAnswer]]]:
    item_ids, answers, size = list[str](), list[LoggedAnswer](), 0
    for item_id, of_item in groupby(trials, key=lambda trial: trial.item_id):
        mine = [matched.answers[trial.trial_id] for trial in of_item]
        mine_bytes = sum(_ROW_BYTES + utf8_bytes(one.completion.text) for one in mine)
        if item_ids and (size + mine_bytes > CHUNK_BYTES or len(item_ids) == CHUNK_ITEMS):
            yield item_ids, answers
            item_ids, answers, size = [], [], 0
        item_ids.append(item_id)
        answers += mine
        size += mine_bytes
    if item_ids:
        yield item_ids, answers
