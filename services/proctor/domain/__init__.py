"""Vocabulary as typed, immutable models. No I/O."""
