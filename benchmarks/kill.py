"""Kill a run again and again, resume it each time, and compare its record with an undisturbed one.

    python benchmarks/kill.py --kills 50

SIGKILL comes at random moments, half of the time while a checkpoint is being written. Each of the processes stands
still after its share of the training steps, so that the run cannot end before the last kill, however slow the killer.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from torch import Tensor, nn

import prequential as pq
from prequential.models import build
from prequential.plan import Plan
from prequential.runs.record import ARRAYS

STEPS, HELD = "PREQ_KILL_STEPS", "PREQ_KILL_HELD"
"""The variables that tell a process after how many training steps it stands still, and which file tells of it."""


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


def net(input_shape: tuple[int, ...], num_classes: int, width: float) -> nn.Module:
    """mlp1, held if a variable says so."""
    steps = os.environ.get(STEPS)
    return Held(build("mlp1", input_shape, num_classes, width=width), None if steps is None else int(steps))


def command(out: Path, arguments: argparse.Namespace, *flags: str) -> list[str]:
    job = f"--width {arguments.width} --length {arguments.length} --streams {arguments.streams}"
    job += " --threads 1 --checkpoint-seconds 0 --json"
    model = f"{Path(__file__).absolute()}:net"
    return [sys.executable, "-m", "prequential.cli", "run", "mnist", model, *job.split(), "--out", str(out), *flags]


class Victim:
    """A process that goes on with the run, and is killed."""

    def __init__(self, out: Path, arguments: argparse.Namespace, steps: int) -> None:
        self._out, self._held = out, out.with_name("held")
        self._held.unlink(missing_ok=True)
        told = {STEPS: str(steps), HELD: str(self._held)}
        self._process = subprocess.Popen(
            command(out, arguments, "--resume"), stdout=subprocess.DEVNULL, env=os.environ | told
        )

    def _wait_for(self, condition: Callable[[], bool], seconds_between_looks: float = 0.005) -> None:
        """Wait until something is so, or the process stands still."""
        while not (condition() or self._held.exists()):
            if self._process.poll() is not None:
                raise SystemExit(f"the run ended by itself, with status {self._process.returncode}")
            time.sleep(seconds_between_looks)

    def _newest(self) -> str:
        return max((file.name for file in self._out.glob("checkpoints/*.safetensors")), default="")

    def is_saving(self) -> bool:
        """Whether a checkpoint is half written."""
        return any(self._out.glob("checkpoints/.*.tmp"))

    def kill(self, chance: random.Random) -> bool:
        """Wait for a random moment, and kill; gives whether a checkpoint was being written."""
        for _ in range(chance.randint(1, 4)):
            newest = self._newest()
            self._wait_for(lambda: self._newest() != newest)  # noqa: B023
        if chance.random() < 0.5:
            self._wait_for(self.is_saving, 0)  # which does not last long
        else:
            moment = time.perf_counter() + chance.uniform(0.0, 0.3)
            self._wait_for(lambda: time.perf_counter() > moment)
        self._process.kill()
        self._process.wait()
        return self.is_saving()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--length", type=int, default=60_000)
    parser.add_argument("--streams", type=int, default=12)
    parser.add_argument("--width", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--to", type=Path, default=None, help="where the runs go (default: a temporary directory)")
    arguments = parser.parse_args()
    folder, chance, begin = arguments.to or Path(tempfile.mkdtemp()), random.Random(arguments.seed), time.perf_counter()
    subprocess.run(command(folder / "undisturbed", arguments), check=True, stdout=subprocess.DEVNULL)
    num_steps = Plan(pq.ReplayStreams(num_streams=arguments.streams), arguments.length, 0).counts().trains
    most_steps, out = num_steps // (arguments.kills + 1), folder / "killed"
    midway = sum(
        Victim(out, arguments, chance.randint(most_steps // 2, most_steps)).kill(chance) for _ in range(arguments.kills)
    )
    subprocess.run(command(out, arguments, "--resume"), check=True, stdout=subprocess.DEVNULL)
    one, other = pq.load(folder / "undisturbed"), pq.load(out)
    same = all(getattr(one, name).tobytes() == getattr(other, name).tobytes() for name in ARRAYS)
    same = same and one.heldout == other.heldout and one.codelength == other.codelength
    print(
        f"{arguments.kills} of {arguments.kills} kills ({midway} while a checkpoint was being written), "
        f"{arguments.length:,} labels, {time.perf_counter() - begin:.0f} s: "
        f"the record is {'identical' if same else 'DIFFERENT'}"
    )
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main())
