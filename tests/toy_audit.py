"""An audit that uses every recipe of docs/extending.md at once, and whose result is known beforehand.

The recipe's backend says everything backwards. So it is a model that can read numbers from right to left, and nothing
else: it knows those of the items that are from before the end of the training data, in whatever words, and no other.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

from tests.installed_plugins import install
from tests.recipes import recipes
from tests.support import REPOSITORY

#: So many that the gate's own limits are kept, and the toy channels alone have the last word.
N_ITEMS: Final = 80


def items() -> list[dict[str, Any]]:
    """What the model knows, by turns with what it does not."""
    return [_item(n, 1001 + 12 * n, known=n % 2 == 0) for n in range(N_ITEMS)]


def _item(n: int, number: int, *, known: bool) -> dict[str, Any]:
    return {
        "id": f"q{n}",
        "question": f"What is {number} written from right to left?",
        "answer": str(number)[::-1] if known else "12345",
        "metadata": {"published": "2024-05-01" if known else "2024-09-01"},
    }


def suite(**changes: Any) -> dict[str, Any]:
    """A suite that names a strategy, a backend, a stage and two channels of the recipes."""
    return {
        "audit_suite_id": "toys",
        "model_config": {
            "model_id": "toy/backwards",
            "model_version": "sha256:" + "5" * 64,
            "endpoint": "http://127.0.0.1:9/v1",
            "backend": "backwards",
        },
        "dataset_config": {"benchmark_name": "mirrored-numbers", "path": "items.jsonl", "sample_size": N_ITEMS},
        "perturbation_config": {
            "perturbation_strategy": "polite",
            "num_variants_per_item": 2,
            "min_semantic_distance": 0.0,
            "max_semantic_distance": 1.0,
            "max_token_overlap": 1.0,
        },
        "protocol_config": {"stages": ["self_report"]},
        "metric_config": {"extractor": "numeric"},
        "scoring_config": {"required_channels": ["perturbation", "protocol", "published", "admitted"]},
        **changes,
    }


def write_suite(folder: Path, **changes: Any) -> Path:
    """Lay the suite and its items into a folder; returns the suite's file."""
    (folder / "items.jsonl").write_text("".join(f"{json.dumps(item)}\n" for item in items()))
    path = folder / "suite.json"
    path.write_text(json.dumps(suite(**changes)))
    return path


def install_recipes(folder: Path) -> Path:
    """The distribution `toy 1.2` with all that the guide has; returns what is to be on the path."""
    parts = recipes()
    return install(folder, parts.modules, parts.entry_points)


def path_with(site: Path) -> str:
    """`PYTHONPATH` of a process in which the distributions of a folder are installed."""
    return os.pathsep.join(map(str, (site, REPOSITORY / "services")))
