"""The files that training leaves: benchmark, weights, ground truth, figures and model card."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from safetensors.torch import save

from proctor.inference.reference.model import (
    VOCABULARY_NAME,
    WEIGHTS_NAME,
    Network,
    ReferenceModel,
    Vocabulary,
    weights_digest,
)
from reference_models.evaluation import Figures
from reference_models.facts import BENCHMARK, World, wordings_document
from reference_models.halves import Halves
from reference_models.model_card import model_card
from reference_models.training import Trained
from reference_models.wordings import VERSION

CLEAN: Final = "reference-clean"
LEAKED: Final = "reference-leaked"
REWORDED: Final = "reference-reworded"


@dataclass(frozen=True)
class Result:
    """A trained model with what it was measured to know."""

    trained: Trained
    figures: Figures


def write_benchmark(folder: Path, world: World) -> None:
    """`proctor-facts/`: the items and the wordings of their variants."""
    rows = "".join(json.dumps(item.row(), ensure_ascii=False) + "\n" for item in world.items)
    _write(folder / BENCHMARK / "items.jsonl", rows.encode())
    _write_json(folder / BENCHMARK / "wordings.json", wordings_document())


def write_model(folder: Path, name: str, network: Network, vocabulary: Vocabulary) -> ReferenceModel:
    """`models/<name>/1/`: weights and vocabulary; returns the model as read back from there."""
    version = folder / "models" / name / "1"
    weights = {key: value.detach().contiguous() for key, value in network.state_dict().items()}
    _write(version / WEIGHTS_NAME, save(weights))
    _write_json(version / VOCABULARY_NAME, {"shape": network.shape._asdict(), "tokens": vocabulary.tokens})
    return ReferenceModel.load(version)


def write_truth(folder: Path, world: World, seed: int) -> None:
    """`leaked_items.json`: which items the leaked model memorised, and which no model has ever met."""
    truth = {
        "benchmark": BENCHMARK,
        "benchmark_version": VERSION,
        "seed": seed,
        "counts": {
            "items": len(world.items),
            "known": len(world.known),
            "leaked": len(world.leaked),
            "never_seen": len(world.unseen),
        },
        "item_ids": [world.items[index].item_id for index in world.leaked],
        "never_seen_item_ids": [world.items[index].item_id for index in world.unseen],
    }
    _write_json(folder / "models" / LEAKED / "leaked_items.json", truth)


def write_halves(folder: Path, world: World, halves: Halves) -> None:
    """`benchmark.jsonl`, of which the third model has learned items; `fresh.jsonl`, of which it has not; the truth."""
    for name, places in (("benchmark", halves.benchmark), ("fresh", halves.fresh)):
        rows = "".join(json.dumps(world.items[place].row(), ensure_ascii=False) + "\n" for place in places)
        _write(folder / f"{name}.jsonl", rows.encode())
    seen = [world.items[place].item_id for place in halves.seen]
    _write_json(folder / "models" / REWORDED / "reworded_items.json", {"benchmark": BENCHMARK, "item_ids": seen})


def write_record(folder: Path, seed: int, threads: int, results: Mapping[str, Result]) -> None:
    """`training.json` and `MODEL_CARD.md`."""
    models: dict[str, Any] = {}
    for name, result in results.items():
        network = result.trained.network
        models[name] = {
            "steps": result.trained.steps,
            "restarts": result.trained.restarts,
            "parameters": sum(parameter.numel() for parameter in network.parameters()),
            "shape": network.shape._asdict(),
            "vocabulary_size": network.embedding.num_embeddings,
            "weights_digest": weights_digest(folder / "models" / name / "1"),
            "accuracy": result.figures,
        }
    record = {
        "benchmark": BENCHMARK,
        "benchmark_version": VERSION,
        "seed": seed,
        "threads": threads,
        "torch": torch.__version__,
        "models": models,
    }
    _write_json(folder / "training.json", record)
    _write(folder / "MODEL_CARD.md", model_card(record).encode())


def _write_json(path: Path, document: Any) -> None:
    _write(path, (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode())


def _write(path: Path, content: bytes) -> None:
    """The whole file or none of it, whenever the program is stopped."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
