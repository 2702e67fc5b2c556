"""Inputs for the short run: a target's seeds, changed in a few places as hypothesis draws it."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

#: What breaks parsers: ends of ranges, ends of texts, marks that change how the rest is read, halves of characters.
ODD = (
    b"", b"\x00", b"\n", b"\r", b'"', b"'", b"\\", b"\\ud800", b"\\u0000", b"{", b"}", b"[", b"]", b",", b":", b"%",
    b'"k":1,', b"null", b"true", b"NaN", b"-Infinity", b"1e999", b"1e-999", b"-1", b"-0.0", b"0", b"9007199254740993",
    b"18446744073709551616", b"1" * 400, b"0." + b"0" * 400 + b"1", b"\xff", b"\xc3", b"\xef\xbb\xbf", b"\xed\xa0\x80",
    "\u202e".encode(), "\u2028".encode(), "\u0661".encode(), "\U0001f469\u200d\U0001f4bb".encode(),
    b"{" * 200, b"[" * 2000, b" " * 2000, b"\n" * 500, b"trillion " * 60, b"a," * 200,
    b"../../etc/passwd", b"{question}", b"=cmd|' /C calc'!A0",
)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn, seeds: Sequence[bytes], words: Sequence[bytes] = (), max_bytes: int = 1 << 14) -> bytes:
    """A seed with up to six edits: a slice put in, taken out, doubled or moved, a byte turned, another seed's rest."""
    data = draw(st.sampled_from(list(seeds)))
    pieces = st.one_of(st.sampled_from([*ODD, *words]), st.binary(max_size=8))
    for _ in range(draw(st.integers(0, 6))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 40)))
        how = draw(st.integers(0, 5))
        if how == 0:
            data = data[:start] + draw(pieces) + data[start:]
        elif how == 1:
            data = data[:start] + data[end:]
        elif how == 2:
            data = data[:start] + data[start:end] * draw(st.integers(2, 30)) + data[end:]
        elif how == 3:
            data = data[:start] + draw(pieces) + data[end:]
        elif how == 4 and start < len(data):
            data = data[:start] + bytes([data[start] ^ (1 << draw(st.integers(0, 7)))]) + data[start + 1 :]
        else:
            other = draw(st.sampled_from(list(seeds)))
            data = data[:start] + other[draw(st.integers(0, len(other))) :]
    return data[:max_bytes]
