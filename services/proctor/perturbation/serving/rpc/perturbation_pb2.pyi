from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PerturbRequest(_message.Message):
    __slots__ = ("settings", "item", "question")
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    settings: StreamSettings
    item: Item
    question: str
    def __init__(self, settings: _Optional[_Union[StreamSettings, _Mapping]] = ..., item: _Optional[_Union[Item, _Mapping]] = ..., question: _Optional[str] = ...) -> None: ...

class PerturbReply(_message.Message):
    __slots__ = ("item", "summary")
    ITEM_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    item: ItemReply
    summary: Summary
    def __init__(self, item: _Optional[_Union[ItemReply, _Mapping]] = ..., summary: _Optional[_Union[Summary, _Mapping]] = ...) -> None: ...

class MeasureRequest(_message.Message):
    __slots__ = ("settings", "pair", "question")
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    PAIR_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    settings: StreamSettings
    pair: Pair
    question: str
    def __init__(self, settings: _Optional[_Union[StreamSettings, _Mapping]] = ..., pair: _Optional[_Union[Pair, _Mapping]] = ..., question: _Optional[str] = ...) -> None: ...

class CalibrateRequest(_message.Message):
    __slots__ = ("settings", "pair", "question")
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    PAIR_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    settings: CalibrationSettings
    pair: LabelledPair
    question: str
    def __init__(self, settings: _Optional[_Union[CalibrationSettings, _Mapping]] = ..., pair: _Optional[_Union[LabelledPair, _Mapping]] = ..., question: _Optional[str] = ...) -> None: ...

class StreamSettings(_message.Message):
    __slots__ = ("perturbation_config", "benchmark", "calibration")
    PERTURBATION_CONFIG_FIELD_NUMBER: _ClassVar[int]
    BENCHMARK_FIELD_NUMBER: _ClassVar[int]
    CALIBRATION_FIELD_NUMBER: _ClassVar[int]
    perturbation_config: PerturbationConfig
    benchmark: str
    calibration: str
    def __init__(self, perturbation_config: _Optional[_Union[PerturbationConfig, _Mapping]] = ..., benchmark: _Optional[str] = ..., calibration: _Optional[str] = ...) -> None: ...

class CalibrationSettings(_message.Message):
    __slots__ = ("perturbation_config", "benchmark", "true_admits", "false_admits")
    PERTURBATION_CONFIG_FIELD_NUMBER: _ClassVar[int]
    BENCHMARK_FIELD_NUMBER: _ClassVar[int]
    TRUE_ADMITS_FIELD_NUMBER: _ClassVar[int]
    FALSE_ADMITS_FIELD_NUMBER: _ClassVar[int]
    perturbation_config: PerturbationConfig
    benchmark: str
    true_admits: float
    false_admits: float
    def __init__(self, perturbation_config: _Optional[_Union[PerturbationConfig, _Mapping]] = ..., benchmark: _Optional[str] = ..., true_admits: _Optional[float] = ..., false_admits: _Optional[float] = ...) -> None: ...

class PerturbationConfig(_message.Message):
    __slots__ = ("perturbation_strategy", "seed", "num_variants_per_item", "min_semantic_distance", "max_semantic_distance", "max_token_overlap", "min_yield", "max_containment", "min_edit_distance", "gate", "strict_relations", "min_margin")
    PERTURBATION_STRATEGY_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    NUM_VARIANTS_PER_ITEM_FIELD_NUMBER: _ClassVar[int]
    MIN_SEMANTIC_DISTANCE_FIELD_NUMBER: _ClassVar[int]
    MAX_SEMANTIC_DISTANCE_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKEN_OVERLAP_FIELD_NUMBER: _ClassVar[int]
    MIN_YIELD_FIELD_NUMBER: _ClassVar[int]
    MAX_CONTAINMENT_FIELD_NUMBER: _ClassVar[int]
    MIN_EDIT_DISTANCE_FIELD_NUMBER: _ClassVar[int]
    GATE_FIELD_NUMBER: _ClassVar[int]
    STRICT_RELATIONS_FIELD_NUMBER: _ClassVar[int]
    MIN_MARGIN_FIELD_NUMBER: _ClassVar[int]
    perturbation_strategy: str
    seed: int
    num_variants_per_item: int
    min_semantic_distance: float
    max_semantic_distance: float
    max_token_overlap: float
    min_yield: float
    max_containment: float
    min_edit_distance: float
    gate: str
    strict_relations: bool
    min_margin: float
    def __init__(self, perturbation_strategy: _Optional[str] = ..., seed: _Optional[int] = ..., num_variants_per_item: _Optional[int] = ..., min_semantic_distance: _Optional[float] = ..., max_semantic_distance: _Optional[float] = ..., max_token_overlap: _Optional[float] = ..., min_yield: _Optional[float] = ..., max_containment: _Optional[float] = ..., min_edit_distance: _Optional[float] = ..., gate: _Optional[str] = ..., strict_relations: bool = ..., min_margin: _Optional[float] = ...) -> None: ...

