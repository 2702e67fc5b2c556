"""Laying a model down for Triton's vLLM backend, and the model that comes with Proctor for clusters with GPUs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from proctor.domain.errors import BadInputError
from proctor.inference.vllm_repository import MOUNTED, engine_arguments, model_config, write_vllm_model
from tests.support import REPOSITORY

SHIPPED = REPOSITORY / "services/triton/vllm"
DIGEST = "sha256:" + "ab" * 32


def engine(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "1" / "model.json").read_text("utf-8"))
    return found


def test_the_model_for_gpus_that_comes_with_proctor_is_what_the_template_makes(tmp_path: Path) -> None:
    (model,) = (SHIPPED / "models").iterdir()
    written = write_vllm_model(tmp_path, model.name)
    files = sorted(file.relative_to(model).as_posix() for file in model.rglob("*") if file.is_file())
    assert files == ["1/model.json", "config.pbtxt"]
    assert all((model / name).read_bytes() == (written / name).read_bytes() for name in files)


def test_the_model_that_tests_serve_on_processors_differs_from_it_in_its_devices_alone(tmp_path: Path) -> None:
    gpu = write_vllm_model(tmp_path / "gpu", "m", weights="/w")
    cpu = write_vllm_model(tmp_path / "cpu", "m", weights="/w", gpu=False)
    assert (gpu / "config.pbtxt").read_bytes() == (cpu / "config.pbtxt").read_bytes()
    differing = {key for key, _ in engine(gpu).items() ^ engine(cpu).items()}
    assert differing == {"max_num_seqs", "gpu_memory_utilization", "enforce_eager"}


def test_its_weights_lie_where_the_chart_mounts_the_repository_and_under_the_pools_name(tmp_path: Path) -> None:
    (model,) = (SHIPPED / "models").iterdir()
    assert engine(model)["model"] == f"{MOUNTED}/{model.name}/weights"
    base = (REPOSITORY / "k8s/bases/gpu/manifests.yaml").read_text("utf-8")
    assert f"--model-repository={MOUNTED}\n" in base
    assert f"mountPath: {MOUNTED}\n" in base
    assert f"name: {model.name}\n" in (REPOSITORY / "k8s/bases/gpu/values.yaml").read_text("utf-8")


def test_a_digest_of_the_weights_is_said_only_where_the_operator_says_it() -> None:
    assert "model_digest" not in model_config("m")
    assert f'key: "model_digest" value {{ string_value: "{DIGEST}" }}' in model_config("m", digest=DIGEST)


@pytest.mark.parametrize("name", ["", "../up", "a/b", 'a"b', "a\nb", ".hidden", "ä", "x" * 101])
def test_a_name_that_triton_cannot_hold_is_refused_and_nothing_written(name: str, tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="no name of a model"):
        write_vllm_model(tmp_path, name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("digest", ["sha256:ab", "ab" * 32, 'sha256:"', "sha256:" + "AB" * 32])
def test_what_is_no_digest_is_refused(digest: str, tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="64 hex digits"):
        write_vllm_model(tmp_path, "m", digest=digest)


@pytest.mark.parametrize("weights", ["/a b/c", '/a"b', "/ä/\n"])
def test_any_path_of_weights_can_be_written_and_read_again(weights: str) -> None:
    assert json.loads(engine_arguments(weights, gpu=True))["model"] == weights


def test_the_command_lays_the_model_down_beside_others_and_says_what_is_wrong_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "models" / "other").mkdir(parents=True)
    command = [sys.executable, "-m", "proctor.inference.vllm_repository", str(tmp_path), "--name"]
    made = subprocess.run([*command, "mine", "--cpu", "--weights", "/w"], capture_output=True, text=True)
    assert (made.returncode, made.stdout) == (0, f"{tmp_path / 'models/mine'}\n")
    assert engine(tmp_path / "models/mine")["enforce_eager"] is True
    assert {one.name for one in (tmp_path / "models").iterdir()} == {"mine", "other"}
    refused = subprocess.run([*command, "a/b"], capture_output=True, text=True)
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: 'a/b' is no name")
    assert refused.stderr.count("\n") == 1
