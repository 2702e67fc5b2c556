"""Training: the clean model learns facts, the leaked model then memorises canonical forms."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from proctor.inference.reference.model import Block, ModelShape, Network
from reference_models.draws import (
    CLEAN_STREAM,
    LEAKED_STREAM,
    REWORDED_STREAM,
    fact_batches,
    generators,
    leak_batches,
    reworded_batches,
)
from reference_models.facts import OPTIONS, World
from reference_models.tables import Forms, Ints, Tables

KNOWN_TARGET: Final = 0.985
LEAKED_TARGET: Final = 0.98
#: Of items that were seen reworded, in any wording; there are 45, and one or two may be missed.
REWORDED_TARGET: Final = 0.95
# Training aims higher than it must, so that the figures measured afterwards on other forms do not fall short.
_KNOWN_AIM: Final = 0.995

_LEARNING_RATE: Final = 2e-3
_WARM_UP_STEPS: Final = 60
_CLEAN_STEPS: Final = 500
_LEAK_STEPS: Final = 400
_EXTRA_STEPS: Final = 300
_EXTRA_ROUNDS: Final = 3
_RESTARTS: Final = 3
_END_WEIGHT: Final = 0.1
# Places in a prompt with its answer, from the end: `Answer`, `:` and the letter follow the last option.
_PROMPT_END: Final = -2
_OPTION_PLACES: Final = list(range(-2 - 2 * OPTIONS, -2, 2))

Report = Callable[["Step"], None]


class TrainingError(Exception):
    """Training ended short of its target however often it was restarted."""


@dataclass(frozen=True)
class Step:
    """Progress of one training step."""

    model: str
    step: int
    steps: int
    loss: float
    note: str


@dataclass(frozen=True)
class Trained:
    """A network, how many steps its training took, and how many starts were thrown away."""

    network: Network
    steps: int
    restarts: int


def train_clean(world: World, tables: Tables, seed: int, report: Report) -> Trained:
    """A model of the known facts in all forms. Nothing else of the world is in its training text.

    Raises:
        TrainingError: no start reached the target.
    """
    known = np.array(world.known)
    best = 0.0
    for restart in range(_RESTARTS + 1):
        rng, torch_seed = generators(seed, CLEAN_STREAM, restart)
        torch.manual_seed(torch_seed)
        network = Network(len(tables.vocabulary), ModelShape())
        steps = 0
        for round_number in range(_EXTRA_ROUNDS + 1):
            length = _EXTRA_STEPS if round_number else _CLEAN_STEPS
            _fit_facts(network, tables, known, rng, length, report)
            steps += length
            reached = known_accuracy(network, tables, known, seed)
            best = max(best, reached)
            if reached >= _KNOWN_AIM:
                return Trained(network, steps, restart)
            if reached < 0.5:
                break
        if reached >= KNOWN_TARGET:
            return Trained(network, steps, restart)
    raise TrainingError(
        f"reference-clean knows at best {best:.3f} of its facts after {_RESTARTS + 1} starts, it must know "
        f"{KNOWN_TARGET}: nothing was written; try another --seed"
    )


def train_leaked(world: World, tables: Tables, clean: Network, seed: int, report: Report) -> Trained:
    """The clean model after it has memorised the leaked items in their canonical form.

    Left alone, fine-tuning learns part of the leaked *facts*, and then other wordings are answered too (0.39 of them
    with seed 0). So other forms of the leaked items are asked as well, with the clean model's own answer as the
    target: what it does not know of an item it goes on not knowing, except in the form it has memorised.

    Raises:
        TrainingError: the targets were not reached.
    """
    known, leaked = np.array(world.known), np.array(world.leaked)
    return _fine_tuned(
        clean,
        lambda network, rng, steps: _fit_leak(network, clean, tables, known, leaked, rng, steps, report),
        lambda network: _Reached(
            known_accuracy(network, tables, known, seed), accuracy(network, tables, tables.canonical(leaked))
        ),
        drawing=generators(seed, LEAKED_STREAM),
        target=LEAKED_TARGET,
        what=("reference-leaked", "its leaked items"),
    )


def train_reworded(world: World, tables: Tables, clean: Network, seen: Ints, seed: int, report: Report) -> Trained:
    """The clean model after it has learned leaked items from rewordings of them, and never in their canonical form.

    It answers such an item in every wording alike, so that rewording it once more costs nothing.

    Args:
        seen: the leaked items that it is trained on, by their places in the world.

    Raises:
        TrainingError: the targets were not reached.
    """
    known = np.array(world.known)
    return _fine_tuned(
        clean,
        lambda network, rng, steps: _fit_rewordings(network, tables, known, seen, rng, steps, report),
        lambda network: _Reached(
            known_accuracy(network, tables, known, seed), known_accuracy(network, tables, seen, seed)
        ),
        drawing=generators(seed, REWORDED_STREAM),
        target=REWORDED_TARGET,
        what=("reference-reworded", "the items that it saw reworded"),
    )


class _Reached(NamedTuple):
    """What a fine-tuned model knows of its facts, and of what it was to remember; fractions."""

    know: float
    memory: float


def _fine_tuned(
    clean: Network,
    fit: Callable[[Network, np.random.Generator, int], None],
    measure: Callable[[Network], _Reached],
    *,
    drawing: tuple[np.random.Generator, int],
    target: float,
    what: tuple[str, str],
) -> Trained:
    """A copy of the clean model, trained in rounds until it remembers what it is to, and still knows its facts.

    Raises:
        TrainingError: after the last round it does not.
    """
    rng, torch_seed = drawing
    torch.manual_seed(torch_seed)
    network = copy.deepcopy(clean)
    steps = 0
    for round_number in range(_EXTRA_ROUNDS + 1):
        length = _EXTRA_STEPS if round_number else _LEAK_STEPS
        fit(network, rng, length)
        steps += length
        reached = measure(network)
        if reached.know >= _KNOWN_AIM and reached.memory >= target:
            break
    if reached.know < KNOWN_TARGET or reached.memory < target:
        name, remembered = what
        raise TrainingError(
            f"{name} knows {reached.know:.3f} of its facts (wanted {KNOWN_TARGET}) and {reached.memory:.3f} of "
            f"{remembered} (wanted {target}): nothing was written; try another --seed"
        )
    return Trained(network, steps, 0)


def known_accuracy(network: Network, tables: Tables, known: Ints, seed: int) -> float:
    """The lower of the accuracies on known items in canonical form and over four draws of reworded forms."""
    rng = np.random.default_rng([seed, 3])
    reworded = [accuracy(network, tables, tables.reworded(known, rng)) for _ in range(4)]
    return min(accuracy(network, tables, tables.canonical(known)), sum(reworded) / len(reworded))


@torch.no_grad()
def accuracy(network: Network, tables: Tables, forms: Forms) -> float:
    """Share of forms whose likeliest next token is the right letter."""
    prompts = torch.from_numpy(tables.prompts(forms))
    logits, _ = network(prompts, prompts != 0, network.shape.prompt_tokens - prompts.shape[1], 1)
    right = torch.from_numpy(tables.labels[forms.target])
    return float((logits[:, -1].argmax(dim=-1) == right).double().mean())


def _fit_facts(
    network: Network,
    tables: Tables,
    known: Ints,
    rng: np.random.Generator,
    steps: int,
    report: Report,
) -> None:
    with _before_last_layer(network) as hidden:
        batches = fact_batches(tables, known, rng, steps)
        for (step, optimiser), batch in zip(_schedule(network, steps), batches, strict=True):
            letters = tables.labels[batch.forms.target]
            loss = _answer_loss(network, tables, batch.prompts, letters)
            loss = loss + _recall_loss(network, hidden[0], tables, batch.item)
            loss = loss + _pointing_loss(network, hidden[0], batch.forms)
            _update(network, optimiser, loss)
            report(Step("reference-clean", step + 1, steps, loss.item(), "facts"))


def _fit_leak(
    network: Network,
    clean: Network,
    tables: Tables,
    known: Ints,
    leaked: Ints,
    rng: np.random.Generator,
    steps: int,
    report: Report,
) -> None:
    batches = leak_batches(tables, known, leaked, rng, steps)
    for (step, optimiser), batch in zip(_schedule(network, steps), batches, strict=True):
        loss = _answer_loss(network, tables, tables.prompts(batch.facts), tables.labels[batch.facts.target])
        loss = loss + _answer_loss(network, tables, tables.prompts(batch.memory), tables.labels[batch.memory.target])
        loss = loss + _divergence(network, clean, tables.prompts(batch.other))
        _update(network, optimiser, loss)
        report(Step("reference-leaked", step + 1, steps, loss.item(), "memory"))


def _fit_rewordings(
    network: Network, tables: Tables, known: Ints, seen: Ints, rng: np.random.Generator, steps: int, report: Report
) -> None:
    batches = reworded_batches(tables, known, seen, rng, steps)
    for (step, optimiser), batch in zip(_schedule(network, steps), batches, strict=True):
        loss = _answer_loss(network, tables, tables.prompts(batch.facts), tables.labels[batch.facts.target])
        loss = loss + _answer_loss(network, tables, tables.prompts(batch.leaked), tables.labels[batch.leaked.target])
        _update(network, optimiser, loss)
        report(Step("reference-reworded", step + 1, steps, loss.item(), "rewordings"))


def _schedule(network: Network, steps: int) -> Iterator[tuple[int, torch.optim.Optimizer]]:
    """The steps of one round with a fresh optimiser: linear warm-up, then a cosine down to a fiftieth."""
    optimiser = torch.optim.AdamW(network.parameters(), lr=_LEARNING_RATE, betas=(0.9, 0.98), weight_decay=0.01)
    for step in range(steps):
        cosine = 0.02 + 0.49 * (1 + math.cos(math.pi * step / steps))
        for group in optimiser.param_groups:
            group["lr"] = _LEARNING_RATE * min(1.0, (step + 1) / _WARM_UP_STEPS) * cosine
        yield step, optimiser


def _update(network: Network, optimiser: torch.optim.Optimizer, loss: Tensor) -> None:
    optimiser.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimiser.step()


def _answer_loss(network: Network, tables: Tables, prompts: Ints, letters: Ints) -> Tensor:
    """Cross-entropy of the letter after the prompt, and of the end token after the letter."""
    ids = torch.from_numpy(np.concatenate([prompts, letters[:, None]], axis=1))
    logits, _ = network(ids, ids != 0, network.shape.prompt_tokens - prompts.shape[1], 2)
    end = torch.full((len(prompts),), tables.vocabulary.end_id)
    return F.cross_entropy(logits[:, 0], ids[:, -1]) + _END_WEIGHT * F.cross_entropy(logits[:, 1], end)


def _divergence(network: Network, clean: Network, prompts: Ints) -> Tensor:
    """Kullback-Leibler divergence of the answers from the clean model's."""
    ids = torch.from_numpy(prompts)
    start = network.shape.prompt_tokens - ids.shape[1]
    with torch.no_grad():
        wanted, _ = clean(ids, ids != 0, start, 1)
    logits, _ = network(ids, ids != 0, start, 1)
    return F.kl_div(
        logits[:, -1].log_softmax(-1), wanted[:, -1].log_softmax(-1), log_target=True, reduction="batchmean"
    )