class Item(_message.Message):
    __slots__ = ("item_id", "question", "choices", "target", "dimension", "metadata", "rewordings")
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    CHOICES_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    DIMENSION_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    REWORDINGS_FIELD_NUMBER: _ClassVar[int]
    item_id: str
    question: str
    choices: _containers.RepeatedScalarFieldContainer[str]
    target: str
    dimension: str
    metadata: _struct_pb2.Struct
    rewordings: _containers.RepeatedCompositeFieldContainer[Wording]
    def __init__(self, item_id: _Optional[str] = ..., question: _Optional[str] = ..., choices: _Optional[_Iterable[str]] = ..., target: _Optional[str] = ..., dimension: _Optional[str] = ..., metadata: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., rewordings: _Optional[_Iterable[_Union[Wording, _Mapping]]] = ...) -> None: ...

class Wording(_message.Message):
    __slots__ = ("question", "choices")
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    CHOICES_FIELD_NUMBER: _ClassVar[int]
    question: str
    choices: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, question: _Optional[str] = ..., choices: _Optional[_Iterable[str]] = ...) -> None: ...

class Pair(_message.Message):
    __slots__ = ("original", "rewording")
    ORIGINAL_FIELD_NUMBER: _ClassVar[int]
    REWORDING_FIELD_NUMBER: _ClassVar[int]
    original: Item
    rewording: Wording
    def __init__(self, original: _Optional[_Union[Item, _Mapping]] = ..., rewording: _Optional[_Union[Wording, _Mapping]] = ...) -> None: ...

