"""Who executes trials: this process, or worker processes on this machine. Another executor is another such class."""

import contextlib
import multiprocessing
import pickle
import signal
from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

from prequential.errors import PreqError
from prequential.runs.progress import Progress
from prequential.runs.signals import StopRequest
from prequential.sweeps.trials import Outcome, Trial, TrialRunner, Work, all_of

Take = Callable[[], tuple[Trial, ...] | None]
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

    def wait(self, running: Sequence[Any]) -> Iterable[Any]:
        """Those that are done, after a short while at most."""

    def outcomes(self, done: Any, trials: tuple[Trial, ...], stop: StopRequest) -> list[Outcome]:
        """What became of the trials."""

    def ask_to_stop(self, running: Any) -> None:
        """Have it save its state and end."""


def keep_busy(workers: Workers, take: Take, stop: StopRequest) -> Generator[Outcome, None, None]:
    """Keep as many trials, or stacks of them, going as there is room for."""
    running: dict[Any, tuple[Trial, ...]] = {}
    is_asked = False
    while True:
        while not stop.requested and len(running) < workers.room() and (trials := take()) is not None:
            running[workers.start(trials)] = trials
        if stop.requested and not is_asked:
            is_asked = True
            for each in running:
                workers.ask_to_stop(each)
        if not running:
            return
        for done in workers.wait(list(running)):
            yield from workers.outcomes(done, running.pop(done), stop)


class InThisProcess:
    """One trial after another, here: nothing needs to be sent anywhere."""

    def run(self, work: Work, take: Take, stop: StopRequest) -> Generator[Outcome, None, None]:
        runner = TrialRunner(work)
        # asked before the run could listen itself
        passed_on = _SignalOnce(lambda: stop.requested, lambda: stop.signal_number)
        while not stop.requested and (trials := take()) is not None:
            outcomes = runner(trials, [passed_on])
            yield from outcomes
            if any(outcome.status == "stopped" for outcome in outcomes):
                return


class _SignalOnce:
    """A listener that raises a signal when it is asked to: a run takes that as a request, and saves its state."""

    def __init__(self, is_asked: Callable[[], bool], number: Callable[[], int]) -> None:
        self._is_asked, self._number, self.is_raised = is_asked, number, False

    def __call__(self, progress: Progress) -> None:
        if not self.is_raised and self._is_asked():
            self.is_raised = True
            signal.raise_signal(self._number())


@dataclass(eq=False)
class _Worker:
    process: Any
    connection: Connection
    is_ready: bool = False
    answer: list[Outcome] | None = None
    """What has become of the trials it was sent last; None also where it died."""


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

    def wait(self, running: Sequence[_Worker]) -> list[_Worker]:
        ready = wait([worker.connection for worker in running], SECONDS_BETWEEN_LOOKS)
        return [worker for worker in running if worker.connection in ready and self._has_answered(worker)]

    def _has_answered(self, worker: _Worker) -> bool:
        was_ready = worker.is_ready
        try:
            worker.answer, worker.is_ready = worker.connection.recv(), True
        except (EOFError, OSError):
            worker.answer = None
            return True
        return was_ready

    def outcomes(self, done: _Worker, trials: tuple[Trial, ...], stop: StopRequest) -> list[Outcome]:
        if done.answer is not None:
            self._idle.append(done)
            return done.answer
        done.process.join()
        done.connection.close()
        self._workers.remove(done)
        if stop.requested:  # a signal to the whole group ends a worker that does not run a trial just then
            return all_of(trials, "stopped")
        code = done.process.exitcode
        how = f"signal {-code}" if code is not None and code < 0 else f"exit status {code}"
        if not done.is_ready:
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


def _serve(connection: Connection, work: Work) -> None:
    """The life of a worker: trials come through the pipe, outcomes go back; it stops where the pipe ends."""
    import prequential.runs.run  # noqa: F401  # the slow part, before the first trial is waited for

    runner, stop_if_asked = TrialRunner(work), _SignalOnce(connection.poll, lambda: signal.SIGTERM)
    with contextlib.suppress(EOFError, OSError):
        connection.send(None)
        while (trials := connection.recv()) is not None:
            connection.send(runner(trials, [stop_if_asked]))
            if stop_if_asked.is_raised:
                return
