"""The fresh channel: the benchmark against freshly made items and a panel of reference models."""