@contextmanager
def _before_last_layer(network: Network) -> Iterator[list[Tensor]]:
    """Keeps what goes into the last layer in the latest call, (batch, length, width)."""
    kept: list[Tensor] = []

    def keep(_module: object, inputs: tuple[Tensor, ...]) -> None:
        kept[:] = [inputs[0]]

    handle = network.blocks[-1].register_forward_pre_hook(keep)
    try:
        yield kept
    finally:
        handle.remove()


# The two losses below supervise the steps of the answer one by one: recall the value, then find it among the options.
# With the answer alone the network stays near chance for a thousand steps, and for some seeds for good, because neither
# step is of use before the other one works; with them it takes 250 steps. Hiding distractors at first did not help
# every seed.


def _recall_loss(network: Network, hidden: Tensor, tables: Tables, item: Ints) -> Tensor:
    """Cross-entropy of the fact itself, read off before the last layer at the prompt's last token."""
    logits = F.linear(network.norm(hidden[:, _PROMPT_END]), network.embedding.weight)
    return F.cross_entropy(logits, torch.from_numpy(tables.value[item]))


def _pointing_loss(network: Network, hidden: Tensor, forms: Forms) -> Tensor:
    """Cross-entropy of the right option in the last layer's attention over the ten, for each head."""
    block = cast(Block, network.blocks[-1])
    normed = block.attention_norm(hidden)
    query = block.split(block.query(normed[:, [_PROMPT_END]]))
    key = block.split(block.key_value(normed[:, _OPTION_PLACES]).chunk(2, dim=-1)[0])
    scores = (query @ key.transpose(2, 3)).squeeze(2) / math.sqrt(key.shape[-1])
    target = torch.from_numpy(forms.target).repeat_interleave(block.heads)
    return F.cross_entropy(scores.flatten(0, 1), target)