class LabelledPair(_message.Message):
    __slots__ = ("pair", "label", "nearest")
    class Label(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        LABEL_UNSPECIFIED: _ClassVar[LabelledPair.Label]
        LABEL_EQUIVALENT: _ClassVar[LabelledPair.Label]
        LABEL_DIFFERENT: _ClassVar[LabelledPair.Label]
    LABEL_UNSPECIFIED: LabelledPair.Label
    LABEL_EQUIVALENT: LabelledPair.Label
    LABEL_DIFFERENT: LabelledPair.Label
    PAIR_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    NEAREST_FIELD_NUMBER: _ClassVar[int]
    pair: Pair
    label: LabelledPair.Label
    nearest: bool
    def __init__(self, pair: _Optional[_Union[Pair, _Mapping]] = ..., label: _Optional[_Union[LabelledPair.Label, str]] = ..., nearest: bool = ...) -> None: ...

class ItemReply(_message.Message):
    __slots__ = ("index", "item_id", "variants", "rejections", "from_library")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    VARIANTS_FIELD_NUMBER: _ClassVar[int]
    REJECTIONS_FIELD_NUMBER: _ClassVar[int]
    FROM_LIBRARY_FIELD_NUMBER: _ClassVar[int]
    index: int
    item_id: str
    variants: _containers.RepeatedCompositeFieldContainer[Variant]
    rejections: _containers.RepeatedCompositeFieldContainer[Rejection]
    from_library: bool
    def __init__(self, index: _Optional[int] = ..., item_id: _Optional[str] = ..., variants: _Optional[_Iterable[_Union[Variant, _Mapping]]] = ..., rejections: _Optional[_Iterable[_Union[Rejection, _Mapping]]] = ..., from_library: bool = ...) -> None: ...

class Variant(_message.Message):
    __slots__ = ("variant_id", "item_hash", "strategy", "level", "question", "choices", "measurements", "provenance", "labels")
    VARIANT_ID_FIELD_NUMBER: _ClassVar[int]
    ITEM_HASH_FIELD_NUMBER: _ClassVar[int]
    STRATEGY_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    CHOICES_FIELD_NUMBER: _ClassVar[int]
    MEASUREMENTS_FIELD_NUMBER: _ClassVar[int]
    PROVENANCE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    variant_id: str
    item_hash: str
    strategy: str
    level: int
    question: str
    choices: _containers.RepeatedScalarFieldContainer[str]
    measurements: Measurements
    provenance: _struct_pb2.Struct
    labels: str
    def __init__(self, variant_id: _Optional[str] = ..., item_hash: _Optional[str] = ..., strategy: _Optional[str] = ..., level: _Optional[int] = ..., question: _Optional[str] = ..., choices: _Optional[_Iterable[str]] = ..., measurements: _Optional[_Union[Measurements, _Mapping]] = ..., provenance: _Optional[_Union[_struct_pb2.Struct, _Mapping]] = ..., labels: _Optional[str] = ...) -> None: ...

class Measurements(_message.Message):
    __slots__ = ("semantic_distance", "token_overlap", "edit_distance", "containment", "margin")
    SEMANTIC_DISTANCE_FIELD_NUMBER: _ClassVar[int]
    TOKEN_OVERLAP_FIELD_NUMBER: _ClassVar[int]
    EDIT_DISTANCE_FIELD_NUMBER: _ClassVar[int]
    CONTAINMENT_FIELD_NUMBER: _ClassVar[int]
    MARGIN_FIELD_NUMBER: _ClassVar[int]
    semantic_distance: float
    token_overlap: float
    edit_distance: float
    containment: float
    margin: float
    def __init__(self, semantic_distance: _Optional[float] = ..., token_overlap: _Optional[float] = ..., edit_distance: _Optional[float] = ..., containment: _Optional[float] = ..., margin: _Optional[float] = ...) -> None: ...

class Rejection(_message.Message):
    __slots__ = ("reason", "detail")
    REASON_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    reason: str
    detail: str
    def __init__(self, reason: _Optional[str] = ..., detail: _Optional[str] = ...) -> None: ...

class Summary(_message.Message):
    __slots__ = ("items", "items_with_variants", "items_from_library", "variants", "rejections_by_reason", "yield_reached", "conclusion", "encoder")
    class RejectionsByReasonEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    ITEMS_WITH_VARIANTS_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FROM_LIBRARY_FIELD_NUMBER: _ClassVar[int]
    VARIANTS_FIELD_NUMBER: _ClassVar[int]
    REJECTIONS_BY_REASON_FIELD_NUMBER: _ClassVar[int]
    YIELD_REACHED_FIELD_NUMBER: _ClassVar[int]
    CONCLUSION_FIELD_NUMBER: _ClassVar[int]
    ENCODER_FIELD_NUMBER: _ClassVar[int]
    items: int
    items_with_variants: int
    items_from_library: int
    variants: int
    rejections_by_reason: _containers.ScalarMap[str, int]
    yield_reached: bool
    conclusion: str
    encoder: str
    def __init__(self, items: _Optional[int] = ..., items_with_variants: _Optional[int] = ..., items_from_library: _Optional[int] = ..., variants: _Optional[int] = ..., rejections_by_reason: _Optional[_Mapping[str, int]] = ..., yield_reached: bool = ..., conclusion: _Optional[str] = ..., encoder: _Optional[str] = ...) -> None: ...

class Measurement(_message.Message):
    __slots__ = ("index", "item_id", "measurements", "broken_invariants", "admitted", "rejection")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    MEASUREMENTS_FIELD_NUMBER: _ClassVar[int]
    BROKEN_INVARIANTS_FIELD_NUMBER: _ClassVar[int]
    ADMITTED_FIELD_NUMBER: _ClassVar[int]
    REJECTION_FIELD_NUMBER: _ClassVar[int]
    index: int
    item_id: str
    measurements: Measurements
    broken_invariants: _containers.RepeatedScalarFieldContainer[str]
    admitted: bool
    rejection: Rejection
    def __init__(self, index: _Optional[int] = ..., item_id: _Optional[str] = ..., measurements: _Optional[_Union[Measurements, _Mapping]] = ..., broken_invariants: _Optional[_Iterable[str]] = ..., admitted: bool = ..., rejection: _Optional[_Union[Rejection, _Mapping]] = ...) -> None: ...

class Calibration(_message.Message):
    __slots__ = ("document", "conclusion", "rejections_by_reason")
    class RejectionsByReasonEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    CONCLUSION_FIELD_NUMBER: _ClassVar[int]
    REJECTIONS_BY_REASON_FIELD_NUMBER: _ClassVar[int]
    document: str
    conclusion: str
    rejections_by_reason: _containers.ScalarMap[str, int]
    def __init__(self, document: _Optional[str] = ..., conclusion: _Optional[str] = ..., rejections_by_reason: _Optional[_Mapping[str, int]] = ...) -> None: ...
