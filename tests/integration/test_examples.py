from __future__ import annotations

from pathlib import Path

import pytest

from make_example_logs import FOLDER, files
from run_examples import as_block, block_of, examples, printed


def test_there_are_ten_worked_examples() -> None:
    assert len(examples()) == 10


@pytest.mark.parametrize("example", examples(), ids=lambda path: path.stem)
def test_an_example_prints_what_it_says(example: Path) -> None:
    assert as_block(printed(example)) == block_of(example)


def test_the_example_logs_are_those_that_the_seed_gives() -> None:
    for name, text in files(0).items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, name
