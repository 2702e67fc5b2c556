"""A sentence-transformers model: texts to unit vectors in fp32."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from proctor.domain.canonical import json_digest
from proctor.domain.errors import EncoderError
from proctor.perturbation.encoder.batches import batches
from proctor.perturbation.encoder.protocol import Vectors
from proctor.perturbation.encoder.weights import configuration, weights_digest
from proctor.runtime.progress import note_step

#: A forward pass on a CPU: 30 GSM8K questions, the quickest of 700 to 2,600 tokens.
BATCH_TOKENS: Final = 1_800
#: On a GPU, which only many texts keep busy; not measured.
_GPU_BATCH_TOKENS: Final = 16_000
#: Past it a batch of one-word texts gains nothing.
_MOST_TEXTS: Final = 256
#: Special tokens at the ends, and a piece that parts differently once its neighbours are gone.
_WINDOW_MARGIN_TOKENS: Final = 4


class SentenceEncoder:
    """A sentence-transformers model in a folder. Safetensors only, no remote code, fp32, on the CPU unless told."""

    def __init__(self, folder: Path, *, name: str, pinned_digest: str | None = None, device: str = "cpu") -> None:
        self.folder = folder
        self._device = device
        self.name = name
        self.digest = weights_digest(folder)
        if pinned_digest is not None and self.digest != pinned_digest:
            raise EncoderError(
                f"the weights of the encoder {name} in {folder} have the digest {self.digest}, not {pinned_digest}: "
                "they are not the official file; reinstall the package, or name another encoder in PROCTOR_ENCODER"
            )
        self.fingerprint = json_digest([self.digest, configuration(folder)])
        self._model: Any = None

    @property
    def loaded(self) -> bool:
        """Whether the model is in memory."""
        return self._model is not None

    def encode(self, texts: Sequence[str], *, batch_tokens: int | None = None) -> Vectors:
        """One unit vector a text. Texts longer than the model's window are the mean over windows of them.

        Args:
            texts: what is to be embedded.
            batch_tokens: how much a forward pass takes; by default what is quickest in fp32 on the device.

        Raises:
            EncoderError: when the model cannot be loaded or returns something else than finite vectors.
        """
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        self.load()
        pieces: list[str] = []
        owners: list[int] = []
        most = batch_tokens or (BATCH_TOKENS if self._device == "cpu" else _GPU_BATCH_TOKENS)
        try:
            tokens = self._tokens(texts)
            for index, text in enumerate(texts):
                windows = [text] if tokens[index] <= self._window_tokens else self._windows(text)
                pieces.extend(windows)
                owners.extend([index] * len(windows))
            if len(pieces) != len(texts):
                tokens = self._tokens(pieces)
            vectors = self._embed(pieces, batches(tokens, most))
        except Exception as error:
            raise EncoderError(f"the encoder {self.name} failed on {len(texts)} texts: {error}") from error
        if vectors.ndim != 2 or len(vectors) != len(pieces) or not np.isfinite(vectors).all():
            raise EncoderError(
                f"the encoder {self.name} returned {vectors.shape} for {len(pieces)} texts, or numbers that are not "
                "finite: its files are damaged or it is no sentence encoder"
            )
        if len(pieces) == len(texts):
            return vectors
        return _means(vectors, np.asarray(owners), len(texts))

    def load(self) -> None:
        """Bring the model into memory, if it is not there.

        Raises:
            EncoderError: when it cannot be loaded, with the mend.
        """
        if self._model is None:
            self._model = self._loaded()

    def _embed(self, pieces: Sequence[str], passes: Iterable[list[int]]) -> Vectors:
        parts, places = [], []
        for batch in passes:
            note_step()
            places += batch
            parts.append(
                self._model.encode(
                    [pieces[place] for place in batch],
                    batch_size=min(len(batch), _MOST_TEXTS),
                    show_progress_bar=False,
                    convert_to_numpy=True,
                    normalize_embeddings=True,
                )
            )
        together: Vectors = np.concatenate(parts).astype(np.float32, copy=False)
        return together[np.argsort(places)]

    @property
    def _window_tokens(self) -> int:
        return int(self._model.max_seq_length or 512) - _WINDOW_MARGIN_TOKENS

    def _tokens(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text has, without those at its ends: all at once, which takes half as long."""
        encoded = self._model.tokenizer(
            list(texts),
            add_special_tokens=False,
            truncation=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )
        return [len(tokens) for tokens in encoded["input_ids"]]

    def _windows(self, text: str) -> list[str]:
        """A text that is too long, in parts that the model takes whole."""
        limit, offsets = self._window_tokens, self._offsets(text)
        cuts, first = [0], 0
        while len(offsets) - first > limit:
            # Cut where a word begins: a piece glued to the one before it would be read as another word.
            spaced = (n for n in range(first + limit, first, -1) if offsets[n][0] > offsets[n - 1][1])
            first = next(spaced, first + limit)
            cuts.append(offsets[first][0])
        return [text[start:end] for start, end in pairwise([*cuts, len(text)])]

    def _offsets(self, text: str) -> list[tuple[int, int]]:
        encoded = self._model.tokenizer(
            text, add_special_tokens=False, truncation=False, return_offsets_mapping=True, verbose=False
        )
        offsets: list[tuple[int, int]] = encoded["offset_mapping"]
        return offsets

    def _loaded(self) -> Any:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        _hide_folder_named_triton()
        try:
            from sentence_transformers import SentenceTransformer
            from transformers.utils import logging as transformers_logging

            transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call,unused-ignore]
        except ModuleNotFoundError as error:
            raise EncoderError(
                f"the encoder {self.name} needs sentence-transformers and torch ({error}): "
                "pip install 'proctor[perturbation]'"
            ) from None
        except Exception as error:
            # transformers imports its parts on demand and wraps whatever they raise.
            raise EncoderError(f"sentence-transformers cannot be imported: {type(error).__name__}: {error}") from error
        try:
            return SentenceTransformer(
                str(self.folder),
                device=self._device,
                trust_remote_code=False,
                local_files_only=True,
                model_kwargs={"use_safetensors": True},
            )
        except Exception as error:
            raise EncoderError(
                f"the encoder {self.name} in {self.folder} cannot be loaded: {error}; "
                "it must be a sentence-transformers folder with safetensors weights"
            ) from error


def _hide_folder_named_triton() -> None:
    """Keep torch from taking a checkout's folder services/triton for the package triton.

    With `services` on the import path (an editable installation) that folder is a namespace package, and torch
    fails on what is not in it instead of doing without.
    """
    spec = importlib.util.find_spec("triton") if "triton" not in sys.modules else None
    if spec is not None and spec.origin is None:
        sys.modules["triton"] = None  # type: ignore[assignment]


def _means(vectors: Vectors, owners: NDArray[np.int64], count: int) -> Vectors:
    sums = np.zeros((count, vectors.shape[1]), dtype=np.float64)
    np.add.at(sums, owners, vectors)
    norms = np.linalg.norm(sums, axis=1, keepdims=True)
    return (sums / np.where(norms > 0, norms, 1.0)).astype(np.float32)
