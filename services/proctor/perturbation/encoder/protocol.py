"""What an encoder is, and the distance of what it gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


class Encoder(Protocol):
    """Texts to unit vectors."""

    @property
    def name(self) -> str:
        """The encoder's name."""
        ...

    @property
    def digest(self) -> str:
        """Digest of the weights."""
        ...

    @property
    def fingerprint(self) -> str:
        """Digest of everything that decides a kept distance: weights, tokenizer, pooling, and a precision below fp32.

        Part of the library's key.
        """
        ...

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One unit vector a text, in their order: an array of shape (texts, dimension)."""
        ...


class ResolvedEncoder(Encoder, Protocol):
    """An encoder that was found, and is loaded when it is first asked."""

    @property
    def loaded(self) -> bool:
        """Whether it has been asked, and so takes memory here or was reached where it is served."""
        ...


def distances(left: Vectors, right: Vectors) -> NDArray[np.float64]:
    """Cosine distances of unit vectors, row by row: 0 for the same direction, 2 for the opposite."""
    cosine: NDArray[np.float64] = np.einsum("nd,nd->n", left.astype(np.float64), right.astype(np.float64))
    return 1.0 - cosine
