"""The strategies that ask a model, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from proctor.perturbation.strategies.model.back_translation import BackTranslation
from proctor.perturbation.strategies.model.instructed import ForwardFull, NoisyRewrite, ParaphraseLlm
from proctor.perturbation.strategies.model.strategy import ModelStrategy, RewordingModel

ASKING_STRATEGIES: Final[Mapping[str, Callable[[RewordingModel], ModelStrategy]]] = {
    "back_translation": BackTranslation,
    "forward_full": ForwardFull,
    "noisy_rewrite": NoisyRewrite,
    "paraphrase_llm": ParaphraseLlm,
}
