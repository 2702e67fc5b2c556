"""What Proctor publishes about suites: their JSON Schema, and an example that explains itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import to_jsonable_python

from proctor.domain.benchmark_kind import ADVICE, REQUIRED, BenchmarkKind
from proctor.domain.canonical import DIGEST_OR_PREFIX
from proctor.domain.channels import channel_names
from proctor.domain.profiles import PROFILES, STANDARD, ProfileName, with_profile
from proctor.domain.scope import MEASURED, REACHING_FURTHER
from proctor.domain.suite import Suite
from proctor.domain.suite_fields import Place, all_places, fields_of, first_sentence, place_at

#: A name, not an address: nothing is fetched, and no host has to exist.
SCHEMA_ID = "urn:proctor:schema:suite:v1"
_DRAFT = "https://json-schema.org/draft/2020-12/schema"
#: What a suite is told of its channels where nobody said what its items are.
_UNKNOWN_KIND = (
    "An approval by perturbation and protocol alone has the scope `wording`: it does not rule out memory of short "
    "facts (open questions that are answered by recall), which answers every wording. For such a benchmark "
    f"{REACHING_FURTHER}, or set governance.profile to strict."
)
_COMMENT = {"description": "A remark of any kind; ignored, and no part of the fingerprint."}


def suite_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of the suite.

    It accepts every suite that `parse_suite` accepts. The other way round it knows all but what compares one
    number with another (the distance window, the two limits) and the form of an endpoint. Its channels are those that
    can be required here, with the plug-ins that are installed.
    """
    schema = Suite.model_json_schema(by_alias=True, mode="validation")
    definitions: dict[str, Any] = schema["$defs"]
    for place in all_places():
        if place.section is not None:
            _describe_section(definitions[place.section.__name__], place)
    _describe_fields(schema, fields_of(Suite))
    model_version = definitions["ModelSection"]["properties"]["model_version"]
    model_version["pattern"] = f"^{DIGEST_OR_PREFIX.pattern}$"
    channels = {"enum": list(channel_names()), "type": "string"}
    definitions["ScoringSection"]["properties"]["required_channels"]["items"] = channels
    definitions["DatasetSection"]["allOf"] = [
        {
            "if": {"properties": {"hub_id": {"type": "string"}}, "required": ["hub_id"]},
            "then": {
                "properties": {"hub_revision": {"type": "string"}, "path": {"type": "null"}},
                "required": ["hub_revision"],
            },
        }
    ]
    description = first_sentence(Suite.__doc__ or "")
    return {"$schema": _DRAFT, "$id": SCHEMA_ID, **schema, "title": "Proctor audit suite", "description": description}


def _describe_section(definition: dict[str, Any], place: Place) -> None:
    assert place.section is not None
    definition["description"] = first_sentence(place.section.__doc__ or "")
    _describe_fields(definition, place.fields)


def _describe_fields(definition: dict[str, Any], places: Mapping[str, Place]) -> None:
    for name, place in places.items():
        definition["properties"][name]["description"] = place.meaning
    definition["properties"] = {"$comment": _COMMENT, **definition["properties"]}


def example_suite(
    profile: ProfileName = STANDARD, kind: BenchmarkKind | None = None, items: str = "items.jsonl"
) -> dict[str, Any]:
    """A suite to start from, with every default written out and every field explained under `$comment`.

    Args:
        profile: the profile that it names.
        kind: of its benchmark, by which it requires channels; None where that is not known.
        items: path of the benchmark's items.
    """
    asked = {"fresh_config": {"path": _first_example("fresh_config", "path")}} if kind is BenchmarkKind.FACTS else {}
    near = ("perturbation_config", "min_semantic_distance")
    tree = with_profile(
        {
            "$schema": SCHEMA_ID,
            "audit_suite_id": _first_example("audit_suite_id"),
            "model_config": {
                name: _first_example("model_config", name) for name in ("model_id", "model_version", "endpoint")
            },
            "dataset_config": {
                "benchmark_name": _first_example("dataset_config", "benchmark_name"),
                "path": items,
            },
            "perturbation_config": {
                **({} if near in PROFILES[profile].sets else {"min_semantic_distance": 0.02}),
                "perturbation_strategy": "imported",
                "rewordings_path": "rewordings.jsonl",
            },
            "governance": {"profile": profile},
            **({} if kind is None else {"scoring_config": {"required_channels": REQUIRED[kind]}}),
            **asked,
        }
    )
    suite = Suite.model_validate(tree)
    advice = {
        "": [
            "Keys named $comment are ignored. Keys that stand at their default may be left out.",
            "Check this file with `proctor suite validate`, then run it with `proctor audit run`.",
        ],
        "model_config": ["Replace the zeros: `sha256sum model.safetensors` prints the digest of the weights."],
        "perturbation_config": [
            "Most faithful rewordings are closer than the article's 0.15 to 0.45, "
            + (
                f"of which the profile {profile} asks for a part: expect many to be turned away."
                if near in PROFILES[profile].sets
                else "so this window starts at 0.02."
            ),
        ],
        "scoring_config": [f"{_UNKNOWN_KIND if kind is None else ADVICE[kind]} {MEASURED}"],
    }
    return _commented(suite.plain(), fields_of(Suite), advice)


def _first_example(*path: str) -> Any:
    place = place_at(path)
    assert place is not None
    assert place.field.examples
    return place.field.examples[0]


def _commented(plain: dict[str, Any], places: Mapping[str, Place], advice: dict[str, list[str]]) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    remarks: list[str] = []
    for name, place in places.items():
        # A field that is not written where it stands at its default is one to explain all the same.
        value = plain[name] if name in plain else to_jsonable_python(place.field.get_default(call_default_factory=True))
        if place.section is None or value is None or isinstance(value, list):
            remarks.append(f"{name}: {place.meaning}" + (" Not set here." if value is None else ""))
            if value is not None:
                shown[name] = value
        else:
            section = _commented(value, place.fields, advice)
            introduction = [place.meaning, *advice.get(place.dotted, [])]
            shown[name] = {**section, "$comment": introduction + section["$comment"]}
    # A section's own advice is joined where the section is written; only the top level's is added here.
    top = advice[""] if "audit_suite_id" in places else []
    return {"$comment": top + remarks, **shown}
