"""Answering reviews: what stands is looked up for each, within the time that the API server waits."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any, NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from proctor.domain.admission.reference import ModelReference
from proctor.domain.admission.verdict import Verdict
from proctor.domain.errors import BadInputError, ProctorError
from proctor.gateway.admission.answer import Answer, Mode, OnError, answer_of, failed, not_concerned, unreadable
from proctor.gateway.admission.review import Review, answered
from proctor.gateway.front import said_of_the_records
from proctor.runtime.metrics import recording as metrics
from proctor.runtime.verdicts import Verdicts

logger = logging.getLogger(__name__)


class Terms(NamedTuple):
    """How reviews are answered."""

    on_error: OnError = OnError.REFUSE
    within_s: float = 3.0
    """Below the webhook's `timeoutSeconds`: past that the API server goes by its failure policy, and has no reason."""


class AdmissionDesk:
    """Who answers reviews.

    Args:
        verdicts: who is asked about versions.
        workers: threads in which the record store is asked.
        terms: how reviews are answered.
    """

    def __init__(self, verdicts: Verdicts, workers: Executor, terms: Terms) -> None:
        self._verdicts = verdicts
        self._workers = workers
        self._terms = terms

    async def answer(self, review: Review, mode: Mode) -> dict[str, Any]:
        """The review that goes back. Nothing is changed by it, so a dry run is answered as any other."""
        started_s = time.monotonic()
        answer = await self._answer(review, mode) if review.concerned else not_concerned()
        metrics.admission_review(answer.decision, answer.reason)
        metrics.admission_answered(time.monotonic() - started_s)
        return answered(review, answer.response)

    async def _answer(self, review: Review, mode: Mode) -> Answer:
        try:
            versions = review.versions()
        except BadInputError as error:
            return unreadable(mode, str(error))
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._terms.within_s):
                verdicts = await loop.run_in_executor(self._workers, self._look_up, versions)
        except TimeoutError:
            why = f"the record store did not answer within {self._terms.within_s:g} s"
        except SQLAlchemyError as error:
            why = said_of_the_records(error)
        except ProctorError as error:
            why = str(error)
        except Exception:
            logger.exception("a review could not be answered")
            why = "the gateway failed"
        else:
            return answer_of(mode, verdicts, only_own=review.makes_pods and review.now.only_own)
        logger.error("an admission review is answered without a look (%s): %s", self._terms.on_error.value, why)
        return failed(mode, self._terms.on_error, " ".join(why.split())[:300])

    def _look_up(self, versions: Sequence[ModelReference]) -> list[Verdict]:
        return [self._verdicts.on(one) for one in versions]
