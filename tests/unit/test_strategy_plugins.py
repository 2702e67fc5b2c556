"""Strategies of other distributions: named in a suite, in chains with Proctor's own, under keys of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from proctor.domain.card import ContentDigests, ProtocolCard, protocol_card
from proctor.domain.errors import BadInputError, PluginError
from proctor.domain.strategies import MODEL_STRATEGIES, STRATEGIES, calls_for
from proctor.domain.suite import PerturbationSection, Suite
from proctor.domain.trial import Trial
from proctor.perturbation.library.store import library_key
from proctor.perturbation.recipe import Recipe, refuse_to_ask
from proctor.perturbation.strategies.compose import Chain
from proctor.perturbation.strategies.registry import strategy_class
from proctor.studies.rewording_calls import rewording_calls
from tests.installed_plugins import Plugins
from tests.unit.rewording_models import ITEM, SECTION

SHOUT: Final = """
from dataclasses import replace

from proctor.domain.trial import Decoding
from proctor.perturbation.strategies.model.strategy import ModelStrategy
from proctor.perturbation.strategies.rule import Reworded, RuleStrategy


class Shout(RuleStrategy):
    name = "shout"
    nothing = ("no_words", "the question has no word to shout")

    def maker(self, question, item):
        words = question.split()

        def make(draws):
            place = draws.below(len(words))
            louder = [word.upper() if n == place else word for n, word in enumerate(words)]
            return Reworded(" ".join(louder), {"place": place})

        return make if words else None


class AskLoudly(ModelStrategy):
    name = "ask_loudly"
    calls = 3

    @property
    def _ways(self):
        return 1

    def _asked(self, question, way, item, calls):
        return self._read(self._ask(calls, ("Shout this.",), "", question), question, item=item), {}


class Raising(Shout):
    name = "raising"

    def maker(self, question, item):
        return [][0]


class RaisingLater(Shout):
    name = "raising_later"

    def maker(self, question, item):
        return lambda draws: 1 / 0


class Elsewhere:
    name = "elsewhere"
