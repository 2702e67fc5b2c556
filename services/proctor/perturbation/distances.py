"""Semantic distances of pairs of texts, each distinct text embedded once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from proctor.perturbation.encoder import Encoder, RoughEncoder, Vectors, distances
from proctor.perturbation.rechecks import Pair, Rechecks, Window


class PairDistances:
    """Cosine distances of pairs; the embeddings of one build are kept, so a text met again is not embedded again.

    Args:
        encoder: what embeds the texts. A rough encoder's distances decide only where they decide as its exact one's:
            see `rechecks`.
        window: the least and the greatest distance that are admitted. Without it every distance is exact.
    """

    def __init__(self, encoder: Encoder, *, window: Window | None = None) -> None:
        self._exact = _Embedded(encoder.encode)
        self._rechecks: Rechecks | None = None
        if isinstance(encoder, RoughEncoder) and window is not None:
            rough = _Embedded(encoder.encode_roughly)
            self._rechecks = Rechecks(rough.distances, self._exact.distances, encoder.errors, window)

    def of(self, pairs: Sequence[Pair]) -> list[float]:
        """The distance of each pair, 0 to 2.

        Equal texts are at 0 without an encoder: reordered options alone should not load one.

        Raises:
            EncoderError: when texts cannot be embedded, or a rough encoder turns out to be too rough.
        """
        apart = list(dict.fromkeys(pair for pair in pairs if pair[0] != pair[1]))
        measure = self._exact.distances if self._rechecks is None else self._rechecks.distances
        measured = dict(zip(apart, measure(apart), strict=True))
        return [measured.get(pair, 0.0) for pair in pairs]


class _Embedded:
    """The vectors of texts by one way of embedding them, each made once."""

    def __init__(self, encode: Callable[[Sequence[str]], Vectors]) -> None:
        self._encode = encode
        self._rows: dict[str, int] = {}
        self._blocks: list[Vectors] = []
        self._starts: list[int] = []

    def distances(self, pairs: Sequence[Pair]) -> list[float]:
        """The distance of each pair; texts that are new are embedded together."""
        self._need([text for pair in pairs for text in pair])
        return [float(distances(self._vector(left)[None], self._vector(right)[None])[0]) for left, right in pairs]

    def _need(self, texts: Sequence[str]) -> None:
        new = [text for text in dict.fromkeys(texts) if text not in self._rows]
        if not new:
            return
        start = len(self._rows)
        self._blocks.append(self._encode(new))
        self._starts.append(start)
        self._rows.update({text: start + offset for offset, text in enumerate(new)})

    def _vector(self, text: str) -> Vectors:
        row = self._rows[text]
        for start, block in zip(reversed(self._starts), reversed(self._blocks), strict=True):
            if row >= start:
                vector: Vectors = block[row - start]
                return vector
        raise KeyError(text)
