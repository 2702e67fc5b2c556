"""Programs by their tokens: as `tokenize` has them, the same however they are written down, and in whatever text."""

from __future__ import annotations

import io
import json
import sys
import tokenize
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.cli.main import main
from proctor.text.code_tokens import Language, code_tokens, program_of
from tests.unit.exposure.scans import write_corpus

MODULES = [
    "ast", "bisect", "calendar", "cmd", "colorsys", "contextlib", "csv", "dataclasses", "difflib", "fractions",
    "functools", "glob", "heapq", "inspect", "json.decoder", "numbers", "queue", "random", "shlex", "statistics",
    "string", "tempfile", "textwrap", "typing", "zipfile",
]  # fmt: skip
PROGRAM = '''def running_mean(values, size=3):
    """Mean of the last few values."""
    found = []
    for at in range(len(values)):
        window = values[max(0, at - size + 1) : at + 1]
        found.append(sum(window) / len(window))  # never empty
    return found
'''
OTHERWISE = """def running_mean(values,size = 3):
        # of the last few values
        found=[]
        for at in range( len(values) ):
                window = values[ max(0,at-size+1):at+1 ]

                found.append( sum(window)/len(window) )
        return found
"""
JAVA = "static int add(int a, int b) { // adds\n    int sum = a + b; /* of both */\n    return sum;\n}"


def forms(text: str, language: Language = Language.PYTHON) -> list[str]:
    return [token.text for token in code_tokens(text, language)]


def by_tokenize(source: str) -> list[str]:
    """The tokens of a program, without strings that are a statement each."""
    left_out = {tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER}
    found: list[str] = []
    statement: list[tokenize.TokenInfo] = []
    for token in tokenize.tokenize(io.BytesIO(source.encode()).readline):
        if token.type == tokenize.NEWLINE:
            if [one.type for one in statement] != [tokenize.STRING]:
                found += [one.string for one in statement]
            statement = []
        elif token.type not in left_out:
            statement.append(token)
    return found


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="an f-string is several tokens since Python 3.12")
@pytest.mark.parametrize("module", MODULES)
def test_a_python_program_has_the_tokens_that_tokenize_has(module: str) -> None:
    spec = find_spec(module)
    assert spec is not None
    source = Path(str(spec.origin)).read_text("utf-8")
    assert forms(source) == by_tokenize(source)


def test_comments_spaces_and_docstrings_make_no_difference_and_anything_else_does() -> None:
    assert forms(PROGRAM) == forms(OTHERWISE)
    assert forms(PROGRAM) != forms(PROGRAM.replace("+ 1", "+ 2"))
    assert forms(PROGRAM) != forms(PROGRAM.replace("values", "Values"))
    assert forms('x = (\n  "one"\n  "two"\n)') == ["x", "=", "(", '"one"', '"two"', ")"]


def test_another_language_is_read_by_a_lexer_of_c_s_family() -> None:
    plain = "static int add(int a,int b){int sum=a+b;return sum;}"
    assert forms(JAVA, Language.OTHER) == forms(plain, Language.OTHER)
    assert forms("a >>>= b ?? c?.d", Language.OTHER) == ["a", ">>>=", "b", "??", "c", "?.", "d"]


@pytest.mark.parametrize(
    ("answer", "language"),
    [
        (PROGRAM, Language.PYTHON),
        (f"```python\n{PROGRAM}```", Language.PYTHON),
        ("    return sorted(set(values), key=len)\n", Language.PYTHON),
        (JAVA, Language.OTHER),
        ("She makes 18 dollars every day, because 16 - 3 - 4 = 9 eggs are left.", None),
        ("", None),
        ("(" * 5_000, None),
        ("\0", None),
    ],
)
def test_what_a_program_is(answer: str, language: Language | None) -> None:
    found = program_of(answer)
    assert (found and found[1]) == language


PIECES = [*"ab'\"\\\n#/*`{}();=+ .1", '"""', "'''"]


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join), st.sampled_from(Language))
@settings(max_examples=300)
def test_tokens_stand_in_the_text_in_order(text: str, language: Language) -> None:
    at = 0
    for token in code_tokens(text, language):
        assert at <= token.start < token.end
        assert text[token.start : token.end] == token.text
        at = token.end


@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", ['"""', '\\"""', "/*", "/* *", "'", '"\\', "a.", "1e", "#", "``", '"a" ', "f'"])
def test_no_text_takes_more_time_than_its_length(piece: str) -> None:
    for language in Language:
        code_tokens(piece * (1_000_000 // len(piece)), language)


def scan(tmp_path: Path, rows: list[dict[str, Any]], *arguments: str) -> int:
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return main(["exposure", "scan", "--items", str(tmp_path / "items.jsonl"), "--policy", "code_tokens", *arguments])


ITEMS = [
    {"task_id": "Mean/0", "prompt": "Write a running mean.", "canonical_solution": PROGRAM},
    {"task_id": "Sum/1", "prompt": "Add.", "canonical_solution": "    return a + b\n"},
    {"task_id": "Java/2", "prompt": "Add in Java.", "canonical_solution": JAVA},
    {"task_id": "Words/3", "prompt": "Why is it so?", "answer": "Because nobody had told them of it in time."},
]


def test_a_program_is_found_in_a_document_whatever_stands_around_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    around = f"It's what we use:\n\n```python\nimport os\n{OTHERWISE}\nprint(running_mean([1]))\n```\nIt isn't fast."
    corpus = write_corpus(tmp_path / "c.jsonl", ["nothing", around, around, JAVA.replace(" // adds", "")])
    assert scan(tmp_path, ITEMS, "--corpus", f"sft={corpus}", "--format", "json") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["n_exposed"], report["n_unscorable"], report["documents"]) == (2, 2, 4)
    mean, short, java, words = report["items"]
    assert (mean["verdict"], mean["spans"][0]["document"], java["spans"][0]["document"]) == ("invalid_evidence", 2, 4)
    span = mean["spans"][0]
    assert around.encode()[span["offset"] :].startswith(span["document_text"].encode())
    assert span["document_text"] == OTHERWISE.strip()
    assert (short["verdict"], words["verdict"]) == ("unscorable", "unscorable")


def test_a_program_with_another_number_is_not_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = write_corpus(tmp_path / "c.jsonl", [PROGRAM.replace("size=3", "size=4"), PROGRAM[: len(PROGRAM) - 20]])
    assert scan(tmp_path, ITEMS, "--corpus", str(corpus), "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["n_exposed"] == 0


def test_a_program_is_not_found_over_two_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head, tail = PROGRAM[:150], PROGRAM[150:]
    (tmp_path / "c.jsonl").write_text(json.dumps({"a": head, "b": tail}) + "\n" + json.dumps({"a": "", "b": PROGRAM}))
    assert scan(tmp_path, ITEMS, "--corpus", str(tmp_path / "c.jsonl"), "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)["items"][0]["spans"]
    assert [span["document"] for span in found] == [2]
    assert found[0]["offset"] == 1


@pytest.mark.parametrize("option", [("--ngram", "5"), ("--without-markup",)])
def test_what_the_policy_does_not_heed_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: tuple[str, ...]
) -> None:
    corpus = write_corpus(tmp_path / "c.jsonl", ["nothing"])
    assert scan(tmp_path, ITEMS, "--corpus", str(corpus), *option) == 2
    assert "the policy code_tokens compares tokens" in capsys.readouterr().err
