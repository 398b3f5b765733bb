"""Who executes trials: this process, or worker processes on this machine. Another executor is another such class."""

import contextlib
import multiprocessing
import pickle
import signal
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

from prequential.errors import PreqError
from prequential.runs.progress import Progress
from prequential.runs.signals import StopRequest
from prequential.sweeps.claims import Claim, Outcome
from prequential.sweeps.trials import TrialRunner, Work

Take = Callable[[], tuple[Claim, ...] | None]
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


class InThisProcess:
    """One trial after another, here: nothing needs to be sent anywhere."""

    def run(self, work: Work, take: Take, stop: StopRequest) -> Generator[Outcome, None, None]:
        runner, passed_on = TrialRunner(work), False

        def stop_if_asked(progress: Progress) -> None:
            nonlocal passed_on
            if stop.requested and not passed_on:  # asked before the run could listen itself
                passed_on = True
                signal.raise_signal(stop.signal_number)

        while not stop.requested and (claims := take()) is not None:
            outcomes = runner(claims, [stop_if_asked])
            yield from outcomes
            if any(outcome.status == "stopped" for outcome in outcomes):
                return


@dataclass
class _Worker:
    process: Any
    connection: Connection
    claims: tuple[Claim, ...] = ()
    is_ready: bool = field(default=False)


class Processes:
    """Worker processes that live as long as the sweep, so that torch is imported and data is loaded once in each."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._workers: list[_Worker] = []

    def run(self, work: Work, take: Take, stop: StopRequest) -> Generator[Outcome, None, None]:
        try:
            while True:
                self._hand_out(work, take, stop)
                busy = [worker for worker in self._workers if worker.claims]
                if not busy:
                    return
                ready = wait([worker.connection for worker in busy], SECONDS_BETWEEN_LOOKS)
                for worker in busy:
                    if worker.connection in ready:
                        yield from self._answer(worker, stop)
        finally:
            self._end()

    def _hand_out(self, work: Work, take: Take, stop: StopRequest) -> None:
        if stop.requested:
            for worker in self._workers:
                self._ask_to_stop(worker)
            return
        while self._has_room() and (claims := take()) is not None:
            worker = self._idle() or self._start(work)
            worker.claims = claims
            with contextlib.suppress(OSError):  # a dead worker is noticed where its answer is waited for
                worker.connection.send(claims)

    def _has_room(self) -> bool:
        return len(self._workers) < self._number or self._idle() is not None

    def _idle(self) -> _Worker | None:
        return next((worker for worker in self._workers if not worker.claims), None)

    def _start(self, work: Work) -> _Worker:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        worker = _Worker(context.Process(target=_serve, args=(theirs, work)), ours)
        # Ctrl-C reaches the whole group; the workers are asked to stop through their pipes, once.
        resource_tracker.ensure_running()  # else it is started on the way, and lets the signal through again
        before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
        try:
            worker.process.start()
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            ours.close()
            reason = str(error).splitlines()[0]
            raise PreqError(
                f"model and data must be sent to worker processes, which is not possible here ({reason}); "
                "define the model at the top of a module, or use jobs=1"
            ) from None
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()
        self._workers.append(worker)
        return worker

    def _answer(self, worker: _Worker, stop: StopRequest) -> Generator[Outcome, None, None]:
        try:
            outcomes = worker.connection.recv()
        except (EOFError, OSError):
            yield from self._bury(worker, stop)
            return
        if outcomes is None:
            worker.is_ready = True
            return
        worker.claims = ()
        yield from outcomes

    def _bury(self, worker: _Worker, stop: StopRequest) -> Generator[Outcome, None, None]:
        worker.process.join()
        worker.connection.close()
        self._workers.remove(worker)
        if stop.requested:  # a signal to the whole group ends a worker that does not run a trial just then
            yield from (Outcome(claimed.number, "stopped") for claimed in worker.claims)
            return
        code = worker.process.exitcode
        how = f"signal {-code}" if code is not None and code < 0 else f"exit status {code}"
        if not worker.is_ready:
            raise PreqError(
                f"a worker process died before it began ({how}, see above); a script that starts a sweep must keep it "
                'behind if __name__ == "__main__":'
            )
        for claimed in worker.claims:
            yield Outcome(claimed.number, "failed", error=f"its process died ({how})", died=True)

    def _ask_to_stop(self, worker: _Worker) -> None:
        with contextlib.suppress(OSError):
            worker.connection.send(None)

    def _end(self) -> None:
        for worker in self._workers:
            self._ask_to_stop(worker)
            worker.connection.close()  # the end of the pipe stops a worker as well
        for worker in self._workers:
            worker.process.join()
        self._workers.clear()


def _serve(connection: Connection, work: Work) -> None:
    """The life of a worker: trials come through the pipe, outcomes go back; it stops where the pipe ends."""
    import prequential.runs.run  # noqa: F401  # the slow part, before the first trial is waited for

    runner, asked = TrialRunner(work), False

    def stop_if_asked(progress: Progress) -> None:
        nonlocal asked
        if not asked and connection.poll():
            asked = True
            signal.raise_signal(signal.SIGTERM)  # which a run takes as a request: it saves its state

    with contextlib.suppress(EOFError, OSError):
        connection.send(None)
        while (claims := connection.recv()) is not None:
            connection.send(runner(claims, [stop_if_asked]))
            if asked:
                return
