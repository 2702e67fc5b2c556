"""The protocol channel and what belongs to it: truncation, the self-consistency lottery, conformal intervals."""
