"""Documents of a corpus: cut into sentences, and read as programs."""

from __future__ import annotations

from itertools import pairwise

from proctor.exposure.near.matches import plain
from proctor.exposure.near.minhash import shingles
from proctor.exposure.near.sentences import form_of, sentences
from proctor.text.code_tokens import Language, code_tokens, program_of
from tests.fuzz.target import Target


def _feed_sentences(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    found = sentences(text)
    for one in found:
        assert text[one.start : one.end].strip()
        shingles(form_of(text[one.start : one.end]))
    assert all(one.end <= other.start for one, other in pairwise(found))
    plain(text)


def _feed_code(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    for language in Language:
        tokens = code_tokens(text, language)
        assert all(text[token.start : token.end] == token.text for token in tokens)
        assert all(one.end <= other.start for one, other in pairwise(tokens))
    program_of(text)


TARGETS = (
    Target(
        "corpus_sentences",
        ("proctor.exposure.near.sentences",),
        _feed_sentences,
        lambda: [b"He had 3 eggs. She had \"four.\" Who had more?\n\nNobody\xffknows, Mr. Smith said", b"a b " * 200],
        words=(b". ", b"?\n", b"\n\n", b"\xff", b"```", b"**", b"$5$", b"](", b"<a>", "\u3002".encode()),
    ),
    Target(
        "corpus_programs",
        ("proctor.text.code_tokens",),
        _feed_code,
        lambda: [
            b'def f(a, b=1):\n    """Doc."""\n    return a**b != 0x1F  # no\n',
            b"int f() { return a->b; /* no */ } // x", b"```python\nprint('it\\'s')\n```",
        ],
        words=(b'"""', b"'''", b"/*", b"*/", b"//", b"#", b"\\\n", b"rb'", b"1e-", b"```\n", b"{", b";\n"),
        max_bytes=4096,
    ),
)  # fmt: skip
