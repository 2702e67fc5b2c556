"""A round of prompts for the model that rewords: of bounded bytes, however many it needs in all."""

from __future__ import annotations

import pytest

from proctor.domain.trial import Arm, Trial
from proctor.perturbation import tasks


def test_a_round_asks_no_more_than_its_bytes_or_one_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "MAX_ROUND_BYTES", 1000)
    trials = [Trial(stage="paraphrase", arm=Arm.PERTURBED, item_id=f"q{n}", prompt="é" * 150) for n in range(10)]
    assert tasks._of_one_round(trials) == tuple(trials[:3])
    assert tasks._of_one_round([trials[0].model_copy(update={"prompt": "x" * 5000}), *trials]) != ()
    assert len(tasks._of_one_round([trials[0].model_copy(update={"prompt": "x" * 5000}), *trials])) == 1
    assert tasks._of_one_round(trials[:2]) == tuple(trials[:2])
