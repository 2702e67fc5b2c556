"""The reference models' benchmark in two files: what is audited, and control items, of which none has leaked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from tests.support import REPOSITORY

TRITON: Final = REPOSITORY / "services" / "triton"
N_CONTROL: Final = 200


def lay_down(folder: Path) -> tuple[int, int]:
    """Both halves of the benchmark, parted anew: control items did not leak to anybody. Returns their numbers."""
    leaked = set(json.loads((TRITON / "models" / "reference-leaked" / "leaked_items.json").read_text())["item_ids"])
    halves = [TRITON / "reworded" / name for name in ("benchmark.jsonl", "fresh.jsonl")]
    rows = [json.loads(line) for half in halves for line in half.read_text("utf-8").splitlines()]
    control = [row for row in rows if row["item_id"] not in leaked][:N_CONTROL]
    ids = {row["item_id"] for row in control}
    benchmark = [row for row in rows if row["item_id"] not in ids]
    for name, items in (("benchmark", benchmark), ("control", control)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in items))
    return len(benchmark), len(control)
