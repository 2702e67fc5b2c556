"""The backend for Triton over gRPC."""
