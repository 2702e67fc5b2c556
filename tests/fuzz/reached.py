"""`python -m tests.fuzz.reached TARGET CORPUS`: how many lines of a parser's modules a corpus reaches, as JSON."""

from __future__ import annotations

import ast
import importlib
import json
import sys
from pathlib import Path

import coverage


def main() -> None:
    """Feed every input once, and print reached and all lines. An input that is a finding counts like any other."""
    from tests.fuzz.targets.every import TARGETS

    target = TARGETS[sys.argv[1]]
    files = [str(importlib.import_module(name).__file__) for name in target.modules]
    meter = coverage.Coverage(data_file=None, include=files)
    meter.start()
    for path in sorted(Path(sys.argv[2]).iterdir()):
        try:
            target.try_out(path.read_bytes())
        except Exception:
            continue
    meter.stop()
    reached = lines = 0
    for file in files:
        _, statements, _, missing, _ = meter.analysis2(file)
        inside = _inside_functions(Path(file))
        lines += len(inside & set(statements))
        reached += len(inside & set(statements) - set(missing))
    json.dump({"reached": reached, "lines": lines}, sys.stdout)


def _inside_functions(file: Path) -> set[int]:
    """Lines of function bodies: those of a module run when it is imported, whatever is fed."""
    functions = (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef))
    return {
        line
        for node in functions
        for statement in node.body
        for line in range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
    }


if __name__ == "__main__":
    main()
