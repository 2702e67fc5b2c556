"""Sample reports: the answers of a made-up model, graded, weighed and decided by the real scorer.

Run it to look at the pages: `PYTHONPATH=services:. python tests/report_samples.py FOLDER`.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from proctor.domain.item import Item, Measurements, Rejection, Variant
from proctor.domain.manifest import ItemSet, VariantSet
from proctor.domain.suite import Suite
from proctor.domain.trial import Arm, Completion, Trial
from proctor.scorer.page.html import render
from proctor.scorer.report.document import Report, RunFacts, to_json
from tests.scored_audits import DIGEST, AskedTrial, assemble, manifest_of, score

LETTERS = "ABCDEFGHIJ"
CAPITALS = ("Orvane", "Teluria", "Maskel", "Brindow", "Quenta", "Ilsmoor", "Varnholt", "Sapphel", "Dorrin", "Lycanthe")
WORDINGS = (
    "What is the capital of {}?",
    "Which city serves as the capital of {}?",
    "Name the city from which {} is governed.",
    "{} has its seat of government in which city?",
)


class SampleAudit:
    """A made-up audit: the share `knows` of the items is known, the share `leaked` memorised as published only.

    The last three items get no rewording, and so take no part.
    """

    def __init__(
        self,
        *,
        model_id: str = "proctor/reference-leaked",
        n_items: int = 400,
        knows: float = 0.75,
        leaked: float = 0.15,
        n_variants: int = 3,
        seed: int = 7,
        verified: bool = True,
        changes: dict[str, dict[str, Any]] | None = None,
    ) -> None:
        self.random = random.Random(seed)
        self.n_variants = n_variants
        self.suite = self._suite(model_id, n_items, changes or {})
        self.items = [self._item(index) for index in range(n_items)]
        self.known = {item.item_id for item in self.items if self.random.random() < knows}
        rest = [item.item_id for item in self.items if item.item_id not in self.known]
        self.leaked = set(self.random.sample(rest, min(len(rest), round(leaked * n_items))))
        self.rejections = [
            Rejection(item_id=item.item_id, reason="too_far", detail="0.61 > 0.45") for item in self.items[::17]
        ]
        self.rejections += [Rejection(item_id=item.item_id, reason="answer_invariant") for item in self.items[-3:]]
        self.variants = [v for index, item in enumerate(self.items[:-3]) for v in self._variants(index, item)]
        self.asked = list(self._asked())
        self.manifest = manifest_of(self.suite, verified=verified)

    def _suite(self, model_id: str, n_items: int, changes: dict[str, dict[str, Any]]) -> Suite:
        plain: dict[str, Any] = {
            "audit_suite_id": "facts-audit-2026q4",
            "model_config": {"model_id": model_id, "model_version": DIGEST[:26], "endpoint": "local-triton"},
            "dataset_config": {"benchmark_name": "proctor-facts", "sample_size": n_items},
            "perturbation_config": {
                "min_semantic_distance": 0.02,
                "perturbation_strategy": "template+option_shuffle",
                "num_variants_per_item": self.n_variants,
            },
            "governance": {"audit_owner": "ml-governance"},
            "decoding_config": {"max_tokens": 4},
        }
        for section, values in changes.items():
            plain[section] = {**plain.get(section, {}), **values}
        return Suite.model_validate(plain)

    def _item(self, index: int) -> Item:
        return Item(
            item_id=f"facts-{index:04d}",
            question=WORDINGS[index % 4].format(f"Kelmar {index}"),
            choices=tuple(self.random.sample(CAPITALS, len(CAPITALS))),
            target=self.random.choice(CAPITALS),
            dimension="capital",
        )

    def _variants(self, index: int, item: Item) -> Iterator[Variant]:
        for number in range(1, self.n_variants + 1):
            yield Variant(
                item_id=item.item_id,
                item_hash=item.content_hash,
                strategy="template+option_shuffle",
                question=WORDINGS[(index + number) % 4].format(f"Kelmar {index}"),
                choices=tuple(self.random.sample(CAPITALS, len(CAPITALS))),
                measurements=Measurements(
                    semantic_distance=self.random.uniform(0.03, 0.2),
                    token_overlap=self.random.uniform(0.1, 0.5),
                    edit_distance=self.random.uniform(0.3, 0.8),
                    containment=number / (4 * self.n_variants),
                ),
            )

    def _asked(self) -> Iterator[AskedTrial]:
        for item in self.items[:-3]:
            yield self._ask(item, None, item.question, item.choices)
        items = {item.item_id: item for item in self.items}
        for variant in self.variants:
            yield self._ask(items[variant.item_id], variant.variant_id, variant.question, variant.choices)

    def _ask(self, item: Item, variant_id: str | None, question: str, choices: tuple[str, ...]) -> AskedTrial:
        recalled = item.item_id in self.known or (variant_id is None and item.item_id in self.leaked)
        right = self.random.random() < (0.985 if recalled else 0.1)
        chosen = item.target if right else self.random.choice([c for c in choices if c != item.target])
        options = "\n".join(f"{letter}. {choice}" for letter, choice in zip(LETTERS, choices, strict=True))
        trial = Trial(
            arm=Arm.CANONICAL if variant_id is None else Arm.PERTURBED,
            item_id=item.item_id,
            variant_id=variant_id,
            prompt=f"Question: {question}\nOptions:\n{options}\nAnswer:",
            choices=choices,
        )
        completion = Completion(
            trial_id=trial.trial_id,
            text=LETTERS[choices.index(chosen)],
            finish_reason="stop",
            endpoint="grpc://127.0.0.1:8001",
            latency_ms=self.random.uniform(1, 9),
        )
        return AskedTrial(trial, completion)

    def report(self) -> Report:
        """The whole report."""
        result = score(self.suite, self.items, self.asked)
        return assemble(
            self.manifest,
            ItemSet(items=tuple(self.items)),
            VariantSet(
                variants=tuple(self.variants),
                rejections=tuple(self.rejections),
                encoder="all-MiniLM-L6-v2, sha256:53aa51172d14",
            ),
            result.answers,
            result.evidence,
            result.decision,
            versions={"proctor": "0.1.0"},
        )


class OnPassages(SampleAudit):
    """A made-up audit whose items come in passages. Half of the items stand and fall with their passage's luck."""

    def __init__(self, *, per_passage: int, shared: float = 0.5, **others: Any) -> None:
        self.per_passage, self.shared = per_passage, shared
        super().__init__(**others)
        lucky = random.Random(others.get("seed", 7))
        luck = [lucky.random() < others.get("knows", 0.75) for _ in range(len(self.items))]
        swayed = {item.item_id for item in self.items if lucky.random() < shared}
        self.known = {
            item.item_id
            for place, item in enumerate(self.items)
            if (luck[place // per_passage] if item.item_id in swayed else item.item_id in self.known)
        }
        self.leaked -= self.known
        self.asked = list(self._asked())

    def _item(self, index: int) -> Item:
        return super()._item(index).model_copy(update={"cluster": f"passage {index // self.per_passage}"})


def blocked(**changes: Any) -> SampleAudit:
    """A model that memorised 15 % of the items."""
    return SampleAudit(**changes)


def approved(**changes: Any) -> SampleAudit:
    """A model that knows what it answers."""
    return SampleAudit(**{"model_id": "proctor/reference-clean", "leaked": 0.0, **changes})


def in_review(**changes: Any) -> SampleAudit:
    """Too few items to tell, of a model whose weights the endpoint did not prove."""
    return SampleAudit(**{"model_id": "acme/chat-7b", "n_items": 60, "leaked": 0.0, "verified": False, **changes})


def poisoned(value: Any, payload: str) -> Any:
    """A copy of a model with `payload` put before every text in it, names and dictionary keys too.

    Only enumerations and literals keep their values. Nothing is validated: this is worse than any real input.
    Keys stay encodable, because pydantic cannot dump a key with a lone surrogate.
    """
    if isinstance(value, BaseModel):
        fields = type(value).model_fields
        return value.model_copy(
            update={
                name: inner if "Literal[" in repr(fields[name].annotation) else poisoned(inner, payload)
                for name, inner in dict(value).items()
            }
        )
    if isinstance(value, dict):
        key_payload = payload.encode("utf-8", "replace").decode("utf-8")
        return {poisoned(key, key_payload): poisoned(inner, payload) for key, inner in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(poisoned(inner, payload) for inner in value)
    return payload + value if type(value) is str else value


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for make in (blocked, approved, in_review):
        sample = make().report()
        (folder / f"{make.__name__}.json").write_bytes(to_json(sample))
        page = render(sample, run=RunFacts(audit_id="audit-8d1f0a"))
        (folder / f"{make.__name__}.html").write_text(page, encoding="utf-8")
