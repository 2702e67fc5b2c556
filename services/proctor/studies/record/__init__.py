"""Verifying and exporting the record of decisions."""
