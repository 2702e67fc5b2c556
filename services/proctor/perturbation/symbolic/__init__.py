"""Fresh items: the numbers of a worked problem resampled, and its answer computed again."""
