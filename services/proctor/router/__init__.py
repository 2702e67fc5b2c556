"""Owns an audit's state and dispatches its work; never runs a model."""
