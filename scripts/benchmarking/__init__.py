"""What the benchmarks share: the machine's name, medians, claims, and how they are printed."""
