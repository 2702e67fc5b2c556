"""What a stream of items came to, counted as it passes."""

from __future__ import annotations

from collections import Counter

from proctor.perturbation.serving.rpc import perturbation_pb2 as pb


class Tally:
    """Counts over the replies of one stream; no reply is kept."""

    def __init__(self) -> None:
        self.items = 0
        self._served = 0
        self._from_library = 0
        self._variants = 0
        self._reasons: Counter[str] = Counter()

    def add(self, reply: pb.ItemReply) -> None:
        """Count one item."""
        self.items += 1
        self._served += bool(reply.variants)
        self._from_library += reply.from_library
        self._variants += len(reply.variants)
        self._reasons.update(rejection.reason for rejection in reply.rejections)

    def summary(self, *, min_yield: float, encoder: str) -> pb.Summary:
        """The stream's last message. A stream without items reaches no yield, because it audits nothing."""
        reached = self._served > 0 and self._served >= min_yield * self.items
        return pb.Summary(
            items=self.items,
            items_with_variants=self._served,
            items_from_library=self._from_library,
            variants=self._variants,
            rejections_by_reason=self._reasons,
            yield_reached=reached,
            conclusion=self._conclusion(min_yield, reached),
            encoder=encoder,
        )

    def _conclusion(self, min_yield: float, reached: bool) -> str:
        if not self.items:
            return "The stream held no items."
        share = (
            f"{self._served} of {self.items} item{'s' if self.items != 1 else ''} got a variant "
            f"({self._variants} in all), {'which reaches' if reached else 'below'} the min_yield of {min_yield:g}"
        )
        ranked = sorted(self._reasons.items(), key=lambda pair: (-pair[1], pair[0]))
        turned_away = ", ".join(f"{count} {reason}" for reason, count in ranked)
        return f"{share}; rejected: {turned_away}." if turned_away else f"{share}."
