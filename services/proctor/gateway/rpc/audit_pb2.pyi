from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Priority(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PRIORITY_UNSPECIFIED: _ClassVar[Priority]
    PRIORITY_HIGH: _ClassVar[Priority]
    PRIORITY_NORMAL: _ClassVar[Priority]
    PRIORITY_LOW: _ClassVar[Priority]

class AuditState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AUDIT_STATE_UNSPECIFIED: _ClassVar[AuditState]
    AUDIT_STATE_CREATED: _ClassVar[AuditState]
    AUDIT_STATE_PROBING: _ClassVar[AuditState]
    AUDIT_STATE_REWORDING: _ClassVar[AuditState]
    AUDIT_STATE_PARAPHRASING: _ClassVar[AuditState]
    AUDIT_STATE_TRANSMITTING: _ClassVar[AuditState]
    AUDIT_STATE_ASKING: _ClassVar[AuditState]
    AUDIT_STATE_ANSWERING: _ClassVar[AuditState]
    AUDIT_STATE_SCORING: _ClassVar[AuditState]
    AUDIT_STATE_REGISTERING: _ClassVar[AuditState]
    AUDIT_STATE_DECIDED: _ClassVar[AuditState]
    AUDIT_STATE_FAILED: _ClassVar[AuditState]
    AUDIT_STATE_CANCELLED: _ClassVar[AuditState]

class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OUTCOME_UNSPECIFIED: _ClassVar[Outcome]
    OUTCOME_APPROVE: _ClassVar[Outcome]
    OUTCOME_REVIEW: _ClassVar[Outcome]
    OUTCOME_BLOCK: _ClassVar[Outcome]
PRIORITY_UNSPECIFIED: Priority
PRIORITY_HIGH: Priority
PRIORITY_NORMAL: Priority
PRIORITY_LOW: Priority
AUDIT_STATE_UNSPECIFIED: AuditState
AUDIT_STATE_CREATED: AuditState
AUDIT_STATE_PROBING: AuditState
AUDIT_STATE_REWORDING: AuditState
AUDIT_STATE_PARAPHRASING: AuditState
AUDIT_STATE_TRANSMITTING: AuditState
AUDIT_STATE_ASKING: AuditState
AUDIT_STATE_ANSWERING: AuditState
AUDIT_STATE_SCORING: AuditState
AUDIT_STATE_REGISTERING: AuditState
AUDIT_STATE_DECIDED: AuditState
AUDIT_STATE_FAILED: AuditState
AUDIT_STATE_CANCELLED: AuditState
OUTCOME_UNSPECIFIED: Outcome
OUTCOME_APPROVE: Outcome
OUTCOME_REVIEW: Outcome
OUTCOME_BLOCK: Outcome

class SubmitRequest(_message.Message):
    __slots__ = ("suite", "files", "priority")
    SUITE_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    suite: str
    files: _containers.RepeatedCompositeFieldContainer[SuiteFile]
    priority: Priority
    def __init__(self, suite: _Optional[str] = ..., files: _Optional[_Iterable[_Union[SuiteFile, _Mapping]]] = ..., priority: _Optional[_Union[Priority, str]] = ...) -> None: ...

class SuiteFile(_message.Message):
    __slots__ = ("name", "content")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    name: str
    content: bytes
    def __init__(self, name: _Optional[str] = ..., content: _Optional[bytes] = ...) -> None: ...

class SubmitReply(_message.Message):
    __slots__ = ("audit", "stopped_at", "notes")
    AUDIT_FIELD_NUMBER: _ClassVar[int]
    STOPPED_AT_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    audit: Audit
    stopped_at: AuditState
    notes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, audit: _Optional[_Union[Audit, _Mapping]] = ..., stopped_at: _Optional[_Union[AuditState, str]] = ..., notes: _Optional[_Iterable[str]] = ...) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("audit",)
    AUDIT_FIELD_NUMBER: _ClassVar[int]
    audit: str
    def __init__(self, audit: _Optional[str] = ...) -> None: ...

class ListRequest(_message.Message):
    __slots__ = ("limit",)
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    limit: int
    def __init__(self, limit: _Optional[int] = ...) -> None: ...

