"""Corpora that are not on this machine: in buckets, and on the Hugging Face Hub."""
