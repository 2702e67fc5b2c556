"""The noise channel: one clean router against r noisy ones."""
