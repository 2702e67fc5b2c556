"""The Dockerfile of the images: what each target is made from, and what it must not have."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from supply_chain.images import BESIDES, FOLDER, IMAGES, pins_of
from tests.cluster.images import TARGETS
from tests.dockerfile import DOCKERFILE, fingerprint, parts_of, sources_of, stages
from tests.support import REPOSITORY

STAGES = stages(DOCKERFILE.read_text("utf-8"))
#: Router, scorer, registry and gateway by the issue; inference asks servers over the network.
WITHOUT_TORCH = ("router", "scorer", "registry", "gateway", "inference", "notifier")
COMPILERS = re.compile(r"\b(gcc|g\+\+|clang|build-essential|rustc|cargo|make|[\w+.-]+-dev)(?=\s|$)")


def requirements(target: str) -> set[str]:
    """The names of the packages that a target's own layers install."""
    parts = [stage for name, stage in parts_of(target, STAGES).items() if name not in ("wheel", "project")]
    files = [path for stage in parts for path in sources_of(stage) if path.startswith("services/images/requirements/")]
    found = {pin.name for path in files for pin in pins_of((REPOSITORY / path).read_text("utf-8"))}
    return found | ({"torch"} if any("torch==" in text for stage in parts for text in stage.instructions) else set())


def lineage(target: str) -> list[str]:
    """The instructions whose layers are in the image, from the base on."""
    stage = STAGES[target]
    return [*(lineage(stage.base) if stage.base in STAGES else []), *stage.instructions]


def test_every_service_has_a_target_and_every_target_is_one_that_tests_build() -> None:
    assert set(IMAGES) <= set(STAGES)
    assert set(TARGETS) == {name for name, stage in STAGES.items() if f"USER {10001}:{10001}" in stage.instructions}


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_runs_as_a_user_without_rights_and_builds_nothing_from_source(target: str) -> None:
    users = [text for text in lineage(target) if text.startswith("USER")]
    assert users[-1] == "USER 10001:10001"
    assert not [text for text in lineage(target) if COMPILERS.search(text)]
    assert "--only-binary=:all:" in (REPOSITORY / "services/images/install.sh").read_text()


@pytest.mark.parametrize("target", TARGETS)
def test_whatever_pip_installs_has_hashes_but_torch_whose_index_states_them(target: str) -> None:
    for name, stage in parts_of(target, STAGES).items():
        for text in stage.instructions:
            if text.startswith("RUN") and "install-wheels" in text and name != "packages-torch":
                assert "--require-hashes" in text


@pytest.mark.parametrize("target", IMAGES)
def test_a_service_has_what_its_pins_say_and_nothing_else(target: str) -> None:
    pins = {pin.name for pin in pins_of((FOLDER / f"{target}.txt").read_text("utf-8"))}
    assert requirements(target) - {"torch"} == pins


@pytest.mark.parametrize("target", WITHOUT_TORCH)
def test_a_service_that_runs_no_model_carries_no_torch(target: str) -> None:
    assert not requirements(target) & {"torch", "transformers", "sentence-transformers", "triton"}


def test_torch_is_the_version_that_pyproject_names() -> None:
    wanted = re.search(r'"torch==([\d.]+)"', (REPOSITORY / "pyproject.toml").read_text())
    assert wanted is not None
    assert f"torch=={wanted[1]}" in " ".join(STAGES["packages-torch"].instructions)


def test_no_file_of_requirements_is_without_a_stage() -> None:
    copied = {Path(path).name for stage in STAGES.values() for path in sources_of(stage)}
    assert {path.name for path in FOLDER.iterdir()} <= copied
    assert {path.stem for path in FOLDER.iterdir()} == {*IMAGES, *BESIDES}


def test_what_a_stage_copies_is_there_and_git_has_it() -> None:
    for stage in STAGES.values():
        for pattern in sources_of(stage):
            assert list(REPOSITORY.glob(pattern)), pattern


def test_a_stage_that_takes_from_another_names_one() -> None:
    taken = [
        name for stage in STAGES.values() for text in stage.instructions for name in re.findall(r"--from=(\S+)", text)
    ]
    assert taken
    assert set(taken) <= set(STAGES)


def test_entrypoints_are_shell_that_parses_and_can_be_run() -> None:
    for script in [*(REPOSITORY / "services/images/entrypoints").iterdir(), REPOSITORY / "services/images/install.sh"]:
        assert script.stat().st_mode & 0o111, script.name
        if script.read_text().startswith("#!/bin/sh"):
            subprocess.run(["sh", "-n", script], check=True)


def context_of(folder: Path) -> Path:
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "one.py").write_text("1")
    (folder / "b.txt").write_text("b")
    (folder / "Dockerfile").write_text(
        "FROM base AS first\n# A remark.\nCOPY a \\\n  /a/\n"
        "FROM base AS second\nCOPY b.txt /\n"
        "FROM first AS third\nCOPY --from=second /b.txt /\n"
    )
    return folder


def test_a_fingerprint_changes_with_what_goes_into_the_target_and_with_nothing_else(tmp_path: Path) -> None:
    context = context_of(tmp_path / "context")

    def prints() -> list[str]:
        names = ("first", "second", "third")
        return [fingerprint(name, dockerfile=context / "Dockerfile", context=context) for name in names]

    first, second, third = prints()
    (context / "a" / "__pycache__").mkdir()
    (context / "a" / "__pycache__" / "one.pyc").write_text("x")
    dockerfile = (context / "Dockerfile").read_text()
    (context / "Dockerfile").write_text(dockerfile.replace("A remark", "Another remark"))
    assert prints() == [first, second, third]
    (context / "b.txt").write_text("c")
    changed = prints()
    assert changed[0] == first
    assert changed[1] != second
    assert changed[2] != third
    (context / "a" / "one.py").write_text("2")
    assert prints()[0] != first
    assert prints()[1] == changed[1]


def test_a_fingerprint_tells_where_a_name_ends_and_what_else_decides(tmp_path: Path) -> None:
    context = context_of(tmp_path / "context")
    plain = fingerprint("first", dockerfile=context / "Dockerfile", context=context)
    assert fingerprint("first", dockerfile=context / "Dockerfile", context=context, besides="base 2") != plain
    (context / "a" / "one.py").rename(context / "a" / "two.py")
    assert fingerprint("first", dockerfile=context / "Dockerfile", context=context) != plain
