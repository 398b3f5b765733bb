"""Who executes trials: this process, or worker processes on this machine. Another executor is another such class."""

import contextlib
import multiprocessing
import pickle
import signal
import warnings
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

from prequential.errors import PreqError, in_one_line
from prequential.runs.progress import Progress
from prequential.runs.signals import StopRequest
from prequential.sweeps.trials import Outcome, Trial, TrialRunner, Work, all_of
from prequential.terminal import note

Take = Callable[[], tuple[Trial, ...] | None]
Running = Mapping[Any, tuple[Trial, ...]]
SECONDS_BETWEEN_LOOKS = 0.2


class Executor(Protocol):
    """The contract of an executor.

    `run` takes trials when it has room for them, gives their outcomes as they come, and goes on until `take` gives
    None and nothing is running. `take` must be called in the thread that iterates, and may give more after an outcome
    was yielded: a trial whose process died comes back. Once `stop.requested` it takes no more and ends what is
    running, which then gives the status "stopped". `run` may be called again: others may leave trials undone.
    """

    def run(self, work: Work, take: Take, stop: StopRequest) -> Generator[Outcome, None, None]:
        """Execute trials."""


class Workers(Protocol):
    """The contract of workers that `keep_busy` can lead. What `start` gives stands for the trials it was given."""

    def room(self) -> int:
        """How many may be running at once."""

    def start(self, trials: tuple[Trial, ...]) -> Hashable:
        """Have a trial, or a stack of them, run."""

    def done(self, running: Running, stop: StopRequest) -> Iterator[tuple[Any, list[Outcome]]]:
        """Those that are done, after a short while at most, and what became of their trials."""

    def ask_to_stop(self, running: Any) -> None:
        """Have it save its state and end."""


def keep_busy(workers: Workers, take: Take, stop: StopRequest) -> Generator[Outcome, None, None]:
    """Keep as many trials, or stacks of them, going as there is room for."""
    running, is_asked = dict[Hashable, tuple[Trial, ...]](), False
    while True:
        while not stop.requested and len(running) < workers.room() and (trials := take()) is not None:
            running[workers.start(trials)] = trials
        if stop.requested and not is_asked:
            is_asked = True
            for each in running:
                workers.ask_to_stop(each)
        if not running:
            return
        for done, outcomes in workers.done(dict(running), stop):
            del running[done]
            yield from outcomes


@contextlib.contextmanager
def sending_to(whom: str) -> Iterator[None]:
    """Inside, a model or data that cannot be sent becomes one line."""
    try:
        yield
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise PreqError(
            f"model and data must be sent to {whom}, which is not possible here ({in_one_line(error)}); "
            "define the model at the top of a module, or use jobs=1 in this process"
        ) from None


class InThisProcess:
    """One trial after another, here: nothing needs to be sent anywhere."""

    def run(self, work: Work, take: Take, stop: StopRequest) -> Generator[Outcome, None, None]:
        runner = TrialRunner(work)
        while not stop.requested and (trials := take()) is not None:
            outcomes = runner(trials)
            yield from outcomes
            if any(outcome.status == "stopped" for outcome in outcomes):
                return


@dataclass(eq=False)
class _Worker:
    process: Any
    connection: Connection
    is_ready: bool = False


class Processes:
    """Worker processes that live as long as the sweep, so that torch is imported and data is loaded once in each."""

    def __init__(self, num_workers: int) -> None:
        self._num_workers = num_workers
        self._workers: list[_Worker] = []
        self._idle: list[_Worker] = []

    def run(self, work: Work, take: Take, stop: StopRequest) -> Generator[Outcome, None, None]:
        self._work = work
        try:
            yield from keep_busy(self, take, stop)
        finally:
            for worker in self._workers:
                self.ask_to_stop(worker)
                worker.connection.close()  # the end of the pipe stops a worker as well
            for worker in self._workers:
                worker.process.join()
            self._workers, self._idle = [], []

    def room(self) -> int:
        return self._num_workers

    def start(self, trials: tuple[Trial, ...]) -> _Worker:
        worker = self._idle.pop() if self._idle else self._begin()
        with contextlib.suppress(OSError):  # a dead worker is noticed where its answer is waited for
            worker.connection.send(trials)
        return worker

    def done(self, running: Running, stop: StopRequest) -> Iterator[tuple[_Worker, list[Outcome]]]:
        ready = wait([worker.connection for worker in running], SECONDS_BETWEEN_LOOKS)
        for worker, trials in running.items():
            if worker.connection not in ready:
                continue
            try:
                answer = worker.connection.recv()
            except (EOFError, OSError):
                yield worker, self._bury(worker, trials, stop)
                continue
            if worker.is_ready:
                self._idle.append(worker)
                yield worker, answer
            worker.is_ready = True

    def _bury(self, worker: _Worker, trials: tuple[Trial, ...], stop: StopRequest) -> list[Outcome]:
        worker.process.join()
        worker.connection.close()
        self._workers.remove(worker)
        if stop.requested:  # a signal to the whole group ends a worker that does not run a trial just then
            return all_of(trials, "stopped")
        code = worker.process.exitcode
        how = f"signal {-code}" if code < 0 else f"exit status {code}"
        if not worker.is_ready:
            raise PreqError(
                f"a worker process died before it began ({how}, see above); a script that starts a sweep must keep it "
                'behind if __name__ == "__main__":'
            )
        return all_of(trials, "failed", error=f"its process died ({how})", died=True)

    def ask_to_stop(self, running: _Worker) -> None:
        with contextlib.suppress(OSError):
            running.connection.send(None)

    def _begin(self) -> _Worker:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        worker = _Worker(context.Process(target=_serve, args=(theirs, self._work)), ours)
        # Ctrl-C reaches the whole group; the workers are asked to stop through their pipes, once.
        resource_tracker.ensure_running()  # else it is started on the way, and lets the signal through again
        before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
        try:
            with sending_to("worker processes"):
                worker.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()
        self._workers.append(worker)
        return worker


def _serve(connection: Connection, work: Work) -> None:
    """The life of a worker: trials come through the pipe, outcomes go back; it stops where the pipe ends."""
    is_asked = False

    def stop_if_asked(progress: Progress) -> None:
        """A run takes a signal as a request, and saves its state."""
        nonlocal is_asked
        if not is_asked and connection.poll():
            is_asked = True
            signal.raise_signal(signal.SIGTERM)

    import prequential.runs.run  # noqa: F401  # the slow part, before the first trial is waited for

    warnings.showwarning = note

    runner = TrialRunner(work)
    with contextlib.suppress(EOFError, OSError):
        connection.send(None)
        while not is_asked and (trials := connection.recv()) is not None:
            connection.send(runner(trials, [stop_if_asked]))
