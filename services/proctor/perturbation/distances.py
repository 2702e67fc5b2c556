"""Semantic distances of pairs of texts, each distinct text embedded once."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.perturbation.encoder import Encoder, Vectors, distances


class PairDistances:
    """Cosine distances of pairs; the embeddings of one build are kept, so a text met again is not embedded again."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._rows: dict[str, int] = {}
        self._blocks: list[Vectors] = []
        self._starts: list[int] = []

    def of(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """The distance of each pair, 0 to 2.

        Equal texts are at 0 without an encoder: reordered options alone should not load one.

        Raises:
            EncoderError: when texts cannot be embedded.
        """
        self._need([text for left, right in pairs if left != right for text in (left, right)])
        return [0.0 if left == right else self._distance(left, right) for left, right in pairs]

    def _need(self, texts: Sequence[str]) -> None:
        new = [text for text in dict.fromkeys(texts) if text not in self._rows]
        if not new:
            return
        start = len(self._rows)
        self._rows.update({text: start + offset for offset, text in enumerate(new)})
        self._blocks.append(self._encoder.encode(new))
        self._starts.append(start)

    def _distance(self, left: str, right: str) -> float:
        return float(distances(self._vector(left)[None], self._vector(right)[None])[0])

    def _vector(self, text: str) -> Vectors:
        row = self._rows[text]
        for start, block in zip(reversed(self._starts), reversed(self._blocks), strict=True):
            if row >= start:
                vector: Vectors = block[row - start]
                return vector
        raise KeyError(text)
