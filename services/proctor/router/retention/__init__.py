"""Forgetting prompts and completions that are old."""
