"""A rewording model as a script, and items that it can reword: for what asks a model, without one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from proctor.domain.item import Item
from proctor.domain.strategies import MODEL_STRATEGIES
from proctor.domain.suite import PerturbationSection
from proctor.domain.trial import Completion, Trial
from proctor.perturbation.engine import ItemResult, reword_by_answers
from proctor.perturbation.library.store import VariantLibrary
from proctor.perturbation.strategies.compose import Chain, make_chain
from proctor.perturbation.strategies.option_shuffle import OptionShuffle
from proctor.perturbation.strategies.registry import rule_strategies, strategy_class
from tests.unit.variant_samples import HashedEncoder, MemoryRows

SECTION = PerturbationSection(
    perturbation_strategy="paraphrase_llm",
    paraphrase_model="wordsmith",
    num_variants_per_item=2,
    min_semantic_distance=0.0,
    max_semantic_distance=1.9,
)
ITEM = Item(item_id="apples", question="Mia buys 3 apples and then 4 more. How many apples has she?", target="7")
CHOICE = Item(
    item_id="krav",
    question="Which town is the capital of Krav?",
    choices=("Bri", "Tor", "Ela", "Wen"),
    target="Ela",
)
REWORDINGS = {
    ITEM.question: (
        "If Mia gets 3 apples and 4 more afterwards, what is her total of apples?",
        "After buying 3 apples, Mia buys another 4. What number of apples does she hold?",
        "How many apples does Mia own once she has bought 3 and a further 4?",
        "First 3 apples, then 4: that is what Mia buys. What does she end up with?",
        "Say how many apples Mia has who bought 3 and, later on, 4.",
        "Mia's shopping is 3 apples and another 4 apples. Count them.",
    ),
    CHOICE.question: (
        "From which town is Krav governed?",
        "Name the seat of government of Krav.",
        "In what place does the government of Krav sit?",
        "Krav has one capital; say which town that is.",
    ),
}
#: What the model is shown, whatever the prompt around it.
_SHOWN = re.compile(r"^<(question[0-9-]*)>\n(.*)\n</\1>$", re.MULTILINE | re.DOTALL)

Reply = str | Completion
Script = Callable[[str, Trial], Reply]


def shown(trial: Trial) -> str:
    """The text that a prompt asks the model to work on."""
    match = _SHOWN.search(trial.prompt)
    assert match is not None
    return match[2]


def faithful(question: str, trial: Trial) -> str:
    """Another good rewording for each candidate; a text that is none of the items' own is handed back."""
    known = REWORDINGS.get(question, (question,))
    return known[trial.replicate % len(known)]


class ScriptedModel:
    """A model that says what a function of the shown text and the trial returns; counts what it is asked."""

    def __init__(self, say: Script = faithful, digest: str | None = "sha256:" + "5" * 64) -> None:
        self._say = say
        self._digest = digest
        self.asked: list[Trial] = []

    def answer(self, trials: Sequence[Trial]) -> dict[str, Completion]:
        """One completion a trial, by its identifier. The endpoint and the time it took are never the same twice."""
        completions = {}
        for trial in trials:
            self.asked.append(trial)
            said = self._say(shown(trial), trial)
            if isinstance(said, str):
                said = Completion(trial_id=trial.trial_id, text=said, finish_reason="stop")
            facts = {
                "trial_id": trial.trial_id,
                "model_digest": self._digest,
                "endpoint": f"http://{id(self)}",
                "latency_ms": float(len(self.asked)),
            }
            completions[trial.trial_id] = said.model_copy(update=facts)
        return completions


def failing(error: str = "connection refused") -> Completion:
    return Completion(trial_id="", error=error)


def cut_off(text: str = "If Mia") -> Completion:
    return Completion(trial_id="", text=text, finish_reason="length")


def chain_of(section: PerturbationSection, more: Mapping[str, Any] | None = None) -> Chain:
    """The chain that a section names."""
    asking = {name: partial(strategy_class(name).of, section) for name in MODEL_STRATEGIES}
    builders = {**rule_strategies(), "option_shuffle": OptionShuffle, **asking, **(more or {})}
    return make_chain(section.perturbation_strategy, builders)


class Build:
    """A build by rounds, as an audit does it.

    Args:
        model: what is asked.
        changes: of the section.
    """

    def __init__(self, model: ScriptedModel, **changes: Any) -> None:
        self.model = model
        self.section = PerturbationSection.model_validate({**SECTION.model_dump(), **changes})
        self.chain = chain_of(self.section)
        self.encoder = HashedEncoder()
        self.rows = MemoryRows()
        self.answers: dict[str, Completion] = {}
        self.rounds: list[tuple[Trial, ...]] = []

    def run(self, *items: Item) -> list[ItemResult]:
        """Ask and reword until nothing is left to ask."""
        while True:
            reworded = self.once(*items)
            if not reworded.needed:
                return list(reworded.results)
            assert not reworded.results
            self.rounds.append(reworded.needed)
            self.answers |= self.model.answer(reworded.needed)

    def once(self, *items: Item) -> Any:
        """One round."""
        return reword_by_answers(
            items,
            self.section,
            chain=self.chain,
            encoder=self.encoder,
            library=VariantLibrary(self.rows),
            answers=self.answers,
        )

    def again(self, model: ScriptedModel) -> Build:
        """Another audit of the same suite, with the same library."""
        other = Build(model, **self.section.model_dump())
        other.rows = self.rows
        return other
