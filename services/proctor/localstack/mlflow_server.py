"""`python -m proctor.localstack.mlflow_server FOLDER PORT [HOST [STORE]]`: MLflow's own server, in one process.

`mlflow server` imports MLflow, prepares the database, and then starts a second process that imports it all again to
serve. Doing both in one process halves the start (4.7 s instead of 10.2 s on two cores, 0.25 GB instead of 0.5).
The application, the database set-up and the variables that join them are MLflow's. In front of all of it stands a
user name and a password, because loopback is shared by every user of the machine. (MLflow's own `basic-auth` app has
users and permissions, for which it needs another database and another package, and guards one route after the other.)
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import tempfile
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from proctor.domain.host import LOOPBACK
from proctor.localstack.basic_auth import BasicAuth
from proctor.runtime.garbage import collect_seldom

#: What is asked for; the password comes in the environment, which only the owner of a process can read.
USER: Final = "proctor"
PASSWORD_VARIABLE: Final = "PROCTOR_MLFLOW_PASSWORD"  # noqa: S105, the name of a variable
#: Of a request line and its headers, which are read before anybody is asked who he is.
MAX_HEAD_BYTES: Final = 64 << 10


def main() -> None:
    """Serve FOLDER (SQLite database and artifacts) on 127.0.0.1:PORT until SIGTERM, to who knows the password.

    An image gives another HOST to listen on, and may give another STORE than the folder's database.
    """
    collect_seldom()
    folder, port = Path(sys.argv[1]).absolute(), int(sys.argv[2])
    host, *stores = sys.argv[3:] or [LOOPBACK]
    password = os.environ.pop(PASSWORD_VARIABLE, "")
    if not password:
        sys.exit(f"{PASSWORD_VARIABLE} is not set, and without it every user of this machine could write here")
    folder.mkdir(parents=True, exist_ok=True)
    database = folder / "mlflow.db"
    store = stores[0] if stores else f"sqlite:///{database}"
    # Read while MLflow is imported, so they come before any import of it. So does uvicorn: only when that is loaded
    # does MLflow put its Host and CORS checks, which keep a browser's pages out, into the Flask part.
    os.environ.update(
        MLFLOW_DISABLE_TELEMETRY="true",
        DO_NOT_TRACK="true",
        MLFLOW_SERVER_ENABLE_JOB_EXECUTION="false",
        GIT_PYTHON_REFRESH="quiet",
    )
    import uvicorn
    from mlflow.server import constants

    os.environ.update(
        {
            constants.BACKEND_STORE_URI_ENV_VAR: store,
            constants.REGISTRY_STORE_URI_ENV_VAR: store,
            constants.ARTIFACT_ROOT_ENV_VAR: "mlflow-artifacts:/",
            constants.ARTIFACTS_DESTINATION_ENV_VAR: str(folder / "artifacts"),
            constants.SERVE_ARTIFACTS_ENV_VAR: "true",
        }
    )
    from mlflow.server.fastapi_app import app
    from mlflow.server.handlers import initialize_backend_stores
    from mlflow.version import VERSION

    empty = Path(sys.prefix) / "share" / "proctor" / f"mlflow-{VERSION}-empty.db"
    is_new = not stores and not database.exists()
    if is_new and empty.is_file():
        _copy_atomic(empty, database)
    initialize_backend_stores(store, store, "mlflow-artifacts:/")
    if is_new and not empty.is_file():
        _keep(database, empty)
    guarded = BasicAuth(app, USER, password, realm="MLflow of a local Proctor stack")
    uvicorn.run(
        guarded,
        host=host,
        port=port,
        log_level="warning",
        timeout_graceful_shutdown=2,
        # The other parser that uvicorn knows keeps whatever comes before a request's body.
        http="h11",
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
    )


def _keep(database: Path, empty: Path) -> None:
    """Keep a freshly migrated database for the next new home: 60 migrations take 6 s on two idle cores."""
    # An environment that cannot be written to migrates every time.
    with suppress(OSError, sqlite3.Error):
        empty.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=empty.parent) as folder:
            copy = Path(folder) / empty.name
            # SQLite's own backup: the file alone may lack what is still in the log beside it.
            with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(copy)) as target:
                source.backup(target)
            # Every user of this environment starts from it; a stack's own umask would keep it from the others.
            copy.chmod(0o644)
            copy.replace(empty)


def _copy_atomic(source: Path, target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        copy = Path(folder) / target.name
        shutil.copyfile(source, copy)
        copy.replace(target)


if __name__ == "__main__":
    main()
