"""Audits of the study's models as a user runs them: weights behind vLLM, a local stack, `proctor audit run`."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

import httpx

from planted_leaks.asking import Asking
from planted_leaks.cells import Cell
from planted_leaks.grades import Grades
from planted_leaks.preparing import Prepared
from planted_leaks.rewordings import suite, write_files
from planted_leaks.served import Served, compared, served
from proctor.cli.audits.status_lines import EXIT_CODES
from proctor.domain.errors import StackError
from proctor.domain.manifest import AuditManifest
from proctor.domain.trial import Outcome, Shard
from proctor.localstack.ports import free_ports
from proctor.localstack.real_models import RealModels
from proctor.router.audit import view
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.runtime.artifacts.store import get_model
from proctor.runtime.records.store import Records
from proctor.runtime.settings import Settings
from proctor.scorer.grading.loading import grade_answered
from proctor.scorer.grading.targets import load_targets
from real_models.serving import Ports, running, vllm

#: Tokens of the longest prompt with its answer, at most; a model's own limit would ask for a larger cache.
_LONGEST: Final = "2048"
_WEIGHTS: Final = "model.safetensors"


@contextmanager
def local_stack(home: Path) -> Iterator[None]:
    """A stack with nothing but what an audit of an OpenAI-compatible endpoint takes, for the time of a block."""
    try:
        _proctor("up", "--home", str(home), "--no-triton", "--no-metrics", "--no-gateway")
        yield
    finally:
        _proctor("down", "--home", str(home))


def audit_served(
    cell: Cell, weights: Path, ready: Prepared, stored: Grades, home: Path, folder: Path, *, dtype: str
) -> Served:
    """Serve the weights of a cell, audit them, and hold every grade against the stored one.

    Args:
        cell: whose weights they are.
        weights: their folder, as transformers saves it.
        ready: the benchmark and its admitted rewordings.
        stored: what the model was graded in the process that trained it.
        home: of the stack that audits.
        folder: for the suite and the server's log.
        dtype: in which vLLM computes.

    Raises:
        StackError: the server or the audit does not end well.
        LookupError: the audit asked other prompts than the study.
    """
    ports = Ports(*free_ports(3, Random()))
    options = {"--dtype": dtype, "--max-model-len": _LONGEST}
    command = vllm(RealModels.here(), ports, weights=weights, served_name=cell.name, options=options)
    digest = f"sha256:{weights_digest(weights)}"
    folder.mkdir(parents=True, exist_ok=True)
    with running(command, folder / f"{cell.name}-vllm.log"):
        version = httpx.get(command.ready.replace("/health", "/version"), trust_env=False).json()["version"]
        written = _write_suite(cell, ready, folder / cell.name, url=command.url, digest=digest)
        result = _audit(written, home)
    found = Asking(*ready).grades_of(_outcomes(Path(result["report_path"]).parent.name, home))
    return served(
        cell, result, weights=digest, server=f"vLLM {version} on a processor, {dtype}", arms=compared(found, stored)
    )


def weights_digest(folder: Path) -> str:
    """SHA-256 of the weights in a folder."""
    with (folder / _WEIGHTS).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def suite_of(cell: Cell, ready: Prepared, *, url: str, digest: str) -> dict[str, Any]:
    """The suite that corresponds to a cell: the same items, rewordings, template, decoding, extractor and limits."""
    model = {
        "model_id": f"study/{cell.name}",
        "model_version": digest,
        "endpoint": url,
        "served_name": cell.name,
    }
    document = suite(ready.benchmark, model=model)
    # The stored decision is by the wording alone.
    del document["fresh_config"]
    return document


def _write_suite(cell: Cell, ready: Prepared, folder: Path, *, url: str, digest: str) -> Path:
    write_files(ready.benchmark, folder)
    path = folder / "suite.json"
    path.write_text(json.dumps(suite_of(cell, ready, url=url, digest=digest), indent=1), encoding="utf-8")
    return path


def _audit(path: Path, home: Path) -> Mapping[str, Any]:
    argv = [sys.executable, "-m", "proctor", "audit", "run", str(path), "--home", str(home), "--format", "json"]
    ran = subprocess.run(argv, capture_output=True, text=True, env=_environment())
    if ran.returncode not in EXIT_CODES.values():
        raise StackError(f"the audit by {path} ended with {ran.returncode}: {ran.stderr.strip()}")
    found: Mapping[str, Any] = json.loads(ran.stdout)
    return found


def _outcomes(audit_id: str, home: Path) -> Mapping[tuple[str, str], Outcome | None]:
    """Item and prompt → the grade of the audit's answer; None where none came."""
    settings = Settings(home=home)
    records, store = Records(settings.records_url), LocalArtifacts(Path(settings.artifacts))
    try:
        digest = view(records, audit_id).inputs.manifest
    finally:
        records.close()
    if digest is None:
        raise StackError(f"audit {audit_id} has not ended")
    manifest = get_model(store, digest, AuditManifest)
    targets = load_targets(store, manifest.items, manifest.suite.metric.extractor)
    found = dict[tuple[str, str], Outcome | None]()
    for answered in manifest.answered:
        trials = get_model(store, answered.shard, Shard).trials
        outcomes = grade_answered(store, answered, targets).outcomes
        found |= {(trial.item_id, trial.prompt): one for trial, one in zip(trials, outcomes, strict=True)}
    for dead in manifest.dead:
        found |= {(trial.item_id, trial.prompt): None for trial in get_model(store, dead.shard, Shard).trials}
    return found


def _proctor(*arguments: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "proctor", *arguments], capture_output=True, text=True, env=_environment()
    )
    if ran.returncode != 0:
        raise StackError(f"proctor {arguments[0]} ended with {ran.returncode}: {ran.stderr.strip()}")


def _environment() -> dict[str, str]:
    """This process' own, without what is meant for another stack."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PROCTOR_")}
