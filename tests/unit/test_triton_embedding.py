"""Laying a sentence encoder down as a Triton model."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from proctor.domain.canonical import bytes_digest
from proctor.domain.errors import BadInputError, EncoderError
from proctor.perturbation.encoder import Encoder, SentenceEncoder, Vectors, resolve_encoder
from proctor.perturbation.triton_embedding.contract import Identity
from proctor.perturbation.triton_embedding.repository import encoder_folder, model_config, write_embedding_model
from proctor.runtime.packaged_encoder import PACKAGED_NAME
from tests.support import REPOSITORY, missing

DIMENSION = 8


@pytest.fixture
def untried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Encoders that need no torch and no real weights to embed."""

    def encode(self: SentenceEncoder, texts: Sequence[str]) -> Vectors:
        return np.ones((len(texts), DIMENSION), dtype=np.float32)

    monkeypatch.setattr(SentenceEncoder, "encode", encode)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The folder of an encoder of one's own, with everything that may lie in one."""
    folder = tmp_path / "own-encoder"
    for name in ("config.json", "modules.json", "vocab.txt", "1_Pooling/config.json", "2_Dense/config.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "2_Dense/model.safetensors").write_bytes(b"more weights")
    (folder / "pytorch_model.bin").write_bytes(b"can run code")
    return folder


def packaged() -> Encoder:
    try:
        return resolve_encoder(None)
    except EncoderError as error:
        missing(str(error))


def test_the_model_that_comes_with_proctor_is_that_of_the_packaged_encoder() -> None:
    folder = REPOSITORY / "services/triton/embedding/models" / PACKAGED_NAME
    written = model_config(PACKAGED_NAME, Identity.of(packaged()), 384)
    assert (folder / "config.pbtxt").read_text("utf-8") == written


@pytest.mark.usefixtures("untried")
def test_the_packaged_encoder_is_laid_down_without_its_weights(tmp_path: Path) -> None:
    packaged()
    assert write_embedding_model(tmp_path) == PACKAGED_NAME
    model = tmp_path / "models" / PACKAGED_NAME
    files = sorted(file.relative_to(model).as_posix() for file in model.rglob("*") if file.is_file())
    assert files == ["1/model.py", "config.pbtxt"]
    assert encoder_folder(model / "1") == encoder_folder(tmp_path / "nowhere")


@pytest.mark.usefixtures("untried")
def test_an_encoder_of_ones_own_is_copied_whole_and_stated(tmp_path: Path, own: Path) -> None:
    assert write_embedding_model(tmp_path, str(own)) == "own-encoder"
    model = tmp_path / "models/own-encoder"
    copy = SentenceEncoder(encoder_folder(model / "1"), name="own-encoder")
    assert copy.fingerprint == resolve_encoder(str(own)).fingerprint
    assert (copy.folder / "2_Dense/model.safetensors").read_bytes() == b"more weights"
    assert not (copy.folder / "pytorch_model.bin").exists()
    config = (model / "config.pbtxt").read_text("utf-8")
    assert f'key: "model_digest" value {{ string_value: "{bytes_digest(b"weights")}" }}' in config
    assert f'key: "encoder_fingerprint" value {{ string_value: "{copy.fingerprint}" }}' in config
    assert f'name: "EMBEDDING" data_type: TYPE_FP32 dims: [ {DIMENSION} ]' in config
    assert [child.name for child in (model / "1").iterdir() if child.name.startswith(".")] == []


@pytest.mark.usefixtures("untried")
def test_no_weights_lie_where_a_reference_model_has_them(tmp_path: Path, own: Path) -> None:
    write_embedding_model(tmp_path, str(own))
    assert not list(tmp_path.glob("models/*/1/model.safetensors"))


@pytest.mark.usefixtures("untried")
def test_laying_it_down_again_replaces_the_older_encoder(tmp_path: Path, own: Path) -> None:
    write_embedding_model(tmp_path, str(own), name="encoder")
    (own / "model.safetensors").write_bytes(b"newer weights")
    (own / "vocab.txt").unlink()
    write_embedding_model(tmp_path, str(own), name="encoder", gpu=True)
    copy = tmp_path / "models/encoder/1/encoder"
    assert (copy / "model.safetensors").read_bytes() == b"newer weights"
    assert not (copy / "vocab.txt").exists()
    assert "KIND_GPU" in (tmp_path / "models/encoder/config.pbtxt").read_text("utf-8")


@pytest.mark.usefixtures("untried")
def test_another_kind_of_model_of_that_name_is_left_alone(tmp_path: Path, own: Path) -> None:
    entry = tmp_path / "models/own-encoder/1/model.py"
    entry.parent.mkdir(parents=True)
    entry.write_text("a reference model")
    with pytest.raises(BadInputError, match="is another model than a sentence encoder"):
        write_embedding_model(tmp_path, str(own))
    assert entry.read_text() == "a reference model"


@pytest.mark.usefixtures("untried")
@pytest.mark.parametrize("name", ["../up", "a b", ".hidden", "a/b", "a@b", "x" * 101])
def test_a_name_that_a_url_cannot_hold_is_refused(tmp_path: Path, own: Path, name: str) -> None:
    with pytest.raises(BadInputError, match="cannot be a model's name"):
        write_embedding_model(tmp_path, str(own), name=name)
    assert not (tmp_path / "models").exists()


@pytest.mark.usefixtures("untried")
def test_a_folder_whose_name_would_break_the_configuration_is_refused(tmp_path: Path, own: Path) -> None:
    odd = own.rename(tmp_path / 'a" } backend: "b')
    with pytest.raises(BadInputError, match="rename its folder"):
        write_embedding_model(tmp_path, str(odd), name="fine")


def test_an_encoder_that_does_not_embed_is_not_laid_down(
    tmp_path: Path, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: SentenceEncoder, texts: Sequence[str]) -> Vectors:
        raise EncoderError("damaged")

    monkeypatch.setattr(SentenceEncoder, "encode", fail)
    with pytest.raises(EncoderError, match="damaged"):
        write_embedding_model(tmp_path, str(own))
    assert not [file for file in (tmp_path / "models").rglob("*") if file.is_file()]


def test_the_command_says_in_one_line_what_is_wrong(tmp_path: Path) -> None:
    module = "proctor.perturbation.triton_embedding.repository"
    command = [sys.executable, "-m", module, str(tmp_path / "out"), "--encoder", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: PROCTOR_ENCODER is")
    assert done.stderr.count("\n") == 1
