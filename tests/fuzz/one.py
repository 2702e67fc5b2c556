"""`python -m tests.fuzz.one TARGET CORPUS [libFuzzer options]`: one parser under a coverage-guided fuzzer.

A process of its own, because libFuzzer ends it at the first finding: an exception that the parser does not document, an
input over the time limit, or memory over the limit.
"""

from __future__ import annotations

import sys

import atheris
from atheris.import_hook import instrument_imports


def main() -> None:
    """Fuzz until the options say stop."""
    name, *options = sys.argv[1:]
    # What is imported here is what coverage guides by: Proctor's code, and the standard library's parsers in Python.
    with instrument_imports(include=["proctor", "json", "csv", "zipfile"]):
        from tests.fuzz.targets.every import TARGETS

        target = TARGETS[name]

    # What is imported with the first input would count against its time.
    for seed in target.seeds():
        target.try_out(seed)

    def feed(data: bytes) -> None:
        target.try_out(data)

    atheris.Setup([sys.argv[0], *options], feed)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
