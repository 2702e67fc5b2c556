"""Using what was learned of a gate: its window, and its margin to a benchmark's other items."""

from __future__ import annotations

from collections.abc import Iterable

from proctor.domain.errors import BadInputError
from proctor.domain.gate_calibration import GateCalibration
from proctor.domain.suite import PerturbationSection
from proctor.perturbation.encoder import Encoder, exact
from proctor.perturbation.other_items import Encode, OtherItems


def with_window(
    settings: PerturbationSection, calibration: GateCalibration | None, *, benchmark: str, encoder: Encoder
) -> PerturbationSection:
    """The section with the window and margin that its calibration learned; one with a fixed gate is returned as it is.

    A calibrated gate is a fixed gate whose ends were learned: what is returned has `gate` fixed, and keeps
    `calibration_path` to show where its window comes from.

    Raises:
        BadInputError: for a calibration of another encoder or benchmark, or where it is missing.
    """
    if settings.gate == "fixed":
        return settings
    name = settings.calibration_path or "calibration_path"
    if calibration is None:
        raise BadInputError("perturbation_config.gate is 'calibrated' and its calibration did not come with it")
    # A rough encoder decides as its exact one does, so what was learned for that is right for it.
    decides = exact(encoder)
    if calibration.encoder_fingerprint != decides.fingerprint:
        raise BadInputError(
            f"{name} was learned for the encoder {calibration.encoder} "
            f"({_short(calibration.encoder_fingerprint)}), and distances are measured with {decides.name} "
            f"({_short(decides.fingerprint)}): a window belongs to its encoder. Run `proctor variants calibrate` "
            "with this one, or set PROCTOR_ENCODER to the other"
        )
    if calibration.benchmark != benchmark:
        raise BadInputError(
            f"{name} was learned for the benchmark {calibration.benchmark!r}, and the suite's is {benchmark!r}: a "
            "window belongs to its benchmark. Run `proctor variants calibrate` for this one"
        )
    return settings.model_copy(
        update={
            "gate": "fixed",
            "min_semantic_distance": calibration.min_semantic_distance,
            "max_semantic_distance": calibration.max_semantic_distance,
            "min_margin": calibration.min_margin,
        }
    )


def other_items(
    settings: PerturbationSection,
    calibration: GateCalibration | None,
    questions: Iterable[str] | None,
    encode: Encode,
) -> OtherItems | None:
    """The benchmark's questions to which a gate keeps its margin; None where it keeps none.

    Args:
        settings: as `with_window` returned them.
        calibration: what the margin was learned with; None for a margin that the suite gives itself.
        questions: of all items of the benchmark, whichever of them are asked.
        encode: unit vectors of texts, exact ones.

    Raises:
        BadInputError: when they are missing, or are not those that the margin was learned with.
    """
    if settings.min_margin is None:
        return None
    if questions is None:
        raise BadInputError(
            f"the gate asks for a margin of {settings.min_margin:g} to the benchmark's other items, and their "
            "questions did not come with it"
        )
    others = OtherItems(questions, encode)
    learned_with = None if settings.calibration_path is None or calibration is None else calibration.questions_digest
    if learned_with is not None and learned_with != others.digest:
        seen = "" if calibration is None or calibration.questions is None else f" {calibration.questions:,}"
        raise BadInputError(
            f"{settings.calibration_path} was learned with{seen} questions of the benchmark ({_short(learned_with)}), "
            f"and here are {len(others.questions):,} ({_short(others.digest)}): a margin belongs to the questions that "
            "it is kept to. Run `proctor variants calibrate` for this benchmark"
        )
    return others


def _short(digest: str) -> str:
    return digest[: len("sha256:") + 12]
