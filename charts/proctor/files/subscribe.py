"""Has the chart's MLflow tell the gateway of what is registered, wherever the gateway is now."""

import os
import sys
import time

from proctor.cli.terminal import say
from proctor.domain.errors import ProctorError
from proctor.registry.mlflow_client import MlflowClient
from proctor.registry.webhooks.subscription import subscribe

#: MLflow starts beside this; the job's deadline ends the tries.
RETRY_S = 2.0

secret = os.environ["PROCTOR_GATEWAY_MLFLOW_SECRETS"].splitlines()[0]
while True:
    try:
        with MlflowClient(os.environ["PROCTOR_REGISTRY_URI"]) as client:
            say(f"deliveries go to {subscribe(client, sys.argv[1], secret)}")
        break
    except ProctorError as error:
        say(f"not yet: {error}")
        time.sleep(RETRY_S)
