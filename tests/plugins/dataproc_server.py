"""Fixture: the controllers of Dataproc's jobs and batches, over gRPC, as far as Airflow's operators call them.

What it answers follows the public API. Each job and each batch is a real ``spark-submit`` on this machine. ``run`` is a
program of the laboratory: there, the clients of the provider's hooks have an insecure channel to the server, because
the endpoint of Dataproc has no setting.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from google.cloud.dataproc_v1 import types
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2
from submitted_program import SubmittedProgram

ADDRESS = "DATAPROC_SERVER"
_SERVICE = "google.cloud.dataproc.v1."


class DataprocServer:
    """``jobs`` and ``batches`` are by their ids, as they were submitted; ``calls`` counts each method.

    :param env: what Spark needs in its environment
    """

    def __init__(self, env: Mapping[str, str], home: Path) -> None:
        self.jobs: dict[str, Any] = {}
        self.batches: dict[str, Any] = {}
        self.calls: list[str] = []
        self.fails: set[str] = set()
        """Methods that answer with a server error."""
        self.denied: set[str] = set()
        """Methods that the credentials do not allow."""
        self._env, self._home = env, home
        self._programs: dict[str, SubmittedProgram] = {}
        self._lock = threading.Lock()

    @contextmanager
    def running(self) -> Iterator[str]:
        """Run it; the value is its address."""
        server = grpc.server(ThreadPoolExecutor(8))
        jobs = {
            "SubmitJob": (types.SubmitJobRequest, self._submit_job),
            "GetJob": (types.GetJobRequest, self._get_job),
            "CancelJob": (types.CancelJobRequest, self._cancel_job),
        }
        batches = {
            "CreateBatch": (types.CreateBatchRequest, self._create_batch),
            "GetBatch": (types.GetBatchRequest, self._get_batch),
            "DeleteBatch": (types.DeleteBatchRequest, self._delete_batch),
        }
        cancelling = grpc.unary_unary_rpc_method_handler(
            self._cancel_operation,
            request_deserializer=operations_pb2.CancelOperationRequest.FromString,
            response_serializer=lambda answer: answer.SerializeToString(),
        )
        asking = grpc.unary_unary_rpc_method_handler(
            lambda request, _: operations_pb2.Operation(name=request.name),
            request_deserializer=operations_pb2.GetOperationRequest.FromString,
            response_serializer=lambda answer: answer.SerializeToString(),
        )
        operations = {"CancelOperation": cancelling, "GetOperation": asking}
        server.add_generic_rpc_handlers(
            [
                self._handler(f"{_SERVICE}JobController", jobs),
                self._handler(f"{_SERVICE}BatchController", batches),
                grpc.method_handlers_generic_handler("google.longrunning.Operations", operations),
            ]
        )
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            for program in self._programs.values():
                program.close()
            server.stop(None).wait()

    def _handler(self, service: str, methods: Mapping[str, tuple[Any, Callable[..., Any]]]) -> Any:
        def serialized(answer: Any) -> bytes:
            return (
                answer.SerializeToString() if hasattr(answer, "SerializeToString") else type(answer).serialize(answer)
            )  # type: ignore[no-any-return]

        def counted(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
            def call(request: Any, context: Any) -> Any:
                self.calls.append(name)
                if name in self.fails:
                    context.abort(grpc.StatusCode.INTERNAL, "the server has a fault")
                if name in self.denied:
                    context.abort(grpc.StatusCode.PERMISSION_DENIED, f"Permission denied on {name}")
                return method(request, context)

            return call

        handlers = {
            name: grpc.unary_unary_rpc_method_handler(
                counted(name, method), request_deserializer=request.deserialize, response_serializer=serialized
            )
            for name, (request, method) in methods.items()
        }
        return grpc.method_handlers_generic_handler(service, handlers)

    def _run(self, key: str, config: Any) -> None:
        arguments = list(config.args)
        self._programs[key] = SubmittedProgram(
            config.main_python_file_uri, arguments, dict(self._conf(key, config)), self._env, self._home / f"{key}.log"
        )

    def _conf(self, key: str, config: Any) -> Mapping[str, str]:
        return self.batches[key].runtime_config.properties if key in self.batches else config.properties  # type: ignore[no-any-return]

    def _submit_job(self, request: Any, context: Any) -> Any:
        job = request.job
        with self._lock:
            job.reference.job_id = key = job.reference.job_id or str(uuid.uuid4())
            if key in self.jobs:
                context.abort(grpc.StatusCode.ALREADY_EXISTS, f"Already exists: {key}")
            job.reference.project_id, job.status.state = request.project_id, types.JobStatus.State.PENDING
            self.jobs[key] = job
            self._run(key, job.pyspark_job)
        return job

    def _get_job(self, request: Any, context: Any) -> Any:
        job = self._found(self.jobs, request.job_id, context)
        program, states = self._programs[request.job_id], types.JobStatus.State
        if program.exit_code is None:
            job.status.state = states.CANCEL_PENDING if program.is_cancelled else states.RUNNING
        elif program.is_cancelled:
            job.status.state = states.CANCELLED
        else:
            job.status.state = states.ERROR if program.exit_code else states.DONE
            job.status.details = program.why and f"Job failed with message [{program.why}]."
        return job

    def _cancel_job(self, request: Any, context: Any) -> Any:
        job = self._found(self.jobs, request.job_id, context)
        self._programs[request.job_id].cancel()
        return job

    def _create_batch(self, request: Any, context: Any) -> Any:
        batch, key = request.batch, request.batch_id or str(uuid.uuid4())
        with self._lock:
            if key in self.batches:
                context.abort(grpc.StatusCode.ALREADY_EXISTS, f"Already exists: {key}")
            batch.name = f"{request.parent}/batches/{key}"
            batch.state = types.Batch.State.PENDING
            self.batches[key] = batch
            self._run(key, batch.pyspark_batch)
        operation = operations_pb2.Operation(name=f"{request.parent}/operations/{key}")
        operation.metadata.Pack(types.BatchOperationMetadata.pb(types.BatchOperationMetadata(batch=batch.name)))
        return operation

    def _get_batch(self, request: Any, context: Any) -> Any:
        key = request.name.rpartition("/")[2]
        batch, states = self._found(self.batches, key, context), types.Batch.State
        program = self._programs[key]
        if program.exit_code is None:
            batch.state = states.CANCELLING if program.is_cancelled else states.RUNNING
        elif program.is_cancelled:
            batch.state = states.CANCELLED
        else:
            batch.state = states.FAILED if program.exit_code else states.SUCCEEDED
            batch.state_message = program.why and f"Job failed with message [{program.why}]."
        return batch

    def _delete_batch(self, request: Any, context: Any) -> Any:
        self._found(self.batches, request.name.rpartition("/")[2], context)
        del self.batches[request.name.rpartition("/")[2]]
        return empty_pb2.Empty()

    def _cancel_operation(self, request: Any, _: Any) -> Any:
        self.calls.append("CancelOperation")
        self._programs[request.name.rpartition("/")[2]].cancel()
        return empty_pb2.Empty()

    @staticmethod
    def _found(of: Mapping[str, Any], key: str, context: Any) -> Any:
        if key not in of:
            context.abort(grpc.StatusCode.NOT_FOUND, f"Not found: {key}")
        return of[key]


def run(scenario: dict[str, Any]) -> dict[str, Any]:
    """Execute an operator, in the laboratory, whose hooks call the server."""
    from laboratory import _executed

    connect()
    return _executed(scenario)


def connect() -> None:
    """Have the hooks of this process call the server that the environment names, and wait less between two polls."""
    from airflow.providers.google.cloud.hooks import dataproc as hooks
    from google.cloud.dataproc_v1.services import batch_controller, job_controller

    channel = grpc.insecure_channel(os.environ[ADDRESS])
    for module, name in ((job_controller, "JobController"), (batch_controller, "BatchController")):
        method = f"get_{name.removesuffix('Controller').lower()}_client"
        kinds = getattr(module, f"{name}Client"), getattr(module, f"{name}AsyncClient")
        of_hook, of_trigger = _makers(*kinds, channel)
        setattr(hooks.DataprocHook, method, of_hook)
        setattr(hooks.DataprocAsyncHook, method, of_trigger)
    for name in ("wait_for_job", "wait_for_batch"):
        waiting = getattr(hooks.DataprocHook, name)
        pause = "wait_time" if name == "wait_for_job" else "wait_check_interval"

        def brief(*arguments: Any, waiting: Any = waiting, pause: str = pause, **keywords: Any) -> Any:
            return waiting(*arguments, **{pause: 1, **keywords})

        setattr(hooks.DataprocHook, name, brief)


def _makers(client: Any, async_client: Any, channel: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return what makes a client of a channel, and one of its own loop."""
    transport, of_loop = (client.get_transport_class(name) for name in ("grpc", "grpc_asyncio"))

    def make(*_: Any, **__: Any) -> Any:
        return client(transport=transport(channel=channel))

    async def make_async(*_: Any, **__: Any) -> Any:
        return async_client(transport=of_loop(channel=grpc.aio.insecure_channel(os.environ[ADDRESS])))

    return make, make_async
