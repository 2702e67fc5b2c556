"""Strategies that ask a model for their rewordings."""
