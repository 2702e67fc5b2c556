"""The decision event in Python is the protobuf message's canonical JSON."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
from google.protobuf import json_format
from grpc_tools import protoc
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.decision import DecisionEvent, DecisionOutcome, Reason
from proctor.domain.scope import Scope
from tests.support import REPOSITORY

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
TEXT_FIELDS = [name for name, field in DecisionEvent.model_fields.items() if field.annotation is str]
# Not `st.builds`: it would read the signature, which has the fields under their JSON names, and give both.
EVENTS = st.fixed_dictionaries(
    {
        **dict.fromkeys(TEXT_FIELDS, TEXT),
        "outcome": st.sampled_from(DecisionOutcome),
        "reasons": st.lists(st.builds(Reason, code=TEXT, text=TEXT), max_size=3).map(tuple),
        "n_items": st.integers(0, 2**31 - 1),
        "scope": st.none() | st.sampled_from(Scope),
    }
).map(DecisionEvent.model_validate)


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The messages as `protoc` makes them of the committed file."""
    folder = tmp_path_factory.mktemp("stubs")
    proto = REPOSITORY / "protos"
    source = proto / "proctor" / "v1" / "decision.proto"
    assert protoc.main(["protoc", f"--proto_path={proto}", f"--python_out={folder}", str(source)]) == 0
    return _load(folder / "proctor" / "v1" / "decision_pb2.py")


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("decision_pb2", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["decision_pb2"] = module
    spec.loader.exec_module(module)
    return module


@given(event=EVENTS)
def test_an_event_is_its_protobuf_message_s_canonical_json(stubs: ModuleType, event: DecisionEvent) -> None:
    message = json_format.Parse(json.dumps(event.plain()), stubs.DecisionEvent())
    again = json_format.MessageToDict(message, always_print_fields_with_no_presence=True)
    assert again == event.plain()
    assert DecisionEvent.model_validate(again) == event


def test_the_message_has_every_field_of_the_event_and_no_other(stubs: ModuleType) -> None:
    names = {field.name for field in stubs.DecisionEvent.DESCRIPTOR.fields}
    assert names == set(DecisionEvent.model_fields)
    assert {field.name for field in stubs.Reason.DESCRIPTOR.fields} == set(Reason.model_fields)


@given(EVENTS)
def test_the_routing_key_is_the_topic_of_the_outcome(event: DecisionEvent) -> None:
    assert event.routing_key == f"decision.{event.outcome.value}"
