"""Turns completions into evidence, a decision and a report."""
