"""How often routers and the worker behind them will be asked, for the plan of an audit. Pure."""

from __future__ import annotations

from proctor.domain.suite import Suite


def router_calls(suite: Suite, items: int) -> tuple[int, int]:
    """Messages that the routers write, and answers to the prompts made of them; none where no routers are asked."""
    protocol = suite.protocol
    if not protocol.asks_routers:
        return 0, 0
    routers = {
        (condition.kind, route) for condition in protocol.conditions for route in condition.routes(protocol.sampling)
    }
    return items * len(routers), items * len(protocol.conditions)


def router_note(suite: Suite, items: int) -> str | None:
    """What the router–worker protocol comes to, in a sentence; None where the suite does not ask routers."""
    protocol = suite.protocol
    if not protocol.asks_routers:
        return None
    messages, answers = router_calls(suite, items)
    return (
        f"the routers ({protocol.router.model or suite.model.model_id}) write {messages:,} messages of at most "
        f"{protocol.router.decoding.max_tokens:,} tokens each, and the model answers {answers:,} prompts made of them, "
        "which hold up to as many messages as there are routers; neither is counted in the table"
    )
