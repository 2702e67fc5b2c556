"""What each field of a suite means, and where it stands: for messages, the published schema and the example."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from proctor.domain.problems import Path, quoted
from proctor.domain.suite import Suite

#: The fields whose class has no docstring for them, by path.
_MEANINGS = {
    "$schema": "The URI of the schema that the suite was written against; kept, not fetched.",
    "audit_suite_id": "The suite's name, under which its audits are listed.",
    "model_config.model_id": "The model's name in the registry, e.g. org/model-name.",
    "dataset_config.benchmark_name": "The benchmark's name, e.g. gsm8k; proctor-facts is the one that Proctor ships.",
    "dataset_config.dataset_variant": "The benchmark's subset or configuration.",
    "dataset_config.dataset_version": "The version of the benchmark, as its authors number it.",
    "dataset_config.sample_size": "How many items are asked; under 300 expect review.",
    "dataset_config.sampling_seed": "The seed of the draw of the sample.",
    "dataset_config.split": "The split that the items come from.",
    "dataset_config.id_field": "The column of the id; by default item_id or id if there is one, else the position.",
    "dataset_config.question_field": "The column of the question.",
    "dataset_config.choices_field": "The column of the options of a multiple-choice item.",
    "dataset_config.target_field": "The column of the right answer.",
    "perturbation_config.num_variants_per_item": "Admitted rewordings of each item.",
    "perturbation_config.min_semantic_distance": "Smallest cosine distance of a rewording from its item, 0 to 2; the "
    "article advises 0.15, and 0.20 for reasoning.",
    "perturbation_config.max_semantic_distance": "Largest cosine distance of a rewording from its item, 0 to 2; the "
    "article advises 0.45, 0.30 for factual benchmarks, 0.50 for reasoning.",
    "perturbation_config.paraphrase_model": "The model that rewords, for strategies that ask one: its name, e.g. "
    "org/paraphrase-model.",
    "perturbation_config.paraphraser.decoding.top_p": "Nucleus of the sampling; 1 keeps every token.",
    "perturbation_config.paraphraser.decoding.seed": "The seed of the sampling, where the endpoint takes one.",
    "perturbation_config.paraphraser.decoding.stop": "Texts at which a rewording ends.",
    "perturbation_config.seed": "The seed of the rewordings.",
    "scoring_config.contamination_threshold": "Contamination Score that may not be passed, as a fraction.",
    "scoring_config.significance_alpha": "Largest p-value that counts as significant, as a fraction.",
    "scoring_config.max_allowed_contaminated_items_pct": "Score inflation that is still approved, in percent of items.",
    "scoring_config.confidence_level": "Level of every confidence interval, as a fraction.",
    "scoring_config.required_channels": "Channels of evidence without which nothing is approved.",
    "governance.audit_owner": "Who answers for the audit.",
    "governance.review_required_above_cs": "Contamination Score past which a person must look, as a fraction.",
    "governance.block_deployment_above_contaminated_pct": "Score inflation that is blocked, in percent of items.",
    "governance.result_retention_days": "How long results are kept, in days.",
    "governance.notify_on_failure": "Who is told of a block, as addresses.",
    "prompt_config.few_shot": "Solved examples that are shown before the question.",
    "prompt_config.few_shot.question": "The example's question.",
    "prompt_config.few_shot.choices": "The example's options.",
    "prompt_config.few_shot.answer": "The example's answer.",
    "protocol_config.router.decoding.top_p": "Nucleus of the sampling; 1 keeps every token.",
    "protocol_config.router.decoding.seed": "The seed of the sampling, where the endpoint takes one.",
    "protocol_config.router.decoding.stop": "Texts at which a message ends.",
    "decoding_config.top_p": "Nucleus of the sampling; 1 keeps every token.",
    "decoding_config.seed": "The seed of the sampling, where the endpoint takes one.",
    "decoding_config.stop": "Texts at which an answer ends.",
    "metric_config.name": "How graded answers become a score.",
}


class Place(NamedTuple):
    """A field of the suite: its path without list positions, its definition and, for a section, its class."""

    path: tuple[str, ...]
    field: FieldInfo
    section: type[BaseModel] | None

    @property
    def dotted(self) -> str:
        """The path as in `scoring_config.significance_alpha`."""
        return ".".join(self.path)

    @property
    def meaning(self) -> str:
        """One sentence on what the field is for."""
        if self.section is not None and not _is_list(self.field.annotation):
            return first_sentence(self.section.__doc__ or "")
        return _MEANINGS.get(self.dotted) or " ".join((self.field.description or "").split())

    @property
    def default_words(self) -> str:
        """The default as a person would write it."""
        value = self.field.get_default(call_default_factory=True)
        if isinstance(value, BaseModel):
            return "a section of defaults"
        return "none" if value is None else quoted(list(value) if isinstance(value, tuple) else value)


def _models_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in typing.get_args(annotation) if (found := _models_in(part)) is not None), None)


def _is_list(annotation: Any) -> bool:
    return typing.get_origin(annotation) in (tuple, list)


def first_sentence(text: str) -> str:
    """The first paragraph of a docstring on one line."""
    return " ".join(text.split("\n\n")[0].split())


@cache
def fields_of(model: type[BaseModel], path: tuple[str, ...] = ()) -> Mapping[str, Place]:
    """The fields of a section by the names of their JSON form."""
    return {
        (field.alias or name): Place((*path, field.alias or name), field, _models_in(field.annotation))
        for name, field in model.model_fields.items()
    }


def place_at(path: Path) -> Place | None:
    """The field at a path of the suite; list positions are passed over. None where the suite has no such field."""
    model: type[BaseModel] | None = Suite
    found: Place | None = None
    for part in (part for part in path if isinstance(part, str)):
        found = fields_of(model, found.path if found else ()).get(part) if model is not None else None
        if found is None:
            return None
        model = found.section
    return found


def all_places() -> Iterator[Place]:
    """Every field of the suite, sections before what stands in them."""
    pending = list(fields_of(Suite).values())
    while pending:
        place = pending.pop(0)
        yield place
        if place.section is not None:
            pending = list(fields_of(place.section, place.path).values()) + pending


@cache
def places_by_name() -> Mapping[str, Place]:
    """The first field of each name, wherever it stands."""
    places: dict[str, Place] = {}
    for place in all_places():
        places.setdefault(place.path[-1], place)
    return places
