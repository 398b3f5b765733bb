"""Trials as Ray tasks, on one machine or many, which must all see the sweep's directory under the same path."""

import contextlib
import importlib.util
import logging
import os
import pickle
import socket
import sys
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from prequential.errors import PreqError, in_one_line, require_count, require_number
from prequential.runs.signals import StopRequest
from prequential.sweeps.execute import SECONDS_BETWEEN_LOOKS, Running, Take, keep_busy, sending_to
from prequential.sweeps.trials import Outcome, Trial, TrialRunner, Work, all_of

LOCAL = "local"
SECONDS_TO_ANSWER = 10.0
SENT_VARIABLES = ("PREQ_DATA", "OMP_WAIT_POLICY")


@dataclass(frozen=True)
class RayTasks:
    """An executor whose trials, or stacks of trials, are Ray tasks.

    A worker process of Ray takes one task after another, so that torch is imported and data is loaded once in each;
    where a task needs a GPU Ray starts a process for each, so that the GPU's memory is free afterwards. Ray itself
    repeats nothing: a trial whose worker or machine dies comes back through the study, and goes on from its checkpoint.
    """

    address: str = LOCAL
    """Of the cluster, as `ray.init` takes it, such as "10.0.0.1:6379" or "auto"; "local" starts one on this machine
    and ends it afterwards."""
    cpus: float = 1.0
    """CPU cores that each task is given, also a part of one."""
    gpus: float = 0.0
    """GPUs that each task is given, also a part of one."""
    most: int | None = None
    """Tasks at once. None: as many as there is room for."""

    def __post_init__(self) -> None:
        require_number("cpus of a Ray task", self.cpus, above=0)
        require_number("gpus of a Ray task", self.gpus, at_least=0)
        for name, amount in (("cpus", self.cpus), ("gpus", self.gpus)):
            if (amount > 1 and amount != int(amount)) or round(amount, 4) != amount:
                wanted = "a whole number, or a part of 1 with at most four digits"
                raise PreqError(f"{name} of a Ray task must be {wanted}, got {amount:g}")
        if self.most is not None:
            require_count("tasks at once", self.most)
        if importlib.util.find_spec("ray") is None:
            raise PreqError("Ray is not installed; pip install 'prequential[ray]', or use --jobs")

    def require_device(self, device: str) -> None:
        """Refuse a device that a task will not have."""
        if ":" in device:
            raise PreqError(f"Ray decides which GPU a task is given; the device must be cuda, got {device}")
        if device == "cuda" and not self.gpus:
            raise PreqError("a Ray task that is given no GPU has none, and the device is cuda; give gpus, such as 0.25")

    def run(self, work: Work, take: Take, stop: StopRequest) -> Generator[Outcome, None, None]:
        with _connected(self.address) as ray:
            yield from keep_busy(_Tasks(ray, self, work), take, stop)


class _Tasks:
    """The tasks of one connection."""

    def __init__(self, ray: Any, given: RayTasks, work: Work) -> None:
        self._ray, self._given = ray, given
        if self._count_room() == 0 and given.address == LOCAL:
            needs = f"{given.cpus:g} CPU" + (f", {given.gpus:g} GPU" if given.gpus else "")
            raise PreqError(f"this machine has not what each Ray task is to be given: {needs}")
        self._execute = ray.remote(num_cpus=given.cpus, num_gpus=given.gpus, max_retries=0)(_execute)
        with sending_to("Ray's workers"):
            # as bytes: what Ray would unpack itself are arrays that cannot be written to
            packed = ray.cloudpickle.dumps(replace(work, directory=work.directory.absolute()))
        variables = tuple((name, os.environ[name]) for name in SENT_VARIABLES if name in os.environ)
        self._sent = (ray.put(packed), str(Path.cwd()), variables)

    def room(self) -> int:
        return max(min(self._count_room(), self._given.most or sys.maxsize), 1)  # one may wait for a machine to join

    def _count_room(self) -> int:
        """Tasks that the machines have room for that are there by now."""
        needs = {name: need for name, need in (("CPU", self._given.cpus), ("GPU", self._given.gpus)) if need}
        machines = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        return sum(min(int(has.get(name, 0.0) / need + 1e-6) for name, need in needs.items()) for has in machines)

    def start(self, trials: tuple[Trial, ...]) -> Any:
        return self._execute.remote(trials, self._sent)

    def ask_to_stop(self, running: Any) -> None:
        self._ray.cancel(running)  # a run takes it for Ctrl-C: it saves its state

    def done(self, running: Running, stop: StopRequest) -> Iterator[tuple[Any, list[Outcome]]]:
        for task in self._ray.wait(list(running), timeout=SECONDS_BETWEEN_LOOKS)[0]:
            yield task, self._outcomes(task, running[task])

    def _outcomes(self, task: Any, trials: tuple[Trial, ...]) -> list[Outcome]:
        errors = self._ray.exceptions
        try:
            outcomes: list[Outcome] = self._ray.get(task)
            return outcomes
        except errors.TaskCancelledError:
            return all_of(trials, "stopped")
        except errors.RayTaskError as error:  # what a run raises is an outcome: this is what came before
            line = f"a Ray worker cannot begin ({in_one_line(error.cause)})"
            return all_of(trials, "failed", error=line, is_mistake=True)
        except errors.RayError as error:
            return all_of(trials, "failed", error=f"its Ray worker died ({type(error).__name__})", died=True)


def _execute(trials: tuple[Trial, ...], sent: tuple[Any, str, tuple[tuple[str, str], ...]]) -> list[Outcome]:
    """A task. What is sent besides the trials holds the work by reference, which Ray leaves alone inside a tuple."""
    return _runner(*sent)(trials)


@lru_cache(maxsize=1)
def _runner(work: Any, folder: str, variables: tuple[tuple[str, str], ...]) -> TrialRunner:
    """In a worker of Ray: what it has made ready for the sweep it works for."""
    import ray

    os.environ.update(variables)
    with contextlib.suppress(OSError):  # paths that were given without their beginning
        os.chdir(folder)
    return TrialRunner(pickle.loads(ray.get(work)))


@contextlib.contextmanager
def _connected(address: str) -> Iterator[Any]:
    """Ray, connected for a while; a connection that was there before is used and kept."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else it warns of what it will do one day
    import ray
    from ray._private import worker

    if ray.is_initialized():
        yield ray
        return
    printer = getattr(worker, "print_to_stdstream", None)
    worker.print_to_stdstream = lambda *_, **__: None  # that a worker died: the sweep says so itself
    try:
        _start(ray, address)
        yield ray
    finally:
        ray.shutdown()
        worker.print_to_stdstream = printer


def _start(ray: Any, address: str) -> None:
    host, colon, port = address.rpartition(":")
    options = {"include_dashboard": False} if address == LOCAL else {}
    try:
        if (
            colon and port.isdecimal() and "/" not in host
        ):  # notice at once, not after Ray's two minutes, who is not there
            socket.create_connection((host, int(port)), SECONDS_TO_ANSWER).close()
        with StopRequest():  # which puts back the handlers of signals that Ray replaces
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **options)
    except Exception as error:  # Ray has many, and none is ours
        where = "cannot be started on this machine" if address == LOCAL else f"cannot be reached at {address}"
        raise PreqError(f"Ray {where} ({in_one_line(error)})") from error
