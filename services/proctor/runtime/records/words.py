"""Words as any database keeps them."""

from __future__ import annotations

#: Characters of the words that a row keeps of what went wrong. An endpoint may be quoted in them.
MAX_DETAIL_CHARACTERS = 4_000


def storable(text: str) -> str:
    """The text without a NUL or half of a surrogate pair, and no more of it than a person reads."""
    whole = text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\N{REPLACEMENT CHARACTER}")
    return whole if len(whole) <= MAX_DETAIL_CHARACTERS else whole[: MAX_DETAIL_CHARACTERS - 1] + "…"
