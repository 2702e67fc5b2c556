"""Where each thing of the real model lies."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from proctor.localstack.real_models import MODEL, Part, RealModels
from proctor.localstack.triton_server import python_version


class Places(NamedTuple):
    """Files and folders below the folder of all of it."""

    root: Path

    @classmethod
    def of(cls, models: RealModels) -> Places:
        """Those of what is set up there."""
        return cls(models.root)

    @property
    def environment(self) -> Path:
        """The environment with vLLM, llama.cpp and transformers."""
        return self.root / Part.ENVIRONMENT

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.environment / "bin" / "python"

    @property
    def packages(self) -> Path:
        """Where its packages are."""
        return self.environment / "lib" / f"python{python_version()}" / "site-packages"

    @property
    def quantised(self) -> Path:
        """The model for llama.cpp."""
        return self.root / Part.WEIGHTS / f"{MODEL}.gguf"

    @property
    def weights(self) -> Path:
        """The model for vLLM: a folder with its configuration, tokenizer and chat template."""
        return self.root / Part.WEIGHTS / MODEL

    @property
    def repository(self) -> Path:
        """Triton's model repository."""
        return self.root / Part.BACKEND / "models"

    @property
    def backends(self) -> Path:
        """Triton's backend directory."""
        return self.root / Part.BACKEND / "backends"

    @property
    def stub_environment(self) -> Path:
        """The environment of the backend's stubs."""
        return self.root / Part.BACKEND / "environment"
