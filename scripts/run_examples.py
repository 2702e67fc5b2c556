"""Run the worked examples of `docs/examples`, and show or write what each prints.

Every example ends in a comment block with its output, so that a reader sees it without running anything; a test holds
the block to what the example prints.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import textwrap
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "examples"
MARK = "# Prints:\n"


def examples() -> list[Path]:
    """The examples, in order."""
    return sorted(FOLDER.glob("[0-9][0-9]_*.py"))


def printed(example: Path) -> str:
    """What an example prints.

    Raises:
        subprocess.CalledProcessError: where it fails.
    """
    # From its own folder, as a reader would; warnings are errors, as in the tests.
    run = subprocess.run(
        [sys.executable, "-W", "error", example.name],
        cwd=example.parent,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        check=True,
    )
    return run.stdout


def as_block(output: str) -> str:
    """Output as the comment block at an example's end, long lines wrapped."""
    lines = (part for line in output.splitlines() for part in textwrap.wrap(line, 118, subsequent_indent="  ") or [""])
    return MARK + "".join(f"# {line}".rstrip() + "\n" for line in lines)


def block_of(example: Path) -> str:
    """The block that an example ends in; empty without one."""
    _, mark, rest = example.read_text(encoding="utf-8").partition(MARK)
    return mark + rest


def main() -> None:
    """Run the examples."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="Write each example's output into its last block.")
    options = parser.parse_args()
    for example in examples():
        output = printed(example)
        print(f"== {example.name}\n{output}")
        if options.write:
            code = example.read_text(encoding="utf-8").partition(MARK)[0].rstrip("\n")
            example.write_text(f"{code}\n\n{as_block(output)}", encoding="utf-8")


if __name__ == "__main__":
    main()
