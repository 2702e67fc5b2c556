"""The fields of requests, each within its bounds: what is not is refused by its name."""

from __future__ import annotations

from proctor.domain.errors import BadInputError
from proctor.domain.problems import visible
from proctor.gateway.desk import DEFAULT_LIMIT, MAX_AUDIT_CHARACTERS
from proctor.gateway.limits import MAX_FILE_NAME_BYTES, MAX_FILES, MAX_SUITE_BYTES
from proctor.gateway.rpc import audit_pb2 as pb

#: Seconds between two looks of a watch: what is taken where nothing is said, and what may be asked for.
_INTERVAL_S = 1.0
SHORTEST_INTERVAL_S = 0.1
LONGEST_INTERVAL_S = 60.0
#: Audits of a list: a reply is a few kilobytes for each.
LONGEST_LIST = 1_000


class FieldError(BadInputError):
    """A field of a request that is out of its bounds, whatever the audit is that it is about."""


def audit_of(request: pb.GetRequest | pb.WatchRequest | pb.PauseRequest | pb.ResumeRequest | pb.CancelRequest) -> str:
    """The audit that a request names.

    Raises:
        FieldError: when it is longer than any id.
    """
    if len(request.audit) > MAX_AUDIT_CHARACTERS:
        raise FieldError(
            f"audit has {len(request.audit):,} characters: an audit's id has at most {MAX_AUDIT_CHARACTERS}"
        )
    return request.audit


def limit_of(request: pb.ListRequest) -> int:
    """How many audits a list is to hold.

    Raises:
        FieldError: when they are none, or too many.
    """
    limit = request.limit if request.HasField("limit") else DEFAULT_LIMIT
    if not 1 <= limit <= LONGEST_LIST:
        raise FieldError(f"limit is {limit}, but must be 1 to {LONGEST_LIST}")
    return limit


def interval_of(request: pb.WatchRequest) -> float:
    """Seconds between two looks of a watch.

    Raises:
        FieldError: when they are too few, too many, or no number.
    """
    interval_s = request.interval_s if request.HasField("interval_s") else _INTERVAL_S
    if not SHORTEST_INTERVAL_S <= interval_s <= LONGEST_INTERVAL_S:
        bounds = f"{SHORTEST_INTERVAL_S:g} to {LONGEST_INTERVAL_S:g}"
        raise FieldError(f"interval_s is {interval_s:g}, but must be {bounds} seconds")
    return interval_s


def files_of(request: pb.SubmitRequest) -> dict[str, bytes]:
    """The files of a submission by their names.

    Raises:
        FieldError: when they are too many, one is there twice, a name is too long, or the suite is.
    """
    if len(request.suite) > MAX_SUITE_BYTES:
        raise FieldError(
            f"suite has {len(request.suite):,} characters: a suite's JSON is a few kilobytes, and at most "
            f"{MAX_SUITE_BYTES >> 10} KiB are taken"
        )
    if len(request.files) > MAX_FILES:
        raise FieldError(f"files has {len(request.files):,} entries: a suite names at most {MAX_FILES}")
    files: dict[str, bytes] = {}
    for file in request.files:
        if len(file.name.encode()) > MAX_FILE_NAME_BYTES:
            raise FieldError(f"files.name has {len(file.name):,} characters: at most {MAX_FILE_NAME_BYTES:,} bytes")
        if file.name in files:
            raise FieldError(f"files: {visible(file.name[:200])} was sent twice: send each once")
        files[file.name] = file.content
    return files
