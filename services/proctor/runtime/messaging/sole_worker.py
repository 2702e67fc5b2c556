"""What the former worker of a service had in hand, given back to the queue when it is known to be dead.

The broker cannot know it, and waits for the visibility timeout. In a local stack there is one worker a service, which
its supervisor starts when the former one is gone: nobody else can have a message of its queues in hand.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection
from typing import Any, Final

logger = logging.getLogger(__name__)

#: Set by the supervisor's plan for its workers, and by nobody who runs several.
SOLE_VARIABLE: Final = "PROCTOR_SOLE_WORKER"


def give_back_what_the_former_had(app: Any, queues: Collection[str]) -> int:
    """Put the unacknowledged messages of these queues back to where they came from; gives how many.

    Where the broker does not answer, they are redelivered by their visibility timeout.
    """
    # Whoever lays out a stack imports this module for its variable's name alone.
    from kombu.exceptions import OperationalError
    from redis.exceptions import RedisError

    given_back = 0
    try:
        with app.connection_for_write() as connection:
            channel = connection.default_channel
            for tag, entry in channel.client.hgetall(channel.unacked_key).items():
                _, _, routing_key = json.loads(entry)
                if routing_key in queues:
                    channel.qos.restore_by_tag(tag)
                    given_back += 1
    except (OperationalError, RedisError, OSError) as error:
        logger.warning("what the former worker had in hand waits for its visibility timeout: %s", error)
    if given_back:
        logger.info("%d that the former worker had in hand are taken again", given_back)
    return given_back
