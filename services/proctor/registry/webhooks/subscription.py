"""Having MLflow send its events to a gateway: the one webhook of that name, wherever the gateway listens now."""

from __future__ import annotations

from typing import Final

from proctor.registry.mlflow_client import MlflowClient

NAME: Final = "proctor-gateway"
#: Where a gateway takes MLflow's deliveries.
PATH: Final = "/v1/webhooks/mlflow"
#: What a gateway does something about: the alias, where its trigger file names one.
_EVENTS: Final = (("model_version", "created"), ("model_version_alias", "created"))


def subscribe(client: MlflowClient, gateway: str, secret: str) -> str:
    """Have every event be sent to a gateway from now on, and to no earlier address of it; returns the address.

    Args:
        client: calls to the server.
        gateway: the address of the gateway's HTTP, e.g. `http://127.0.0.1:8080`.
        secret: what deliveries are signed with, which the gateway knows.

    Raises:
        RegistryError: when the server cannot be reached, or refuses; e.g. for an address that it does not send to.
    """
    url = gateway.rstrip("/") + PATH
    # Its address cannot be compared: a stack's ports are others each time.
    for webhook in client.webhooks():
        if webhook.name == NAME:
            client.delete_webhook(webhook.id)
    client.create_webhook(NAME, url=url, secret=secret, events=_EVENTS)
    return url