class ListReply(_message.Message):
    __slots__ = ("audits",)
    AUDITS_FIELD_NUMBER: _ClassVar[int]
    audits: _containers.RepeatedCompositeFieldContainer[Audit]
    def __init__(self, audits: _Optional[_Iterable[_Union[Audit, _Mapping]]] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("audit", "interval_s")
    AUDIT_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_S_FIELD_NUMBER: _ClassVar[int]
    audit: str
    interval_s: float
    def __init__(self, audit: _Optional[str] = ..., interval_s: _Optional[float] = ...) -> None: ...

class PauseRequest(_message.Message):
    __slots__ = ("audit",)
    AUDIT_FIELD_NUMBER: _ClassVar[int]
    audit: str
    def __init__(self, audit: _Optional[str] = ...) -> None: ...

class ResumeRequest(_message.Message):
    __slots__ = ("audit",)
    AUDIT_FIELD_NUMBER: _ClassVar[int]
    audit: str
    def __init__(self, audit: _Optional[str] = ...) -> None: ...

class CancelRequest(_message.Message):
    __slots__ = ("audit",)
    AUDIT_FIELD_NUMBER: _ClassVar[int]
    audit: str
    def __init__(self, audit: _Optional[str] = ...) -> None: ...

class Audit(_message.Message):
    __slots__ = ("audit_id", "suite", "model_id", "state", "paused", "priority", "detail", "created_at", "stage", "trials", "failures", "spent", "rate", "eta_s", "decision", "away_s", "submitter", "services_away", "searching", "looks")
    AUDIT_ID_FIELD_NUMBER: _ClassVar[int]
    SUITE_FIELD_NUMBER: _ClassVar[int]
    MODEL_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    TRIALS_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    SPENT_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    ETA_S_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    AWAY_S_FIELD_NUMBER: _ClassVar[int]
    SUBMITTER_FIELD_NUMBER: _ClassVar[int]
    SERVICES_AWAY_FIELD_NUMBER: _ClassVar[int]
    SEARCHING_FIELD_NUMBER: _ClassVar[int]
    LOOKS_FIELD_NUMBER: _ClassVar[int]
    audit_id: str
    suite: str
    model_id: str
    state: AuditState
    paused: bool
    priority: Priority
    detail: str
    created_at: str
    stage: str
    trials: Trials
    failures: _containers.RepeatedCompositeFieldContainer[Failure]
    spent: Spent
    rate: float
    eta_s: float
    decision: Decision
    away_s: float
    submitter: str
    services_away: _containers.RepeatedScalarFieldContainer[str]
    searching: bool
    looks: Looks
    def __init__(self, audit_id: _Optional[str] = ..., suite: _Optional[str] = ..., model_id: _Optional[str] = ..., state: _Optional[_Union[AuditState, str]] = ..., paused: bool = ..., priority: _Optional[_Union[Priority, str]] = ..., detail: _Optional[str] = ..., created_at: _Optional[str] = ..., stage: _Optional[str] = ..., trials: _Optional[_Union[Trials, _Mapping]] = ..., failures: _Optional[_Iterable[_Union[Failure, _Mapping]]] = ..., spent: _Optional[_Union[Spent, _Mapping]] = ..., rate: _Optional[float] = ..., eta_s: _Optional[float] = ..., decision: _Optional[_Union[Decision, _Mapping]] = ..., away_s: _Optional[float] = ..., submitter: _Optional[str] = ..., services_away: _Optional[_Iterable[str]] = ..., searching: bool = ..., looks: _Optional[_Union[Looks, _Mapping]] = ...) -> None: ...

class Looks(_message.Message):
    __slots__ = ("sizes", "taken", "allowed_points", "blocked_points", "score_limit")
    SIZES_FIELD_NUMBER: _ClassVar[int]
    TAKEN_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_POINTS_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_POINTS_FIELD_NUMBER: _ClassVar[int]
    SCORE_LIMIT_FIELD_NUMBER: _ClassVar[int]
    sizes: _containers.RepeatedScalarFieldContainer[int]
    taken: _containers.RepeatedCompositeFieldContainer[Look]
    allowed_points: float
    blocked_points: float
    score_limit: float
    def __init__(self, sizes: _Optional[_Iterable[int]] = ..., taken: _Optional[_Iterable[_Union[Look, _Mapping]]] = ..., allowed_points: _Optional[float] = ..., blocked_points: _Optional[float] = ..., score_limit: _Optional[float] = ...) -> None: ...

class Look(_message.Message):
    __slots__ = ("n_items", "inflation", "score", "decision_chance")
    N_ITEMS_FIELD_NUMBER: _ClassVar[int]
    INFLATION_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    DECISION_CHANCE_FIELD_NUMBER: _ClassVar[int]
    n_items: int
    inflation: Bounds
    score: Bounds
    decision_chance: float
    def __init__(self, n_items: _Optional[int] = ..., inflation: _Optional[_Union[Bounds, _Mapping]] = ..., score: _Optional[_Union[Bounds, _Mapping]] = ..., decision_chance: _Optional[float] = ...) -> None: ...

class Bounds(_message.Message):
    __slots__ = ("value", "low", "high")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    value: float
    low: float
    high: float
    def __init__(self, value: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ...) -> None: ...

class Trials(_message.Message):
    __slots__ = ("planned", "done", "under_way", "dead")
    PLANNED_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    UNDER_WAY_FIELD_NUMBER: _ClassVar[int]
    DEAD_FIELD_NUMBER: _ClassVar[int]
    planned: int
    done: int
    under_way: int
    dead: int
    def __init__(self, planned: _Optional[int] = ..., done: _Optional[int] = ..., under_way: _Optional[int] = ..., dead: _Optional[int] = ...) -> None: ...

class Failure(_message.Message):
    __slots__ = ("cause", "shards")
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    SHARDS_FIELD_NUMBER: _ClassVar[int]
    cause: str
    shards: int
    def __init__(self, cause: _Optional[str] = ..., shards: _Optional[int] = ...) -> None: ...

class Spent(_message.Message):
    __slots__ = ("trials", "input_tokens", "output_tokens")
    TRIALS_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    trials: int
    input_tokens: int
    output_tokens: int
    def __init__(self, trials: _Optional[int] = ..., input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ...) -> None: ...

class Decision(_message.Message):
    __slots__ = ("outcome", "reasons", "report_path", "report_digest", "registry_version", "scope", "stands", "weights")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    REPORT_PATH_FIELD_NUMBER: _ClassVar[int]
    REPORT_DIGEST_FIELD_NUMBER: _ClassVar[int]
    REGISTRY_VERSION_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    STANDS_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    outcome: Outcome
    reasons: _containers.RepeatedCompositeFieldContainer[DecisionReason]
    report_path: str
    report_digest: str
    registry_version: str
    scope: str
    stands: Standing
    weights: str
    def __init__(self, outcome: _Optional[_Union[Outcome, str]] = ..., reasons: _Optional[_Iterable[_Union[DecisionReason, _Mapping]]] = ..., report_path: _Optional[str] = ..., report_digest: _Optional[str] = ..., registry_version: _Optional[str] = ..., scope: _Optional[str] = ..., stands: _Optional[_Union[Standing, _Mapping]] = ..., weights: _Optional[str] = ...) -> None: ...

class Standing(_message.Message):
    __slots__ = ("outcome", "kind", "by", "reason", "reference", "at", "expires_at", "sequence")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    outcome: Outcome
    kind: str
    by: SignedBy
    reason: str
    reference: str
    at: str
    expires_at: str
    sequence: int
    def __init__(self, outcome: _Optional[_Union[Outcome, str]] = ..., kind: _Optional[str] = ..., by: _Optional[_Union[SignedBy, _Mapping]] = ..., reason: _Optional[str] = ..., reference: _Optional[str] = ..., at: _Optional[str] = ..., expires_at: _Optional[str] = ..., sequence: _Optional[int] = ...) -> None: ...

class SignedBy(_message.Message):
    __slots__ = ("name", "via")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VIA_FIELD_NUMBER: _ClassVar[int]
    name: str
    via: str
    def __init__(self, name: _Optional[str] = ..., via: _Optional[str] = ...) -> None: ...

class DecisionReason(_message.Message):
    __slots__ = ("code", "text")
    CODE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    code: str
    text: str
    def __init__(self, code: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...
