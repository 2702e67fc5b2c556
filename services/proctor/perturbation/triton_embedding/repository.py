"""Lay a sentence encoder down as a Triton model: `python -m proctor.perturbation.triton_embedding.repository FOLDER`.

The model is FOLDER/models/NAME: a config.pbtxt, which states which encoder it is, a model.py, which only imports
Proctor's, and a copy of the encoder's files. Those of the packaged encoder are not copied: it comes with the packages
that the model needs in any case where Triton runs, `pip install 'proctor[perturbation]'`.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

import click

from proctor.domain.errors import BadInputError, EncoderError, ProctorError
from proctor.perturbation.encoder import Encoder, SentenceEncoder, resolve_encoder
from proctor.perturbation.triton_embedding.contract import EMBEDDING, TEXT, Identity
from proctor.runtime.files import write_atomic
from proctor.runtime.packaged_encoder import PACKAGE, packaged_folder

VERSION: Final = "1"
#: Texts in one request and one forward pass: enough to fill a GPU, and some seconds of a CPU.
MAX_BATCH: Final = 256

#: How long Triton's dynamic batcher waits for company: little beside a forward pass, so a lone text hardly notices.
_MAX_QUEUE_DELAY_US: Final = 2000
#: Not the version folder itself: a `model.safetensors` there would be taken for a reference model's.
_ENCODER_FOLDER: Final = "encoder"
_ENCODER_FILES: Final = ("*.json", "*.txt", "*.model", "*.safetensors", "*/*.json", "*/*.safetensors")
_MODEL_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)
#: Written between quotation marks in config.pbtxt.
_ENCODER_NAME: Final = re.compile(r"[\w.@/ +-]{1,200}")
_PROBE: Final = "How many wordings has a question?"

_MODEL_PY: Final = '''"""Triton's entry to the sentence encoder."""

from proctor.perturbation.triton_embedding.model import TritonPythonModel

