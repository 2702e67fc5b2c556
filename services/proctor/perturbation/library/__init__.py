"""The variant library: what was made once, how it is exchanged, and what a strategy costs a clean model."""
