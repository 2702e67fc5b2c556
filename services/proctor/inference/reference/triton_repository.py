"""Write a bundle of reference models as a Triton model repository.

`python -m proctor.inference.reference.triton_repository BUNDLE`

Each model gets a `config.pbtxt`, which pins its weights by digest, and a `model.py` that only imports Proctor's.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import click

from proctor.domain.canonical import bytes_digest
from proctor.domain.errors import BadInputError, ProctorError
from proctor.runtime.files import write_atomic

#: The folder name ends in this where the model is batched by Triton instead of decoupled.
BATCHED_SUFFIX = "-batched"
VERSION = "1"

_WEIGHTS_NAME = "model.safetensors"
#: How long Triton's dynamic batcher waits for company: a tenth of a forward pass, so a lone prompt hardly notices.
_MAX_QUEUE_DELAY_US = 500
_MAX_BATCH = 64

_MODEL_PY = '''"""Triton's entry to a reference model."""

from proctor.inference.reference.triton_model import TritonPythonModel

__all__ = ["TritonPythonModel"]
'''

_INPUTS = (
    ("text_input", "TYPE_STRING", False),
    ("stream", "TYPE_BOOL", True),
    ("sampling_parameters", "TYPE_STRING", True),
    ("exclude_input_in_output", "TYPE_BOOL", True),
    ("return_finish_reason", "TYPE_BOOL", True),
    ("return_num_input_tokens", "TYPE_BOOL", True),
    ("return_num_output_tokens", "TYPE_BOOL", True),
    ("return_weights_digest", "TYPE_BOOL", True),
)
_OUTPUTS = (
    ("text_output", "TYPE_STRING", "-1"),
    ("finish_reason", "TYPE_STRING", "-1"),
    ("num_input_tokens", "TYPE_UINT32", "1"),
    ("num_output_tokens", "TYPE_UINT32", "-1"),
    ("weights_digest", "TYPE_STRING", "1"),
)


def model_config(name: str, digest: str, *, batched: bool = False, gpu: bool = False, weights_folder: str = "") -> str:
    """The text of a `config.pbtxt`.

    Args:
        name: the model's name, which is its folder's.
        digest: `sha256:` digest of the weights; the model refuses to load others.
        batched: dynamic batching by Triton and one response a request, instead of decoupled responses.
        gpu: one instance on each GPU instead of one on the CPU.
        weights_folder: folder of the weights, relative to the model's; by default its version folder.
    """
    inputs = ",\n".join(
        f'  {{ name: "{tensor}" data_type: {kind} dims: [ 1 ]{" optional: true" if optional else ""} }}'
        for tensor, kind, optional in _INPUTS
    )
    outputs = ",\n".join(
        f'  {{ name: "{tensor}" data_type: {kind} dims: [ {"1" if batched else dims} ] }}'
        for tensor, kind, dims in _OUTPUTS
    )
    policy = f"max_batch_size: {_MAX_BATCH if batched else 0}\n"
    policy += f"model_transaction_policy {{ decoupled: {str(not batched).lower()} }}"
    if batched:
        policy += f"\ndynamic_batching {{ max_queue_delay_microseconds: {_MAX_QUEUE_DELAY_US} }}"
    parameters = {"model_digest": digest} | ({"weights_folder": weights_folder} if weights_folder else {})
    stated = "\n".join(
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}' for key, value in parameters.items()
    )
    return f"""# Written by proctor.inference.reference.triton_repository. For GPUs: kind: KIND_GPU (its --gpu).
name: "{name}"
backend: "python"
{policy}
input [
{inputs}
]
output [
{outputs}
]
instance_group [ {{ kind: {"KIND_GPU" if gpu else "KIND_CPU"} count: 1 }} ]
{stated}
"""


def write_model_repository(bundle: Path, *, batched: bool = False, gpu: bool = False) -> list[str]:
    """Write `models/*/config.pbtxt` and `models/*/1/model.py` for every model of a bundle that has weights.

    Args:
        bundle: folder with `models/<name>/1/model.safetensors`.
        batched: also write, for each model, a twin `<name>-batched` over the same weights, which answers one
            response a request and is batched by Triton.
        gpu: instances on GPUs instead of the CPU.

    Returns:
        The names of the models that the repository now serves, sorted.

    Raises:
        BadInputError: the bundle has no weights.
    """
    names = []
    for weights in sorted((bundle / "models").glob(f"*/{VERSION}/{_WEIGHTS_NAME}")):
        name = weights.parents[1].name
        digest = bytes_digest(weights.read_bytes())
        _write_model(bundle, name, model_config(name, digest, gpu=gpu))
        names.append(name)
        if batched:
            twin, folder = name + BATCHED_SUFFIX, f"../{name}/{VERSION}"
            _write_model(bundle, twin, model_config(twin, digest, batched=True, gpu=gpu, weights_folder=folder))
            names.append(twin)
    if not names:
        raise BadInputError(
            f"{bundle / 'models'} has no model with {VERSION}/{_WEIGHTS_NAME}; "
            "train a bundle with scripts/train_reference_models.py"
        )
    return sorted(names)


def _write_model(bundle: Path, name: str, config: str) -> None:
    folder = bundle / "models" / name
    write_atomic(folder / "config.pbtxt", config.encode(), private=False)
    write_atomic(folder / VERSION / "model.py", _MODEL_PY.encode(), private=False)


def main() -> int:
    """The command: writes the repository of a bundle and names its models."""
    parser = argparse.ArgumentParser(
        prog="python -m proctor.inference.reference.triton_repository", description=__doc__
    )
    parser.add_argument("bundle", type=Path, help="folder with models/NAME/1/model.safetensors")
    parser.add_argument("--batched", action="store_true", help="also write twins that Triton batches dynamically")
    parser.add_argument("--gpu", action="store_true", help="serve on GPUs instead of the CPU")
    arguments = parser.parse_args()
    try:
        names = write_model_repository(arguments.bundle, batched=arguments.batched, gpu=arguments.gpu)
    except ProctorError as error:
        click.echo(f"error: {error}", err=True)
        return int(error.exit_code)
    click.echo("\n".join(names))
    return 0


if __name__ == "__main__":
    sys.exit(main())
