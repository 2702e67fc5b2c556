"""A gateway with one gibibyte, and the largest submission that it takes on."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from proctor.gateway.limits import Limits
from proctor.gateway.rpc import audit_pb2 as pb
from tests.hostile.limited import limit
from tests.integration.audit_support import audit_bench, gateway_process, stub
from tests.token_channel import own_token_of


# Half a minute of processor time, which other tests share.
@pytest.mark.timeout(240)
def test_the_largest_submission_is_taken_on_within_a_gibibyte_while_others_come_in(
    tmp_path: Path, valkey_url: str
) -> None:
    most = Limits().max_message_bytes - 4_096
    # As many items as the memory that a benchmark is given has room for.
    rows = (
        json.dumps({"id": f"q{n}", "question": f"What is {n} plus one, please?", "choices": ["1", "2"], "answer": "1"})
        for n in range(275_000)
    )
    content = "\n".join(rows).encode()[:most].rpartition(b"\n")[0]
    with audit_bench(tmp_path, valkey_url) as bench:
        dataset = {"benchmark_name": "sums", "path": "items.jsonl", "sample_size": 1_000_000}
        large = pb.SubmitRequest(
            suite=bench.suite_text(dataset_config=dataset), files=[pb.SuiteFile(name="items.jsonl", content=content)]
        )
        refused = pb.SubmitRequest(suite="{}", files=[pb.SuiteFile(name="items.jsonl", content=bytes(most))])
        environment = {"PROCTOR_LEDGER_URL": bench.settings.ledger_url, "PROCTOR_BROKER_URL": bench.settings.broker_url}

        def submit(request: pb.SubmitRequest) -> grpc.StatusCode:
            options = [("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
            shown = [("authorization", f"Bearer {own_token_of(tmp_path, 'gateway', address)}")]
            with grpc.insecure_channel(address, options) as channel:
                submits = channel.unary_unary("/proctor.v1.AuditService/Submit")
                try:
                    submits(request.SerializeToString(), timeout=120, metadata=shown)
                except grpc.RpcError as error:
                    code: grpc.StatusCode = error.code()
                    return code
            return grpc.StatusCode.OK

        with gateway_process(tmp_path, **environment) as (process, address):
            limit(process.pid)
            with ThreadPoolExecutor() as threads:
                codes = list(threads.map(submit, [large, *[refused] * 4]))
            assert codes == [grpc.StatusCode.OK, *[grpc.StatusCode.INVALID_ARGUMENT] * 4]
            assert process.poll() is None
            with stub(address, own_token_of(tmp_path, "gateway", address)) as service:
                (audit,) = service.List(pb.ListRequest(), timeout=20).audits
                assert audit.state == pb.AUDIT_STATE_CREATED
