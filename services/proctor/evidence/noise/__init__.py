"""The noise channel: a clean router against noisy ones."""
