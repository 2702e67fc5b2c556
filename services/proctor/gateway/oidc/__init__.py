"""Callers with tokens of an OpenID Connect issuer."""
