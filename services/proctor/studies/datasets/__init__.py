"""Evaluations of one's own: items made from templates or taken from annotated files, graded, and rotated."""
