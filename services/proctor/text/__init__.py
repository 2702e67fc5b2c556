"""Text as evidence: normalisation, prompts, surface distance and answer invariants. Pure."""