__all__ = ["TritonPythonModel"]
'''


def model_config(name: str, identity: Identity, dimension: int, *, gpu: bool = False) -> str:
    """The text of a `config.pbtxt`.

    Args:
        name: the model's name, which is its folder's.
        identity: the encoder; the model refuses to serve another one.
        dimension: of its vectors.
        gpu: one instance on each GPU instead of one on the CPU.
    """
    stated = "\n".join(
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'
        for key, value in identity.parameters().items()
    )
    return f"""# Written by proctor.perturbation.triton_embedding.repository. For GPUs: kind: KIND_GPU (its --gpu).
name: "{name}"
backend: "python"
max_batch_size: {MAX_BATCH}
dynamic_batching {{ max_queue_delay_microseconds: {_MAX_QUEUE_DELAY_US} }}
input [ {{ name: "{TEXT}" data_type: TYPE_STRING dims: [ 1 ] }} ]
output [ {{ name: "{EMBEDDING}" data_type: TYPE_FP32 dims: [ {dimension} ] }} ]
instance_group [ {{ kind: {"KIND_GPU" if gpu else "KIND_CPU"} count: 1 }} ]
{stated}
"""


def dimension_of(encoder: Encoder) -> int:
    """The dimension of an encoder's vectors. Loads it, and so proves that it embeds.

    Raises:
        EncoderError: it does not.
    """
    return int(encoder.encode([_PROBE]).shape[1])


def encoder_folder(version_folder: Path) -> Path:
    """The folder of a served model's encoder: beside its `model.py`, else the installed package's.

    Raises:
        EncoderError: there is none.
    """
    own = version_folder / _ENCODER_FOLDER
    if own.is_dir():
        return own
    packaged = packaged_folder()
    if packaged is None:
        raise EncoderError(
            f"{own} does not exist, and the package {PACKAGE} is not installed where Triton runs: "
            "pip install 'proctor[perturbation]' there, or lay the model down again"
        )
    return packaged


def write_embedding_model(folder: Path, setting: str | None = None, *, name: str = "", gpu: bool = False) -> str:
    """Write `folder/models/<name>`, a Triton model of a sentence encoder. Loads the encoder once, to try it.

    Args:
        folder: of the repository; other models in it are left alone, an older encoder of the same name is replaced.
        setting: as PROCTOR_ENCODER: a folder, a hub id with a pinned commit, or None for the packaged encoder.
        name: the model's name on Triton; by default the encoder's own.
        gpu: instances on GPUs instead of the CPU.

    Returns:
        The model's name.

    Raises:
        BadInputError: a name that Triton, a URL or config.pbtxt cannot hold, or that of another kind of model there.
        EncoderError: there is no such encoder here, or it does not embed.
    """
    encoder = resolve_encoder(setting)
    if not isinstance(encoder, SentenceEncoder):
        raise BadInputError(f"{setting} is on Triton already: name a folder, or a hub id with a pinned commit")
    name = name or encoder.name.partition("@")[0].rpartition("/")[2]
    if not _MODEL_NAME.fullmatch(name):
        raise BadInputError(f"{name[:200]!r} cannot be a model's name: letters, digits, '.', '_' and '-' (--name)")
    if not _ENCODER_NAME.fullmatch(encoder.name):
        raise BadInputError(f"config.pbtxt cannot hold the encoder's name {encoder.name[:200]!r}: rename its folder")
    model = folder / "models" / name
    entry = model / VERSION / "model.py"
    if model.exists() and (not entry.is_file() or entry.read_bytes() != _MODEL_PY.encode()):
        raise BadInputError(f"{model} is another model than a sentence encoder: choose another name (--name)")
    files = model / VERSION / _ENCODER_FOLDER
    if setting is None:
        dimension = dimension_of(encoder)
        shutil.rmtree(files, ignore_errors=True)
    else:
        dimension = _copy_encoder(encoder, files)
    config = model_config(name, Identity.of(encoder), dimension, gpu=gpu)
    # For a server that may be another user's, e.g. in a container.
    write_atomic(entry, _MODEL_PY.encode(), private=False)
    write_atomic(model / "config.pbtxt", config.encode(), private=False)
    return name


def _copy_encoder(encoder: SentenceEncoder, target: Path) -> int:
    """Copy what decides an embedding and try the copy, whose dimension this gives; it appears by one rename."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".encoder-", dir=target.parent) as temporary:
        copy = Path(temporary) / "new"
        for file in sorted({file for pattern in _ENCODER_FILES for file in encoder.folder.glob(pattern)}):
            place = copy / file.relative_to(encoder.folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, place)
        copied = SentenceEncoder(copy, name=encoder.name, pinned_digest=encoder.digest)
        if copied.fingerprint != encoder.fingerprint:
            raise EncoderError(f"the copy of {encoder.folder} is not the same encoder: did its files change meanwhile?")
        dimension = dimension_of(copied)
        if target.exists():
            target.rename(Path(temporary) / "old")
        copy.rename(target)
    return dimension


def main() -> int:
    """The command: lays the model down and prints its name."""
    parser = argparse.ArgumentParser(
        prog="python -m proctor.perturbation.triton_embedding.repository",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: python -m proctor.perturbation.triton_embedding.repository embedding --encoder my-encoder\n"
        "         tritonserver --model-repository embedding/models --disable-auto-complete-config\n"
        "         export PROCTOR_ENCODER=grpc://gpu-host:8001/my-encoder",
    )
    parser.add_argument("folder", type=Path, help="the model becomes FOLDER/models/NAME")
    parser.add_argument("--encoder", help="a folder, or owner/name@<40 hex digits>; by default the packaged encoder")
    parser.add_argument("--name", default="", help="the model's name on Triton; by default the encoder's")
    parser.add_argument("--gpu", action="store_true", help="serve on GPUs instead of the CPU")
    arguments = parser.parse_args()
    try:
        name = write_embedding_model(arguments.folder, arguments.encoder, name=arguments.name, gpu=arguments.gpu)
    except ProctorError as error:
        click.echo(f"error: {error}", err=True)
        return int(error.exit_code)
    click.echo(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
