"""Stubs that scripts/generate_protos.py makes of protos/proctor/v1/audit.proto: edit that file, not these."""
