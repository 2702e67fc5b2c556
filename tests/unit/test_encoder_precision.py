"""The encoder's precision: a setting, and a part of the fingerprint where it is not fp32."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from proctor.domain.errors import BadInputError
from proctor.perturbation.encoder import Bf16Encoder, SentenceEncoder, exact, resolve_encoder
from proctor.perturbation.encoder import bf16 as bf16_module
from proctor.perturbation.encoder.bf16 import has_bf16
from proctor.runtime.settings import EncoderPrecision, Settings

BF16 = EncoderPrecision.BF16


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files that are digested, and never loaded."""
    folder = tmp_path / "some-encoder"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "config.json").write_text("{}")
    return folder


def _processor(monkeypatch: pytest.MonkeyPatch, *, has: bool) -> None:
    monkeypatch.setattr(bf16_module, "has_bf16", lambda: has)
    bf16_module._say_that_there_is_none.cache_clear()


def test_the_precision_is_fp32_unless_the_environment_says_otherwise(tmp_path: Path) -> None:
    home = {"PROCTOR_HOME": str(tmp_path)}
    assert Settings.from_environment(home).encoder_precision is EncoderPrecision.FP32
    assert Settings.from_environment({**home, "PROCTOR_ENCODER_PRECISION": ""}).encoder_precision == "fp32"
    assert Settings.from_environment({**home, "PROCTOR_ENCODER_PRECISION": "bf16"}).encoder_precision is BF16


def test_a_child_process_gets_the_precision(tmp_path: Path) -> None:
    settings = Settings.from_environment({"PROCTOR_HOME": str(tmp_path), "PROCTOR_ENCODER_PRECISION": "bf16"})
    assert Settings.from_environment(settings.to_environment()).encoder_precision is BF16


def test_an_unknown_precision_is_one_error_that_names_the_two(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"^PROCTOR_ENCODER_PRECISION is 'int8', but must be fp32 or bf16; unset"):
        Settings.from_environment({"PROCTOR_HOME": str(tmp_path), "PROCTOR_ENCODER_PRECISION": "int8"})


def test_bf16_is_in_name_and_fingerprint_and_fp32_leaves_both_as_they_were(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _processor(monkeypatch, has=True)
    fp32, bf16 = resolve_encoder(str(folder)), resolve_encoder(str(folder), BF16)
    assert fp32.fingerprint == SentenceEncoder(folder, name="x").fingerprint
    assert bf16.fingerprint != fp32.fingerprint
    assert (bf16.name, bf16.digest) == ("some-encoder (bf16)", fp32.digest)
    assert exact(bf16).fingerprint == fp32.fingerprint
    assert resolve_encoder(str(folder), BF16).fingerprint == bf16.fingerprint


def test_the_fp32_fingerprint_is_what_it_was_before_there_were_precisions(folder: Path) -> None:
    expected = "sha256:c63ba04c4ea5b8e2b77abc356a908e99be8b9ad164e8b01a2d5a172fcc983845"
    assert resolve_encoder(str(folder)).fingerprint == expected


def test_the_weights_of_a_dense_layer_are_part_of_the_fingerprint(folder: Path) -> None:
    layer = folder / "2_Dense"
    layer.mkdir()
    found = set()
    for weights in (b"one", b"another"):
        (layer / "model.safetensors").write_bytes(weights)
        found.add(SentenceEncoder(folder, name="x").fingerprint)
    assert len(found) == 2


def test_a_processor_without_bf16_measures_in_fp32_under_its_fingerprint_and_says_so_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _processor(monkeypatch, has=False)
    with caplog.at_level(logging.WARNING):
        encoders = [resolve_encoder(str(folder), BF16) for _ in range(3)]
    assert {encoder.fingerprint for encoder in encoders} == {resolve_encoder(str(folder)).fingerprint}
    assert [record.getMessage() for record in caplog.records] == [
        "PROCTOR_ENCODER_PRECISION is bf16 and this processor has none: distances are measured in fp32"
    ]


def test_resolving_either_precision_loads_no_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _processor(monkeypatch, has=True)
    assert not resolve_encoder(str(folder)).loaded
    assert not resolve_encoder(str(folder), BF16).loaded


def test_each_bf16_encoder_begins_without_observations(folder: Path) -> None:
    fp32 = SentenceEncoder(folder, name="x")
    Bf16Encoder(fp32).errors.observe(0.1)
    assert Bf16Encoder(fp32).errors.pairs == 0


@pytest.mark.parametrize(
    ("cpuinfo", "has"),
    [
        ("processor\t: 0\nflags\t\t: fpu avx512f avx512_bf16 amx_tile\n", True),
        ("flags\t\t: fpu amx_bf16 amx_tile\n", True),
        ("processor\t: 0\nFeatures\t: fp asimd bf16 i8mm\n", True),
        ("flags\t\t: fpu avx2 avx512f avx512_fp16\n", False),
        ("model name\t: the bf16 processor\nflags\t\t: fpu avx2\n", False),
        ("", False),
    ],
)
def test_the_processor_has_bf16_where_its_flags_say_so(tmp_path: Path, cpuinfo: str, has: bool) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text(cpuinfo)
    assert has_bf16(path) is has


def test_a_machine_that_says_nothing_of_its_processor_has_no_bf16(tmp_path: Path) -> None:
    assert not has_bf16(tmp_path / "missing")
