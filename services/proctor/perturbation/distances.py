"""Semantic distances of pairs of texts, each distinct text embedded once, and margins to a benchmark's other items."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from proctor.perturbation.admission.gate import Placed
from proctor.perturbation.encoder import Encoder, RoughEncoder, Vectors, distances
from proctor.perturbation.other_items import OtherItems
from proctor.perturbation.rechecks import Pair, Rechecks, Window


class PairDistances:
    """Cosine distances of pairs; the embeddings of one build are kept, so a text met again is not embedded again.

    Args:
        encoder: what embeds the texts. A rough encoder's distances decide only where they decide as its exact one's:
            see `rechecks`.
        window: the least and the greatest distance that are admitted. Without it every distance is exact.
        others: the benchmark's questions, where a margin to them is asked for.
        min_margin: the least margin that is admitted.
    """

    def __init__(
        self,
        encoder: Encoder,
        *,
        window: Window | None = None,
        others: OtherItems | None = None,
        min_margin: float | None = None,
    ) -> None:
        self._exact = _Embedded(encoder.encode, others)
        self._rechecks: Rechecks | None = None
        if isinstance(encoder, RoughEncoder) and window is not None:
            rough = _Embedded(encoder.encode_roughly, others)
            self._rechecks = Rechecks(rough.placed, self._exact.placed, encoder.errors, window, min_margin)

    def of(self, pairs: Sequence[Pair]) -> list[float]:
        """The distance of each pair, 0 to 2; as `placed`."""
        return [one.distance for one in self.placed(pairs)]

    def placed(self, pairs: Sequence[Pair]) -> list[Placed]:
        """Where the second text of each pair, a rewording, stands to the first, its item's question.

        Equal texts are at 0 without an encoder: reordered options alone should not load one.

        Raises:
            EncoderError: when texts cannot be embedded, or a rough encoder turns out to be too rough.
        """
        apart = list(dict.fromkeys(pair for pair in pairs if pair[0] != pair[1]))
        measure = self._exact.placed if self._rechecks is None else self._rechecks.placed
        measured = dict(zip(apart, measure(apart), strict=True))
        return [measured.get(pair, Placed(0.0)) for pair in pairs]


class _Embedded:
    """The vectors of texts by one way of embedding them, each made once; the benchmark's questions are at hand."""

    def __init__(self, encode: Callable[[Sequence[str]], Vectors], others: OtherItems | None) -> None:
        self._encode = encode
        self._others = others
        self._rows: dict[str, int] = {}
        self._blocks: list[Vectors] = []
        self._starts: list[int] = []

    def placed(self, pairs: Sequence[Pair]) -> list[Placed]:
        """Where each rewording stands; texts that are new are embedded together."""
        self._need([text for pair in pairs for text in pair])
        apart = [float(distances(self._vector(left)[None], self._vector(right)[None])[0]) for left, right in pairs]
        if self._others is None or not pairs:
            return [Placed(distance) for distance in apart]
        nearest = self._others.nearest(pairs, np.stack([self._vector(rewording) for _, rewording in pairs]))
        return [Placed(own, other - own) for own, other in zip(apart, nearest, strict=True)]

    def _need(self, texts: Sequence[str]) -> None:
        new = [
            text
            for text in dict.fromkeys(texts)
            if text not in self._rows and (self._others is None or self._others.row_of(text) is None)
        ]
        if not new:
            return
        start = len(self._rows)
        self._blocks.append(self._encode(new))
        self._starts.append(start)
        self._rows.update({text: start + offset for offset, text in enumerate(new)})

    def _vector(self, text: str) -> Vectors:
        if text not in self._rows and self._others is not None and (known := self._others.row_of(text)) is not None:
            found: Vectors = self._others.vectors[known]
            return found
        row = self._rows[text]
        for start, block in zip(reversed(self._starts), reversed(self._blocks), strict=True):
            if row >= start:
                vector: Vectors = block[row - start]
                return vector
        raise KeyError(text)
