"""What of a suite's plug-ins is installed and cannot be used, found by loading them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from proctor.domain.backends import BACKENDS
from proctor.domain.errors import PluginError
from proctor.domain.problems import Problem, SuiteProblems
from proctor.domain.strategies import STRATEGIES
from proctor.domain.suite import Suite
from proctor.inference.worker.open_backend import server_class
from proctor.perturbation.strategies.registry import strategy_class
from proctor.router.stages.registry import stages_with
from proctor.scorer.channels.registry import CHANNELS, plugins_of


def hold_usable(suite: Suite, source: str) -> None:
    """Load the plug-ins that a suite names, and refuse it where one of them cannot be used.

    Args:
        source: the suite's file, for messages.

    Raises:
        SuiteProblems: with every plug-in that cannot.
    """
    problems = [problem for field, load in _plugins(suite) if (problem := _problem(field, load)) is not None]
    if problems:
        raise SuiteProblems(problems, source)


def _problem(field: str, load: Callable[[], object]) -> Problem | None:
    try:
        load()
    except PluginError as error:
        return Problem(field, "", error.fault, error.mend)
    return None


def _plugins(suite: Suite) -> Iterator[tuple[str, Callable[[], object]]]:
    """The field that names each plug-in, and what loads it."""
    backends = {
        "model_config.backend": suite.model.backend,
        "perturbation_config.paraphraser.backend": suite.perturbation.paraphraser.backend,
        "protocol_config.router.backend": suite.protocol.router.backend,
    }
    for field, name in backends.items():
        if name is not None and name not in BACKENDS.built_in:
            yield field, partial(server_class, name)
    for name in suite.perturbation.perturbation_strategy.split("+"):
        if name not in STRATEGIES.built_in:
            yield "perturbation_config.perturbation_strategy", partial(strategy_class, name)
    for kind in suite.protocol.stages:
        yield "protocol_config.stages", partial(stages_with, (kind,))
    for name in plugins_of(suite):
        yield "scoring_config.required_channels", partial(CHANNELS.get, name)
