"""Triton's entry to a reference model."""

from proctor.inference.reference.triton_model import TritonPythonModel

__all__ = ["TritonPythonModel"]
