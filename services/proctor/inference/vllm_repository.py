"""Lay a model down for Triton's vLLM backend: `python -m proctor.inference.vllm_repository FOLDER --name NAME`.

The model is FOLDER/models/NAME: a config.pbtxt, and `1/model.json` with the engine's arguments, which name the folder
of the weights. The weights themselves (config.json, tokenizer, safetensors) are not copied.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any, Final

import click

from proctor.domain.canonical import FULL_DIGEST
from proctor.domain.errors import BadInputError, ProctorError
from proctor.inference.triton.facts import DIGEST_PARAMETER
from proctor.runtime.files import write_atomic

VERSION: Final = "1"
#: Where the chart mounts a model repository.
MOUNTED: Final = "/models"

_MODEL_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)
#: vllm:time_to_first_token_seconds and its like, on Triton's own port for metrics. Not the backend's health check: it
#: unloads a model, for which Triton would have to obey whoever asks it to load or unload one.
_PARAMETERS: Final = {"REPORT_CUSTOM_METRICS": "true"}
_ENGINE: Final[dict[str, Any]] = {"dtype": "bfloat16"}
_ON_GPUS: Final[dict[str, Any]] = {"max_num_seqs": 256, "gpu_memory_utilization": 0.9}
#: torch.compile costs a processor more than it saves.
_ON_PROCESSORS: Final[dict[str, Any]] = {"max_num_seqs": 16, "enforce_eager": True}


def model_config(name: str, *, digest: str = "") -> str:
    """The text of a `config.pbtxt`. The backend completes it with its tensors, whichever its version has.

    Args:
        name: the model's name, which is its folder's.
        digest: what the operator says that the weights are; nothing is said by default.
    """
    parameters = _PARAMETERS | ({DIGEST_PARAMETER: digest} if digest else {})
    stated = "\n".join(
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}' for key, value in parameters.items()
    )
    return f"""# Written by proctor.inference.vllm_repository. KIND_MODEL: the engine itself says which devices it uses.
name: "{name}"
backend: "vllm"
instance_group [ {{ kind: KIND_MODEL count: 1 }} ]
{stated}
"""


def engine_arguments(weights: str, *, gpu: bool) -> str:
    """The text of `model.json`: arguments of vLLM's engine."""
    return json.dumps({"model": weights} | _ENGINE | (_ON_GPUS if gpu else _ON_PROCESSORS), indent=2) + "\n"


def write_vllm_model(folder: Path, name: str, *, weights: str = "", digest: str = "", gpu: bool = True) -> Path:
    """Write `folder/models/<name>`; other models there are left alone.

    Args:
        folder: of the repository.
        name: under which Triton serves the model.
        weights: their folder where Triton runs; by default `weights` in the model's own, as the chart mounts it.
        digest: see `model_config`.
        gpu: for GPUs, or for processors alone.

    Returns:
        The model's folder.

    Raises:
        BadInputError: a name that Triton or config.pbtxt cannot hold, or what is no digest.
    """
    if not _MODEL_NAME.fullmatch(name):
        raise BadInputError(
            f"{name!r} is no name of a model on Triton: letters, digits, '.', '_' and '-' only, "
            "100 at most, the first a letter or digit"
        )
    if digest and not FULL_DIGEST.fullmatch(digest):
        raise BadInputError(f"{digest!r} is no digest; write it as sha256: and 64 hex digits")
    model = folder / "models" / name
    arguments = engine_arguments(weights or f"{MOUNTED}/{name}/weights", gpu=gpu)
    write_atomic(model / "config.pbtxt", model_config(name, digest=digest).encode(), private=False)
    write_atomic(model / VERSION / "model.json", arguments.encode(), private=False)
    return model


def main() -> int:
    """The command: lays the model down and names its folder."""
    parser = argparse.ArgumentParser(prog="python -m proctor.inference.vllm_repository", description=__doc__)
    parser.add_argument("folder", type=Path, help="of the repository; the model goes to FOLDER/models/NAME")
    parser.add_argument("--name", required=True, help="under which Triton serves it")
    parser.add_argument("--weights", default="", help=f"their folder where Triton runs [{MOUNTED}/NAME/weights]")
    parser.add_argument("--digest", default="", help="sha256:… of the weights, by the operator's word")
    parser.add_argument("--cpu", action="store_true", help="for processors alone")
    given = parser.parse_args()
    try:
        model = write_vllm_model(
            given.folder, given.name, weights=given.weights, digest=given.digest, gpu=not given.cpu
        )
    except ProctorError as error:
        click.echo(f"error: {error}", err=True)
        return int(error.exit_code)
    click.echo(str(model))
    return 0


if __name__ == "__main__":
    sys.exit(main())
