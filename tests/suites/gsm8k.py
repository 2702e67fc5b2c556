"""Suites over the first items of the real GSM8K."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support import shared_data


def gsm8k_suite(folder: Path, endpoint: str, *, items: int, perturbation: Mapping[str, Any], **sections: Any) -> Path:
    """Write `suite.json`: the first items, one variant each, a wide window, and the sections that are given."""
    suite = {
        "audit_suite_id": "gsm8k-replayed",
        "model_config": {
            "model_id": "tests/replayed-qwen2.5-1.5b",
            "model_version": "sha256:" + "5" * 64,
            "endpoint": endpoint,
        },
        "dataset_config": {
            "benchmark_name": "gsm8k",
            "path": str(shared_data() / "gsm8k" / "test.jsonl"),
            "sample_size": items,
            "selection": "first",
        },
        "perturbation_config": {
            "num_variants_per_item": 1,
            "min_semantic_distance": 0.01,
            "max_semantic_distance": 0.45,
            **perturbation,
        },
        "decoding_config": {"max_tokens": 768},
        "metric_config": {"extractor": "numeric"},
        **sections,
    }
    path = folder / "suite.json"
    path.write_text(json.dumps(suite))
    return path
