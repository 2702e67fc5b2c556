"""What the model on Triton and its client agree on: tensors, stated parameters, limits."""

from __future__ import annotations

from typing import Final, NamedTuple

from proctor.perturbation.encoder.protocol import Encoder

#: Texts in (BYTES, one a row), unit vectors out (FP32, one a row).
TEXT: Final = "TEXT"
EMBEDDING: Final = "EMBEDDING"
#: Parameters of the model's configuration. The first has the name that Proctor's other models use.
DIGEST_PARAMETER: Final = "model_digest"
FINGERPRINT_PARAMETER: Final = "encoder_fingerprint"
NAME_PARAMETER: Final = "encoder_name"
#: The longest text: about a thousand windows, a minute of one core.
MAX_TEXT_BYTES: Final = 1 << 20


class Identity(NamedTuple):
    """Which encoder this is: what every encoder says of itself."""

    name: str
    digest: str
    fingerprint: str

    @classmethod
    def of(cls, encoder: Encoder) -> Identity:
        """What an encoder says of itself; it is not loaded for that."""
        return cls(encoder.name, encoder.digest, encoder.fingerprint)

    def parameters(self) -> dict[str, str]:
        """What the model's configuration states."""
        return {
            DIGEST_PARAMETER: self.digest,
            FINGERPRINT_PARAMETER: self.fingerprint,
            NAME_PARAMETER: self.name,
        }
