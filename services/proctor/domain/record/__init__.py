"""The record of decisions: entries, the chain that they make, and their attestations. Pure."""
