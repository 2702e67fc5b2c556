"""Suites as tasks of other harnesses: prompts to ask there, so that the logs can be taken back."""
