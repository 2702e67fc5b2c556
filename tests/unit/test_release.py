"""The workflow of a release, which only its own system can run: a valid one, of pinned steps, of every target."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from typing import Any

from ruamel.yaml import YAML

from supply_chain.images import IMAGES
from tests.cluster.images import TARGETS
from tests.support import REPOSITORY, missing

RELEASE = REPOSITORY / ".github" / "workflows" / "release.yaml"


def workflow() -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load(RELEASE)
    return loaded


def test_it_is_what_its_system_takes() -> None:
    if importlib.util.find_spec("check_jsonschema") is None:
        missing("check-jsonschema is not installed: pip install check-jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(RELEASE)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_every_target_but_that_of_tests_is_released_for_two_kinds_of_processors() -> None:
    matrix = workflow()["jobs"]["images"]["strategy"]["matrix"]
    assert matrix["platforms"] == ["linux/amd64,linux/arm64"]
    assert set(IMAGES) <= set(matrix["target"])
    alone = {one["target"]: one["platforms"] for one in matrix["include"]}
    assert alone == {"triton": "linux/amd64"}
    assert {*matrix["target"], *alone} == {*TARGETS} - {"prometheus"}


def test_every_step_of_others_is_pinned_by_its_commit() -> None:
    used = re.findall(r"uses: (\S+)(.*)", RELEASE.read_text())
    assert used
    for name, remark in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", name), name
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", remark), f"{name} does not say which version that is"


def test_nothing_is_allowed_that_a_job_does_not_ask_for() -> None:
    found = workflow()
    assert found["permissions"] == {}
    for job in found["jobs"].values():
        assert set(job["permissions"]) == {"contents", "id-token", "attestations"}
        assert job["permissions"]["contents"] == "read"
        for step in job["steps"]:
            # What a tag or a branch is called must not become part of a command.
            assert "${{" not in step.get("run", ""), step


def test_images_are_pushed_by_digest_from_a_base_by_digest_with_their_bill_and_provenance() -> None:
    job = workflow()["jobs"]["images"]
    (build,) = [step for step in job["steps"] if "build-push-action" in step.get("uses", "")]
    assert build["with"]["target"] == "${{ matrix.target }}"
    assert {"push-by-digest=true", "push=true"} <= set(build["with"]["outputs"].split(","))
    assert build["with"]["provenance"] == "mode=max"
    assert build["with"]["sbom"] is True
    assert "@sha256:[0-9a-f]{64}$" in job["steps"][0]["run"]
