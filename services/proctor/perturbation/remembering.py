"""An encoder that embeds each text once, for work that meets the same texts again and again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from proctor.perturbation.encoder import Encoder, Vectors, exact


class RememberingEncoder:
    """The vectors of another encoder, kept: 4 bytes a number, so 1.5 KiB a text at 384 dimensions.

    Of a rough encoder these are the exact vectors, so it goes by the exact one's name and fingerprint.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._vectors: dict[str, Vectors] = {}
        remembered = exact(encoder)
        self.name, self.digest, self.fingerprint = remembered.name, remembered.digest, remembered.fingerprint

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One unit vector a text, in their order."""
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            self._vectors.update(zip(new, self._encoder.encode(new), strict=True))
        return np.stack([self._vectors[text] for text in texts]) if texts else np.zeros((0, 0), dtype=np.float32)
