"""Two runs on the same items: tests, intervals, equivalence and sample sizes."""
