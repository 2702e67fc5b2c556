"""Audits that stop when the evidence decides: when to look, how much error each look may spend, and what it says."""
