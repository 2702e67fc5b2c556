"""From answers to graded rows, ahead of the audit's end or at it."""
