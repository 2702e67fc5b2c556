"""The encoder that the settings name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from proctor.domain.errors import EncoderError
from proctor.perturbation.encoder.bf16 import at_precision
from proctor.perturbation.encoder.protocol import ResolvedEncoder
from proctor.perturbation.encoder.sentence_encoder import SentenceEncoder
from proctor.perturbation.encoder.weights import hub_folder, installed_folder
from proctor.runtime.packaged_encoder import PACKAGED_DIGEST, PACKAGED_NAME
from proctor.runtime.settings import EncoderPrecision

_HUB_ID: Final = re.compile(r"([\w.-]+(?:/[\w.-]+)?)@([0-9a-f]{40})", re.ASCII)


def resolve_encoder(setting: str | None, precision: EncoderPrecision = EncoderPrecision.FP32) -> ResolvedEncoder:
    """The encoder of the settings, not yet loaded.

    Args:
        setting: a folder, a hub id with a pinned commit (`owner/name@<40 hex digits>`), a model on Triton
            (`grpc://host:8001/model-name`, which is asked at once which encoder it is), or None for the packaged
            all-MiniLM-L6-v2.
        precision: bf16 for quicker distances with the decisions of fp32, on a processor that has bf16. A server
            embeds in fp32 whatever is said here.

    Raises:
        EncoderError: when there is no such encoder here, with the mend.
    """
    if setting is not None and setting.startswith(("grpc:", "grpcs:")):
        # Here, because the client imports this package.
        from proctor.perturbation.triton_embedding.client import TritonEncoder

        return TritonEncoder(setting)
    return at_precision(_in_process(setting), precision)


def _in_process(setting: str | None) -> SentenceEncoder:
    if setting is None:
        return SentenceEncoder(installed_folder(), name=PACKAGED_NAME, pinned_digest=PACKAGED_DIGEST)
    if Path(setting).is_dir():
        return SentenceEncoder(Path(setting), name=Path(setting).resolve().name)
    pinned = _HUB_ID.fullmatch(setting)
    if pinned is None:
        raise EncoderError(
            f"PROCTOR_ENCODER is {setting[:200]!r}, which is neither a folder nor a hub id with a pinned commit: "
            "write owner/name@<40 hex digits>, because a branch can move, grpc://host:8001/model-name for one on "
            "Triton, or unset it for the packaged encoder"
        )
    return SentenceEncoder(hub_folder(pinned[1], pinned[2]), name=setting)