"""
GROUP: Final = {
    "shout": "toy_shout:Shout",
    "ask_loudly": "toy_shout:AskLoudly",
    "raising": "toy_shout:Raising",
    "raising_later": "toy_shout:RaisingLater",
    "elsewhere": "toy_shout:Elsewhere",
}
ENCODER: Final = "sha256:" + "e" * 64


@pytest.fixture
def shout(plugins: Plugins) -> Plugins:
    installed(plugins)
    return plugins


def installed(plugins: Plugins, version: str = "1.2") -> None:
    plugins.install({"toy_shout": SHOUT}, {"proctor.strategies": GROUP}, version=version)


def section(strategy: str, **changes: Any) -> PerturbationSection:
    return PerturbationSection.model_validate({**SECTION.plain(), "perturbation_strategy": strategy, **changes})


def chain(strategy: str, **changes: Any) -> Chain:
    return Recipe(section(strategy, **changes), benchmark="b", bundle=Path("none")).chain({})


def card(strategy: str, **scoring: Any) -> ProtocolCard:
    suite = Suite.model_validate(
        {
            "audit_suite_id": "s",
            "model_config": {
                "model_id": "m", "model_version": "sha256:" + "0" * 64, "endpoint": "http://127.0.0.1:1/v1",
            },
            "dataset_config": {"benchmark_name": "b"},
            "perturbation_config": {"perturbation_strategy": strategy, "paraphrase_model": "wordsmith"},
            "scoring_config": scoring,
        }
    )  # fmt: skip
    return protocol_card(suite, ContentDigests(), evaluator_version="proctor test")


def test_what_is_said_of_the_built_in_strategies_by_name_holds_of_their_classes() -> None:
    assert {name: strategy_class(name).calls for name in STRATEGIES.built_in} == {
        name: calls_for(name) for name in STRATEGIES.built_in
    }
    assert {name for name in STRATEGIES.built_in if calls_for(name)} == set(MODEL_STRATEGIES)


@pytest.mark.usefixtures("shout")
def test_a_plug_in_rewords_in_a_chain_with_strategies_of_proctors_own() -> None:
    made = chain("number_words+shout").candidates(ITEM, seed=0, limit=3)
    assert len(made) == 3
    for one in made:
        assert one.strategy == "number_words+shout"
        assert any(word.isupper() and len(word) > 1 for word in one.question.split())
        assert set(one.provenance) == {"number_words", "shout"}


@pytest.mark.usefixtures("shout")
def test_a_plug_in_that_asks_a_model_is_known_to_do_so_wherever_a_suite_is_read() -> None:
    asking = section("typo+ask_loudly")
    assert asking.asks_a_model
    assert not section("typo+shout").asks_a_model
    (trial,) = chain("ask_loudly", num_variants_per_item=1).proposals(ITEM, seed=0, limit=1, answers={})
    assert isinstance(trial, Trial)
    assert "Shout this." in trial.prompt
    with pytest.raises(BadInputError, match="'ask_loudly' asks a model"):
        refuse_to_ask(asking, "name another")
    with pytest.raises(BadInputError, match="'ask_loudly' needs paraphrase_model"):
        chain("ask_loudly", paraphrase_model=None)


@pytest.mark.usefixtures("shout")
def test_the_calls_of_a_plug_in_are_planned() -> None:
    suite = Suite.model_validate(
        {
            "audit_suite_id": "s",
            "model_config": {"model_id": "m", "model_version": "sha256:" + "0" * 64, "endpoint": "local"},
            "dataset_config": {"benchmark_name": "b"},
            "perturbation_config": section("shout+ask_loudly", num_variants_per_item=2).plain(),
        }
    )
    assert rewording_calls(suite, 10) == 10 * 2 * 3


def test_rewordings_of_another_version_of_a_plug_in_are_kept_under_another_key(plugins: Plugins) -> None:
    keys = []
    for version in ("1.2", "1.3", "1.2"):
        installed(plugins, version)
        keys.append(library_key(ITEM, chain("typo+shout"), SECTION, ENCODER))
        digests = chain("typo+shout").data_digests(ITEM)
        assert digests == ["typo/1 0.15 where it fits", f"shout/1 of toy {version} where it fits"]
    assert keys[0] != keys[1]
    assert keys[0] == keys[2]


@pytest.mark.usefixtures("shout")
def test_a_strategy_that_is_nowhere_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(BadInputError, match=r"'whisper' does not exist; there are: .*option_shuffle, .*shout, .*typo"):
        chain("typo+whisper")
    assert not section("whisper").asks_a_model


@pytest.mark.usefixtures("shout")
def test_a_plug_in_that_is_no_strategy_is_named_and_breaks_no_other() -> None:
    assert chain("shout").level == 1
    with pytest.raises(BadInputError, match=r"'elsewhere' of toy 1\.2 is the class Elsewhere, which is no strategy"):
        chain("elsewhere")


def test_a_plug_in_under_another_name_than_its_classs_is_refused(plugins: Plugins) -> None:
    plugins.install({"toy_shout": SHOUT}, {"proctor.strategies": {"cry": "toy_shout:Shout"}})
    with pytest.raises(BadInputError, match="the class Shout, which has another name"):
        chain("cry")


@pytest.mark.usefixtures("shout")
@pytest.mark.parametrize(
    ("name", "said"),
    [("raising", "IndexError: list index out of range"), ("raising_later", "ZeroDivisionError: division by zero")],
)
def test_a_plug_in_that_raises_is_named_with_its_item(name: str, said: str) -> None:
    expected = rf"the strategy '{name}' of toy 1\.2 failed at item '{ITEM.item_id}': {said}; mend that distribution"
    with pytest.raises(PluginError, match=expected):
        chain(f"typo+{name}").candidates(ITEM, seed=0, limit=2)


def test_no_distribution_is_looked_through_for_strategies_of_proctors_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(group: str) -> None:
        raise AssertionError(f"{group} was looked for")

    monkeypatch.setattr("proctor.domain.plugins.declared", refused)
    assert chain("typo+paraphrase_llm+option_shuffle").asks_a_model
    assert card("typo+paraphrase_llm").plugins == {}


def test_a_plug_in_and_its_version_stand_on_the_card(plugins: Plugins) -> None:
    cards = []
    for version in ("1.2", "1.3"):
        plugins.install({"toy_shout": SHOUT}, {"proctor.strategies": GROUP}, version=version)
        cards.append(card("typo+shout"))
    assert [one.plugins for one in cards] == [{"strategy shout": "toy 1.2"}, {"strategy shout": "toy 1.3"}]
    assert cards[0].fingerprint != cards[1].fingerprint
    assert cards[0].protocol_digest != cards[1].protocol_digest
    assert "plugins" not in card("typo").plain()
    assert ProtocolCard.model_validate(cards[0].plain()) == cards[0]
