"""k8s/: the bases are the chart's, and every overlay builds to objects that Kubernetes takes.

What builds them is kubectl: the one on PATH, or the kit's beside the repository.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

import render_kustomize_bases
from autoscaling.rendered import CHART, read_yaml, render, values_of, worker_rules
from autoscaling.rules import Signal, rules_of
from proctor.cli.main import cli
from proctor.domain.suite import Suite
from tests.charts.kubernetes_schemas import VERSIONS, custom_refusals, is_custom, refusals
from tests.support import REPOSITORY, missing

K8S: Final = REPOSITORY / "k8s"
_KIT: Final = REPOSITORY.parent / "shared" / "cluster" / "cluster"
BUILT: Final = ("overlays/laptop", "overlays/gpu", "examples")
_LONG_RUNNING: Final = ("Deployment", "StatefulSet")

Manifest = dict[str, Any]


def kubectl() -> list[str]:
    if found := shutil.which("kubectl"):
        return [found]
    # The kit's needs a folder of its own with the programs unpacked, as a cluster that is up has.
    if _KIT.is_file() and os.environ.get("CLUSTER_DIR"):
        return [str(_KIT), "kubectl"]
    missing("kubectl is not on PATH (or set CLUSTER_DIR to a cluster of the kit's that is up)")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[Manifest]]:
    """Objects of each overlay, with Secrets drawn for the one that wants them."""
    copy = tmp_path_factory.mktemp("kustomize") / "k8s"
    shutil.copytree(K8S, copy, ignore=shutil.ignore_patterns("secrets"))
    assert render_kustomize_bases.main(["--secrets", str(copy / "overlays" / "laptop")]) == 0
    program = kubectl()
    return {name: _build(program, copy / name) for name in BUILT}


def _build(program: list[str], folder: Path) -> list[Manifest]:
    done = subprocess.run([*program, "kustomize", str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # kubectl warns there of what a later version will not take.
    assert done.stderr == ""
    return [one for one in read_yaml(done.stdout) if one]


def objects(built: Mapping[str, list[Manifest]], *kinds: str) -> list[tuple[str, Manifest]]:
    return [(name, one) for name, found in built.items() for one in found if one["kind"] in kinds]


@cache
def _base(name: str) -> list[Manifest]:
    text = (K8S / "bases" / name / "manifests.yaml").read_text(encoding="utf-8")
    return list(read_yaml(text))


@pytest.mark.parametrize("base", [path.name for path in render_kustomize_bases.bases(K8S / "bases")])
def test_a_base_is_what_the_chart_renders_with_its_values(base: str) -> None:
    for name, text in render_kustomize_bases.documents(K8S / "bases" / base, CHART).items():
        # Without pytest's comparison, which takes minutes over texts of that size.
        current = (K8S / "bases" / base / name).read_text(encoding="utf-8") == text
        assert current, f"{base}/{name}: run scripts/render_kustomize_bases.py"


@pytest.mark.parametrize("base", [path.name for path in render_kustomize_bases.bases(K8S / "bases")])
def test_a_base_has_no_secret_and_nothing_that_only_helm_reads(base: str) -> None:
    assert [one["metadata"]["name"] for one in _base(base) if one["kind"] == "Secret"] == []
    text = json.dumps(_base(base))
    assert "helm.sh/" not in text
    assert '"Helm"' not in text


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_takes_every_object_of_every_overlay(built: Mapping[str, list[Manifest]], version: str) -> None:
    said = [
        f"{name}: {one['kind']} {one['metadata']['name']}: {fault}"
        for name, found in built.items()
        for one in found
        for fault in (custom_refusals(one) if is_custom(one) else refusals(one, version))
    ]
    assert said == []


def test_no_two_objects_of_an_overlay_have_the_same_name(built: Mapping[str, list[Manifest]]) -> None:
    for name, found in built.items():
        names = [
            (one["apiVersion"], one["kind"], one["metadata"]["name"], one["metadata"].get("namespace")) for one in found
        ]
        assert len(set(names)) == len(names), name


def test_every_secret_that_the_laptop_s_pods_name_is_there_with_its_keys(
    built: Mapping[str, list[Manifest]],
) -> None:
    found = built["overlays/laptop"]
    there = {one["metadata"]["name"]: set(one["data"]) for one in found if one["kind"] == "Secret"}
    wanted = re.findall(r'"secretKeyRef": \{"key": "([^"]+)", "name": "([^"]+)"', json.dumps(found, sort_keys=True))
    assert wanted
    assert [(key, name) for key, name in wanted if key not in there.get(name, set())] == []


def test_the_laptop_has_one_pod_of_each_and_the_restricted_profile(built: Mapping[str, list[Manifest]]) -> None:
    found = built["overlays/laptop"]
    replicas = {one["metadata"]["name"]: one["spec"].get("replicas") for one in found if one["kind"] in _LONG_RUNNING}
    assert set(replicas.values()) == {1}
    (namespace,) = [one for one in found if one["kind"] == "Namespace"]
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert [one for one in found if one["kind"] == "PodDisruptionBudget"] == []


def test_triton_has_its_gpu_its_node_and_its_models(built: Mapping[str, list[Manifest]]) -> None:
    tritons = [
        one
        for _, one in objects(built, "Deployment")
        if "nvidia.com/gpu" in json.dumps(one["spec"]["template"]["spec"].get("containers"))
    ]
    assert {one["metadata"]["name"] for one in tritons} == {"proctor-triton-llama", "triton"}
    for triton in tritons:
        spec = triton["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        assert container["resources"]["limits"]["nvidia.com/gpu"] == 1
        assert {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in spec["tolerations"]
        assert spec["nodeSelector"] == {"nvidia.com/gpu.present": "true"}
        claims = [
            volume["persistentVolumeClaim"]["claimName"]
            for volume in spec["volumes"]
            if "persistentVolumeClaim" in volume
        ]
        assert claims == ["triton-models"]


def test_gpus_are_scaled_by_work_which_vllm_cannot_hide(built: Mapping[str, list[Manifest]]) -> None:
    scaled = {one["metadata"]["name"]: rules_of(one) for one in built["overlays/gpu"] if one["kind"] == "ScaledObject"}
    triton = scaled["proctor-triton-llama"]
    assert [trigger.signal for trigger in triton.triggers] == [Signal.WORK]
    # By their own queue time pods could not come from none: there is nobody whose queue it were.
    assert triton.minimum == 0


def test_the_example_for_prometheus_scales_as_the_chart_does(built: Mapping[str, list[Manifest]]) -> None:
    (example,) = [rules_of(one) for one in built["examples"] if one["kind"] == "ScaledObject"]
    chart = worker_rules(render(CHART, values_of(K8S / "bases" / "gpu" / "values.yaml")))
    same = ("triggers", "minimum", "maximum", "polling_s", "cooldown_s", "fallback", "behaviour")
    by_kind = {field: (getattr(example, field), getattr(chart, field)) for field in same}
    up = {field: pair for field, pair in by_kind.items() if pair[0] != pair[1] and field != "behaviour"}
    assert up == {}
    behaviours = by_kind["behaviour"]
    assert behaviours[0].down == behaviours[1].down
    assert set(behaviours[0].up.policies) == set(behaviours[1].up.policies)


def test_scheduled_audits_submit_a_valid_suite_by_commands_that_there_are(built: Mapping[str, list[Manifest]]) -> None:
    (config,) = [one for one in built["examples"] if one["kind"] == "ConfigMap"]
    Suite.model_validate_json(config["data"]["suite.json"])
    jobs = [one for one in built["examples"] if one["kind"] == "CronJob"]
    assert {job["metadata"]["name"] for job in jobs} == {"scheduled-audit", "rotated-audit", "rotated-dataset"}
    jobs = [job for job in jobs if job["metadata"]["name"] != "rotated-dataset"]
    told = CliRunner().invoke(cli, ["audit", "submit", "--help"]).output
    options = set(re.findall(r"--[a-z]+", told))
    for job in jobs:
        (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
        given = [str(word) for word in container["args"] if str(word).startswith("--")]
        assert set(given) == {"--server", "--insecure"} <= options
        compile("\n".join(container["args"][:1]) if "command" in container else "", "cronjob", "exec")


def test_a_dataset_is_rotated_by_a_command_that_does_it(built: Mapping[str, list[Manifest]], tmp_path: Path) -> None:
    (job,) = [one for one in built["examples"] if one["metadata"]["name"] == "rotated-dataset"]
    (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    *words, place = container["args"]
    items = tmp_path / Path(place).name
    made = ["dataset", "new", "reasoning", "--out", str(items), "--count", "3", "--held-out", "3"]
    assert CliRunner().invoke(cli, made).exit_code == 0
    assert "Not due before" in CliRunner().invoke(cli, [*words, str(items)]).output
    late = CliRunner().invoke(cli, [*words, str(items), "--on", "2999-01-01"])
    assert "3 items were retired" in late.output


def test_secrets_that_were_drawn_stay_when_they_are_drawn_again(tmp_path: Path) -> None:
    overlay = tmp_path / "laptop"
    overlay.mkdir()
    assert render_kustomize_bases.main(["--secrets", str(overlay)]) == 2
    (overlay / "kustomization.yaml").touch()

    def drawn() -> dict[str, bytes]:
        assert render_kustomize_bases.main(["--secrets", str(overlay)]) == 0
        return {path.name: path.read_bytes() for path in (overlay / "secrets").iterdir()}

    first = drawn()
    assert first == drawn()
    assert all(path.stat().st_mode & 0o077 == 0 for path in (overlay / "secrets").iterdir())
    (overlay / "secrets" / "gateway.env").unlink()
    again = drawn()
    assert {name for name in first if first[name] != again[name]} == {"gateway.env"}
