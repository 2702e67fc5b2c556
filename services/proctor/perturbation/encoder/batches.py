"""Texts put together for a forward pass: of like length, and so much in all that a pass is worth its overhead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def batches(texts: Sequence[str], most_bytes: int) -> Iterator[list[int]]:
    """Places of texts by batch, the longest texts first, so that what is padded is little.

    Args:
        texts: what is to be embedded.
        most_bytes: the most that a batch holds, each text counted as long as its longest; a longer text is a batch
            of its own. Bytes stand for tokens, which only the tokenizer knows, at next to no cost.
    """
    sizes = [len(text.encode("utf-8", "replace")) for text in texts]
    batch: list[int] = []
    for place in sorted(range(len(texts)), key=lambda place: (-sizes[place], place)):
        if batch and (len(batch) + 1) * sizes[batch[0]] > most_bytes:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
