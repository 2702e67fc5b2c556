"""Statistics: one module a channel, shared estimators beside them. Pure functions over arrays, no I/O."""
