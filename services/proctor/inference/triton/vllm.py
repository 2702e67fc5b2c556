"""Sampling parameters in the JSON that vLLM, and Triton's vLLM backend, take."""

from __future__ import annotations

import json
from typing import Any

from proctor.domain.trial import Decoding


def sampling_parameters(decoding: Decoding) -> str:
    """A decoding policy as vLLM's sampling parameters, in JSON."""
    parameters: dict[str, Any] = {
        "temperature": decoding.temperature,
        "top_p": decoding.top_p,
        "max_tokens": decoding.max_tokens,
    }
    if decoding.seed is not None:
        parameters["seed"] = decoding.seed
    if decoding.stop:
        parameters["stop"] = list(decoding.stop)
    return json.dumps(parameters)
