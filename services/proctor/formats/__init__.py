"""Readers of datasets and of ready rewordings."""
