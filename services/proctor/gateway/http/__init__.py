"""Audits over HTTP, and the webhooks of registries: the same front as gRPC's, in JSON."""
