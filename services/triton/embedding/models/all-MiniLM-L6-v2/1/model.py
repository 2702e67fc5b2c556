"""Triton's entry to the sentence encoder."""

from proctor.perturbation.triton_embedding.model import TritonPythonModel

__all__ = ["TritonPythonModel"]
