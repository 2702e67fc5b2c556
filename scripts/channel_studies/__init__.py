"""Simulated audits behind two paragraphs of docs/evidence.md. One study a module; each gives cells to simulate."""
