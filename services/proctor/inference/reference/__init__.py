"""The reference models, in process and inside Triton."""
