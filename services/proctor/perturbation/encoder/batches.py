"""Texts put together for a forward pass: of like length, and so much in all that a pass is worth its overhead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def batches(tokens: Sequence[int], most_tokens: int) -> Iterator[list[int]]:
    """Places of texts by batch, the longest texts first, so that what is padded is little.

    Args:
        tokens: how many tokens each text has. Characters are a poor stand-in: sorted by them, a sixth of a batch is
            padding.
        most_tokens: the most that a batch holds, each text counted as long as its longest; a longer text is a batch
            of its own.
    """
    batch: list[int] = []
    for place in sorted(range(len(tokens)), key=lambda place: (-tokens[place], place)):
        if batch and (len(batch) + 1) * tokens[batch[0]] > most_tokens:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
