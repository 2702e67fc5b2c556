"""Searching training data for a benchmark's items, and the page that shows what was found."""
