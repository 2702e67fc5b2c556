"""How a reference model draws its next token: by the Gumbel-max trick.

The likeliest token of logits + T · g, with g independent standard Gumbel noise, is distributed as the softmax of
logits / T (Gumbel 1954; Maddison, Tarlow and Minka, A* Sampling, NIPS 2014, section 2). So drawing is taking a maximum
of other numbers, and close calls are decided again as they are without noise. The noise is a function of seed, prompt
and position alone, so that an answer does not depend on its neighbours in a batch, on order or on the process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Dice(NamedTuple):
    """What one answer is drawn with."""

    temperature: float = 0.0
    """0 draws nothing: the likeliest token is taken."""
    seed: int = 0

    def noise(self, prompt: Sequence[int], position: int, size: int) -> NDArray[np.float64] | None:
        """What is added to the logits of a token; None where nothing is drawn.

        Args:
            prompt: token ids of the prompt as the model reads it.
            position: of the token within the answer.
            size: tokens in the vocabulary.
        """
        if not self.temperature:
            return None
        said = f"{self.seed} {position} {' '.join(map(str, prompt))}"
        digest = hashlib.sha256(said.encode("ascii")).digest()
        uniform = np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little"))).random(size)
        # 0 is drawn once in 2⁵³, and has no logarithm.
        noise: NDArray[np.float64] = -self.temperature * np.log(-np.log(np.maximum(uniform, 2.0**-53)))
        return noise
