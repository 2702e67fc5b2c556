"""How large shards are, and how many travel together: about a second of work, and three, by the measured pace. Pure.

A worker that is handed less waits for messages; one that is handed more keeps others waiting for what it has in hand,
and loses more when it dies.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from proctor.domain.answer_bounds import max_answer_bytes

#: What a shard takes, and what a pack of shards takes, by the pace that was measured. A slot's pace: where several ask
#: the same servers, each of them sees these the slower. Of a pack, what is done is told before the rest is.
_SHARD_AIM_S = 1.0
_PACK_AIM_S = 3.0
MIN_SHARD_TRIALS = 32
MAX_SHARD_TRIALS = 256
#: While no pace is known.
SHARD_TRIALS = 64
#: At most, where models write: they write a question anew where an answer may be a letter.
REWRITE_SHARD_TRIALS = 32
MAX_TOGETHER = 16
#: A shard is one object with its prompts, and another with its answers, and whoever asks, grades or reads it has them
#: whole: a router's twenty open shards, a worker's four, and what JSON makes of them, fit into a GiB. 256 prompts of
#: 16 KiB; 256 answers of 512 tokens, however long these are.
SHARD_PROMPT_BYTES: Final = 4 << 20
SHARD_ANSWER_BYTES: Final = 16 << 20
#: A shard that may hold a trial which kills its worker is cut into as many, at most.
_CHILDREN = 8


def shard_trials(pace_s: float | None, max_tokens: int | None = None) -> int:
    """Trials of a shard: a power of two from 32 to 256, or fewer where their answers may be very long.

    Args:
        pace_s: seconds that a trial takes; None while none was measured.
        max_tokens: the ceiling of an answer's tokens; None where no answer is asked for.
    """
    by_pace = _by_pace(pace_s)
    if max_tokens is None:
        return by_pace
    return min(by_pace, max(1, SHARD_ANSWER_BYTES // max_answer_bytes(max_tokens)))


def _by_pace(pace_s: float | None) -> int:
    if pace_s is None:
        return SHARD_TRIALS
    trials = MAX_SHARD_TRIALS
    while trials > MIN_SHARD_TRIALS and trials * pace_s > _SHARD_AIM_S:
        trials //= 2
    return trials


def shards_together(pace_s: float | None, trials: int) -> int:
    """Shards of a pack, 1 to 16.

    Args:
        pace_s: seconds that a trial takes; None while none was measured, and then a shard goes alone.
        trials: trials of a shard.
    """
    if pace_s is None:
        return 1
    whole_pack_s = pace_s * trials * MAX_TOGETHER
    return MAX_TOGETHER if whole_pack_s <= _PACK_AIM_S else max(1, int(_PACK_AIM_S / (pace_s * trials)))


def is_quick(pace_s: float | None, trials: int, together: int) -> bool:
    """Whether a pack is known to take no longer than it should: not so of servers that take long for a single shard."""
    return pace_s is not None and pace_s * trials * together <= _PACK_AIM_S


def pieces(n_trials: int) -> list[tuple[int, int]]:
    """Where to cut a shard into up to 8 of nearly equal size: (begin, end) of each among its trials, in order."""
    n_pieces = min(_CHILDREN, n_trials)
    ends = [n_trials * k // n_pieces for k in range(n_pieces + 1)]
    return list(pairwise(ends))
