"""The sentence encoder that measures semantic distance: weights pinned by digest, loaded only when asked.

Resolving an encoder (name, digest) needs no torch, so a run whose variants are all in the library never loads it.
"""

from proctor.perturbation.encoder.bf16 import Bf16Encoder
from proctor.perturbation.encoder.protocol import Encoder, ResolvedEncoder, Vectors, distances
from proctor.perturbation.encoder.resolving import resolve_encoder
from proctor.perturbation.encoder.rough import RoughEncoder, exact
from proctor.perturbation.encoder.sentence_encoder import SentenceEncoder

__all__ = [
    "Bf16Encoder",
    "Encoder",
    "ResolvedEncoder",
    "RoughEncoder",
    "SentenceEncoder",
    "Vectors",
    "distances",
    "exact",
    "resolve_encoder",
]
