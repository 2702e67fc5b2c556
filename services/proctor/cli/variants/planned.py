"""The prompts that an audit by a suite would ask its model, worked out from the library in this process."""

from __future__ import annotations

from collections.abc import Callable

from proctor.cli.variants.building import Ask, build_suite
from proctor.cli.variants.opening import SuiteVariants
from proctor.domain.errors import BadInputError
from proctor.domain.suite import Suite
from proctor.domain.trial import Trial
from proctor.perturbation.library.store import VariantLibrary
from proctor.router.plan import plan_trials


def hold_direct(suite: Suite) -> None:
    """Refuse a suite whose audit asks more than each wording once, directly.

    Raises:
        BadInputError: where it has prompt routers, fresh items, control items, replicates, or a stage of a plug-in.
    """
    if suite.protocol.asks_routers:
        raise BadInputError(
            f"{suite.audit_suite_id} asks through routers, whose messages only an audit brings about; use "
            "`proctor audit run`, or a suite whose protocol_config.protocol is direct"
        )
    if suite.fresh is not None:
        raise BadInputError(
            f"{suite.audit_suite_id} asks fresh items beside its benchmark, which only an audit does so far; use "
            "`proctor audit run`, or leave fresh_config out"
        )
    if suite.control is not None:
        raise BadInputError(
            f"{suite.audit_suite_id} asks control items beside its benchmark, which only an audit does so far; use "
            "`proctor audit run`, or leave control_config out"
        )
    if suite.decoding.replicates > 1:
        raise BadInputError(
            f"{suite.audit_suite_id} asks each prompt {suite.decoding.replicates} times, which only an audit does so "
            "far; use `proctor audit run`, or leave decoding_config.replicates out"
        )
    if suite.protocol.stages:
        raise BadInputError(
            f"{suite.audit_suite_id} has stages of plug-ins ({', '.join(suite.protocol.stages)}), which only an audit "
            "asks; use `proctor audit run`, or leave protocol_config.stages out"
        )


def planned_trials(
    opened: SuiteVariants, library: VariantLibrary, progress: Callable[[str], None], ask: Ask | None
) -> list[Trial]:
    """Every trial of the model under audit, in the order of the items. What the library lacks is made, and kept.

    An audit takes its variants from the same library under the same keys, so these are its trials.

    Args:
        opened: the suite.
        library: of the home in which it is to be audited.
        progress: told now and then how far the rewording is.
        ask: asks the rewording model; where it is None and one is needed, the suite is refused.

    Raises:
        BadInputError: where too few items get a variant, a model would have to be asked, or a prompt is too large.
        EncoderError: when distances cannot be measured.
    """
    build_suite(opened, library, progress, ask)
    variants = [variant for entry in opened.entries(library) for variant in entry.variants]
    return list(plan_trials(opened.items, variants, opened.suite.prompt))
