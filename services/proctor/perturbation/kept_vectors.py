"""Vectors of a benchmark's questions in a folder of the home, so that no further build embeds them again."""

from __future__ import annotations

import io
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from proctor.domain.canonical import json_digest
from proctor.perturbation.encoder import Encoder, Vectors, exact
from proctor.runtime.files import write_atomic

log = logging.getLogger(__name__)

#: How far the length of a kept vector may be from 1: rounding of fp32.
_LENGTH_ERROR: Final = 1e-3


class KeptVectors:
    """Exact vectors of texts, under the digest of the encoder's fingerprint and the texts.

    A file that is missing or damaged costs time and nothing else; the folder may be deleted whenever no build runs.

    Args:
        folder: where the files are; made when the first is written.
        encoder: what embeds. Of a rough encoder its exact one does.
    """

    def __init__(self, folder: Path, encoder: Encoder) -> None:
        self._folder = folder
        self._encoder = exact(encoder)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One unit vector a text, from the folder or embedded now and kept there.

        Raises:
            EncoderError: when they must be embedded and cannot be.
        """
        digest = json_digest([self._encoder.fingerprint, list(texts)])
        path = self._folder / f"{digest.removeprefix('sha256:')}.npy"
        kept = _read(path, len(texts))
        if kept is not None:
            return kept
        vectors = self._encoder.encode(texts)
        buffer = io.BytesIO()
        np.save(buffer, vectors, allow_pickle=False)
        try:
            write_atomic(path, buffer.getvalue())
        except OSError as error:
            log.warning("the vectors of a benchmark's questions cannot be kept in %s: %s", path, error)
        return vectors


def _read(path: Path, count: int) -> Vectors | None:
    try:
        found = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, EOFError) as error:
        log.warning("%s is damaged and made again: %s", path, error)
        return None
    whole = isinstance(found, np.ndarray) and found.ndim == 2 and len(found) == count and found.dtype == np.float32
    if not whole or not np.allclose(np.linalg.norm(found, axis=1), 1.0, atol=_LENGTH_ERROR):
        log.warning("%s does not hold %d unit vectors and is made again", path, count)
        return None
    vectors: Vectors = found
    return vectors
