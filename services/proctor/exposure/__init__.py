"""Corpus overlap: which items of a benchmark stand in training data, by a named policy."""
