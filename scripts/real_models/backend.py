"""Triton's vLLM backend, for the Triton that Proctor sets up and the vLLM beside it.

The backend is written for the vLLM of its own image. Two imports have moved since, and the stubs of that Triton need a
numpy below 2: so they get an environment with it, which is extended by vLLM's.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import httpx

from proctor.inference.vllm_repository import write_vllm_model
from proctor.localstack.real_models import SERVED_NAME, Part, RealModels
from proctor.localstack.triton_server import find, obstacle, python_version, stub_environment
from real_models.places import Places
from real_models.steps import REPOSITORY, SetupError, Step

COMMIT: Final = "8de0c148bda1da25de1e05ffaaf67116dacc7264"
_SOURCE: Final = f"https://raw.githubusercontent.com/triton-inference-server/vllm_backend/{COMMIT}"
#: Where the files lie already, instead of at GitHub.
FOLDER_VARIABLE: Final = "PROCTOR_VLLM_BACKEND"
_BESIDE: Final = REPOSITORY.parent / "shared" / "third_party" / "vllm_backend"
#: Its files, and what each has to be.
FILES: Final = {
    "LICENSE": "d3bdb7c086a4fe197bb00d1f7c19db90eb317d6c6540998995db089fe55d840e",
    "src/model.py": "fbebf39948f101a50f3bec8e95585e90725892369c4e7d557524299cc63f7073",
    "src/utils/metrics.py": "5a84f9b261606f154c710d9ef090df134d884ca62430a3ce57a16c6a62359778",
    "src/utils/request.py": "79084e510ea35209442ad8e38055ef13a0332a0c0ad5b9b99ecb5549770d0fb5",
    "src/utils/vllm_backend_utils.py": "5abd8534d2ee40c6ddb2122bf49266895cd2d56c2baab785c83f73587bd28294",
}
#: By file: a line as it is, and as the vLLM that is set up has it.
PATCHES: Final = {
    "src/utils/metrics.py": (
        "from vllm.v1.metrics.loggers import StatLoggerBase, build_1_2_5_buckets\n",
        "from vllm.v1.metrics.buckets import build_1_2_5_buckets\nfrom vllm.v1.metrics.loggers import StatLoggerBase\n",
    ),
    "src/utils/request.py": (
        "from vllm.inputs.data import TokensPrompt\n",
        "from vllm.inputs import TokensPrompt\n",
    ),
}
_TIMEOUT_S: Final = 30


def step(models: RealModels) -> Step:
    """The third step; it needs the others, and Triton."""
    installation = find()
    made_of = {
        "commit": COMMIT,
        "patches": hashlib.sha256(repr(sorted(PATCHES.items())).encode()).hexdigest()[:16],
        "triton": installation.version if installation is not None else "",
        "weights": _weights(models),
    }
    return Step(Part.BACKEND, "Triton's vLLM backend", made_of, _make)


def backend_file(name: str, folder: Path | None) -> bytes:
    """One of the backend's files, from a folder or from GitHub, and no other than the known one.

    Raises:
        SetupError: it cannot be had, or is another.
    """
    try:
        if folder is not None:
            data = (folder / name).read_bytes()
        else:
            data = httpx.get(f"{_SOURCE}/{name}", timeout=_TIMEOUT_S).raise_for_status().content
    except (OSError, httpx.HTTPError) as error:
        where = folder or _SOURCE
        raise SetupError(
            f"{name} of triton-inference-server/vllm_backend cannot be had from {where}: {error}; where GitHub cannot "
            f"be reached, {FOLDER_VARIABLE} names a folder with that repository at {COMMIT[:8]}"
        ) from None
    if hashlib.sha256(data).hexdigest() != FILES[name]:
        raise SetupError(f"{name} from {folder or _SOURCE} is not that of {COMMIT[:8]}; nothing was made of it")
    return data


def patched(name: str, text: str) -> str:
    """A file of the backend as the vLLM that is set up needs it.

    Raises:
        SetupError: it does not hold what is to be changed.
    """
    if name not in PATCHES:
        return text
    before, after = PATCHES[name]
    if text.count(before) != 1:
        raise SetupError(f"{name} does not hold {before.strip()!r} once, so it cannot be patched")
    return text.replace(before, after)


def given_folder() -> Path | None:
    """Where the backend's files lie; None where they are to be fetched."""
    if named := os.environ.get(FOLDER_VARIABLE):
        return Path(named)
    return _BESIDE if _BESIDE.is_dir() else None


def _make(models: RealModels) -> Mapping[str, str]:
    installation = find()
    if installation is None or installation.root is None:
        raise SetupError(f"the vLLM backend needs the Triton that Proctor sets up: {obstacle() or 'another is named'}")
    folder = given_folder()
    files = {name: backend_file(name, folder) for name in FILES}
    target = models.root / Part.BACKEND
    for one in target.iterdir():
        shutil.rmtree(one)
    places = Places.of(models)
    _write_backends(places.backends, files, installation.root)
    _make_environment(places.stub_environment, stub_environment(installation.root), places.packages)
    write_vllm_model(target, SERVED_NAME, weights=str(places.weights), digest=_weights(models), gpu=False)
    return {}


def _weights(models: RealModels) -> str:
    """The digest of the weights that the model repository names."""
    return (models.installed(Part.WEIGHTS) or {}).get("weights", "")


def _write_backends(backends: Path, files: Mapping[str, bytes], triton: Path) -> None:
    for name, data in files.items():
        path = backends / "vllm" / name.removeprefix("src/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(patched(name, data.decode("utf-8")), "utf-8")
    python = backends / "python"
    python.mkdir()
    server = triton / "pytriton" / "tritonserver"
    # Copied: Triton looks for the stub beside the library's real place, where there is another backend's.
    shutil.copy2(server / "backends/python/libtriton_python.so", python)
    for file in (
        server / "backends/python/triton_python_backend_utils.py",
        # Linked: it finds its own libraries from its real place.
        server / "python_backend_stubs" / python_version() / "triton_python_backend_stub",
    ):
        (python / file.name).symlink_to(file)


def _make_environment(target: Path, triton: Path, vllm: Path) -> None:
    """numpy as Triton's own stubs have it, and behind it all that vLLM has."""
    venv.EnvBuilder(symlinks=True, with_pip=False).create(target)
    packages = f"lib/python{python_version()}/site-packages"
    for found in (triton / packages).glob("numpy*"):
        shutil.copytree(found, target / packages / found.name)
    # The stub's Python is embedded and begins in the locale C, in which torch's own files cannot be read.
    lines = ('import locale; locale.setlocale(locale.LC_ALL, "C.UTF-8")', str(vllm))
    (target / packages / "vllm.pth").write_text("\n".join(lines) + "\n", "utf-8")
