"""Kill runs again and again, resume them each time, and compare what they leave with undisturbed ones.

    python benchmarks/kill.py --kills 72 --to /tmp/kills            # eight kinds of run, 72 kills each
    python benchmarks/kill.py --kinds dropout sweep --kills 10

SIGKILL comes at random moments to the whole group of processes, half of the time while a checkpoint is being written.
Each process stands still after its share of the training steps, so that a run cannot end before its last kill, however
slow the killer. Stopped itself, the command goes on with the same --to: what was killed and how often is kept there.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from torch import Tensor, nn

import prequential as pq
from prequential.methods.rebuild import method_from_settings
from prequential.models import build
from prequential.runs.record import arrays_of
from prequential.sweeps import LogUniform

NAME, STEPS, HELD = "PREQ_KILL_MODEL", "PREQ_KILL_STEPS", "PREQ_KILL_HELD"
"""The variables that tell a process its network, after how many steps it stands still, and which file it then makes."""

RUN = "--threads 1 --checkpoint-seconds 0 --json"
KINDS = {
    "small": ("run", "mlp1", f"--length 4000 --streams 4 --width 0.25 {RUN}"),
    "dropout": ("run", "mnistnet", f"--length 6000 --streams 4 --augment affine {RUN}"),
    "reservoir": ("run", "mlp1", f"--length 20000 --method mi-rb --replacement reservoir --capacity 2000 {RUN}"),
    "from-scratch": ("run", "mlp1", f"--length 12000 --method ci-fs --epochs 8 {RUN}"),
    "shrink": ("run", "mlp1", f"--length 12000 --method ci-cf --epochs 8 --shrink 0.5 --perturb 0.1 {RUN}"),
    "growing": (
        "run", "lenet",
        f"--length 12000 --first-block 4 --min-steps 4 --age-law pareto --age-scale 2000 {RUN}",
    ),
    "mixed": ("run", "mlp1", f"--length 4000 --streams 4 --width 0.25 --members 2 --with-simple-codes {RUN}"),
    "stack": ("sweep", "mlp1", f"--length 4000 --streams 8 --trials 4 --stack 4 --space {__file__}:SPACE {RUN}"),
    "sweep": ("sweep", "mlp1", f"--length 4000 --streams 8 --trials 24 --jobs 2 --space {__file__}:SPACE {RUN}"),
}  # fmt: skip
"""A command, a network and flags for each kind of run; the first is for a quick look alone."""


SPACE = {"learning_rate": LogUniform(1e-3, 1e-2), "eps": LogUniform(1e-5, 1e-3)}


class Held(nn.Module):
    """A network that takes so many training steps and no more."""

    def __init__(self, network: nn.Module, steps: int | None) -> None:
        super().__init__()
        self.network, self.steps_left = network, steps

    def forward(self, inputs: Tensor) -> Tensor:
        if self.training and self.steps_left is not None:
            self.steps_left -= 1
            while self.steps_left < 0:
                Path(os.environ[HELD]).touch()
                time.sleep(1)
        logits: Tensor = self.network(inputs)
        return logits


def net(input_shape: tuple[int, ...], output_size: int, width: float) -> nn.Module:
    """The network of a kind, held if a variable says so."""
    steps = os.environ.get(STEPS)
    network = build(os.environ[NAME], input_shape, output_size, width=width)
    return Held(network, None if steps is None else int(steps))


def start(kind: str, out: Path, *flags: str, told: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    """A process, with a group of its own, that begins or goes on with a run."""
    command, model, job = KINDS[kind]
    words = [command, "mnist", f"{Path(__file__).absolute()}:net", *job.split(), "--out", str(out), *flags]
    return subprocess.Popen(
        [sys.executable, "-m", "prequential.cli", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {NAME: model} | (told or {}),
        start_new_session=True,
    )


def finish(kind: str, out: Path, *flags: str) -> None:
    if code := start(kind, out, *flags).wait():
        raise SystemExit(f"{kind}: the command ended with status {code}; see preq watch {out}")


def records_in(out: Path) -> dict[str, pq.Record]:
    return {str(file.parent.relative_to(out)): pq.load(file.parent) for file in sorted(out.rglob("record.json"))}


def steps_of(records: dict[str, pq.Record], kind: str) -> int:
    """Training steps that one process takes from the first to the last."""
    total = sum(
        pq.Plan(method_from_settings(record.method), record.length, 0).counts().trains for record in records.values()
    )
    return total // {"stack": 4, "sweep": 2}.get(kind, 1)


class Victim:
    """A process that goes on with a run, and is killed."""

    def __init__(self, kind: str, out: Path, steps: int) -> None:
        self._kind, self._out, self._held = kind, out, out.with_name(f"{out.name}.held")
        self._held.unlink(missing_ok=True)
        flags = ["--resume"] if KINDS[kind][0] == "run" or (out / "sweep.json").exists() else []
        self._process = start(kind, out, *flags, told={STEPS: str(steps), HELD: str(self._held)})

    def _wait_for(self, condition: Callable[[], bool], seconds_between_looks: float = 0.005) -> None:
        """Wait until something is so, or the process stands still."""
        while not (condition() or self._held.exists()):
            if self._process.poll() is not None:
                raise SystemExit(f"{self._kind}: it ended by itself, with status {self._process.returncode}")
            time.sleep(seconds_between_looks)

    def _newest(self) -> list[str]:
        folder = self._out.parent if KINDS[self._kind][0] == "run" else self._out
        return sorted(file.name for file in folder.rglob("checkpoints/*.safetensors"))

    def is_saving(self) -> bool:
        """Whether a checkpoint is half written."""
        return any(self._out.rglob("checkpoints/.*.tmp"))

    def kill(self, chance: random.Random) -> bool:
        """Wait for a random moment, and kill; gives whether a checkpoint was being written."""
        for _ in range(chance.randint(0, 3)):
            newest = self._newest()
            self._wait_for(lambda: self._newest() != newest)  # noqa: B023
        if chance.random() < 0.5:
            self._wait_for(self.is_saving, 0)  # which does not last long
        else:
            moment = time.perf_counter() + chance.uniform(0.0, 0.3)
            self._wait_for(lambda: time.perf_counter() > moment)
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        return self.is_saving()


def differences(one: dict[str, pq.Record], other: dict[str, pq.Record]) -> list[str]:
    """What the killed runs left that the undisturbed ones did not, or otherwise."""
    found = sorted(set(one) ^ set(other))
    for name in set(one) & set(other):
        arrays = arrays_of(one[name].model)
        same = all(getattr(one[name], array).tobytes() == getattr(other[name], array).tobytes() for array in arrays)
        if not same or one[name].heldout != other[name].heldout or one[name].codelength != other[name].codelength:
            found.append(name)
    return found


def kill_one_kind(kind: str, num_kills: int, folder: Path, seed: int) -> tuple[int, int, list[str]]:
    """Kills, those of them while a checkpoint was being written, and what differs at the end."""
    state_file, undisturbed, out = (folder / f"{kind}{end}" for end in (".json", "", "-killed"))
    state = json.loads(state_file.read_text()) if state_file.exists() else {"kills": 0, "midway": 0}
    if not undisturbed.exists() or not all(r.status == "finished" for r in records_in(undisturbed).values()):
        finish(kind, undisturbed)
    expected = records_in(undisturbed)
    most_steps = max(steps_of(expected, kind) // (num_kills + 1), 2)
    while state["kills"] < num_kills:
        chance = random.Random(f"{seed} {kind} {state['kills']}")
        state["midway"] += Victim(kind, out, chance.randint(most_steps // 2, most_steps)).kill(chance)
        state["kills"] += 1
        state_file.write_text(json.dumps(state))
    finish(kind, out, "--resume")
    return state["kills"], state["midway"], differences(expected, records_in(out))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=72, help="of each kind")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS)[1:])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--to", type=Path, default=None, help="where the runs go (default: a temporary directory)")
    flags = parser.parse_args()
    folder = flags.to or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    total, wrong = 0, 0
    for kind in flags.kinds:
        begin = time.perf_counter()
        kills, midway, different = kill_one_kind(kind, flags.kills, folder, flags.seed)
        verdict = f"DIFFERENT: {', '.join(different)}" if different else "identical"
        print(
            f"{kind:<13} {kills} kills ({midway} while a checkpoint was being written), "
            f"{time.perf_counter() - begin:.0f} s: {verdict}",
            flush=True,
        )
        total, wrong = total + kills, wrong + bool(different)
    print(f"{total} kills, {len(flags.kinds) - wrong} of {len(flags.kinds)} kinds of run identical")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
