"""Our speed on the CPU, as ratios measured in one run. `make bench` runs this.

LeNet on MNIST, batch 32, 8 streams, 4,096 labels, one thread. Three ways take turns, seven times:

    ours       prequential.run: predict, calibrate, train, average, record
    bare loop  only the same training steps on the same batches: fused AdamW, channels-last
    preqtorch  preqtorch 0.2.0's replay streams with EMA and temperature, the same number of steps

Held-out evaluation, set-up and FLOP counting are left out everywhere. Ratios are medians of pairs.
"""

import argparse
import contextlib
import io
import platform
import statistics
import time
import warnings
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils import convert_conv2d_weight_memory_format
from torch.utils.data import DataLoader, TensorDataset

import prequential as pq
from prequential.data.sequence import ArraySequence, to_network_input
from prequential.events import Train
from prequential.models import build
from prequential.plan import Plan
from results import write_section

RECIPE = pq.Recipe()
METHOD = pq.ReplayStreams(num_streams=8, batch_size=32)


def time_ours(data: ArraySequence) -> float:
    return pq.run("lenet", data, METHOD, RECIPE, seed=0).seconds


def time_bare_loop(inputs: Tensor, labels: Tensor, batches: list[Tensor]) -> float:
    torch.manual_seed(0)
    model = build("lenet", (1, 28, 28), 10)
    convert_conv2d_weight_memory_format(model, torch.channels_last)
    optimizer = torch.optim.AdamW(
        model.parameters(), RECIPE.learning_rate, eps=RECIPE.eps, weight_decay=RECIPE.weight_decay, fused=True
    )
    begin = time.perf_counter()
    for batch in batches:
        loss = F.cross_entropy(model(inputs[batch]), labels[batch], label_smoothing=RECIPE.label_smoothing)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return time.perf_counter() - begin


def time_preqtorch(inputs: Tensor, labels: Tensor) -> float:
    from preqtorch import MIREncoder, ModelClass

    class LeNetOnPairs(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = build("lenet", (1, 28, 28), 10)

        def forward(self, batch: tuple[Tensor, Tensor]) -> Tensor:
            logits: Tensor = self.net(batch[0])
            return logits

    def loss(batch: tuple[Tensor, Tensor], output: Tensor) -> Tensor:
        return F.cross_entropy(output, batch[1], reduction="none")

    loader = DataLoader(TensorDataset(inputs, labels), batch_size=32, shuffle=False)
    encoder = MIREncoder(ModelClass(LeNetOnPairs, device="cpu"), device="cpu")
    begin = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(action="ignore"):
        encoder.encode(loader, "mnist", n_replay_samples=8, loss_fn=loss, learning_rate=1e-3, alpha=0.01,
                       replay_type="streams", shuffle=False)  # fmt: skip
    return time.perf_counter() - begin


def time_plan(length: int) -> float:
    begin = time.perf_counter()
    for _ in Plan(METHOD, length).events():
        pass
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=4096)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--write", action="store_true", help="write the table into RESULTS.md")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    data = pq.load_data("mnist").take(arguments.length).without_heldout()
    assert isinstance(data, ArraySequence)
    positions = np.arange(len(data))
    inputs = to_network_input(data.inputs(positions)).contiguous(memory_format=torch.channels_last)
    labels = data.labels(positions)
    plan = Plan(METHOD, len(data))
    batches = [torch.from_numpy(event.indices) for event in plan.events() if isinstance(event, Train)]
    ways: dict[str, Callable[[], float]] = {
        "ours": lambda: time_ours(data),
        "bare loop": lambda: time_bare_loop(inputs, labels, batches),
        "preqtorch": lambda: time_preqtorch(inputs, labels),
        "plan alone": lambda: time_plan(len(data)),
    }
    try:
        import preqtorch  # noqa: F401
    except ImportError:
        del ways["preqtorch"]
    time_bare_loop(inputs, labels, batches[:100])
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(arguments.pairs):
        for name, measure in ways.items():
            times[name].append(measure())
    lines = [f"{'':<12} {'seconds':>8} {'ours / it':>10} {'limit':>6}"]
    for name, values in times.items():
        ratio = statistics.median(o / v for o, v in zip(times["ours"], values, strict=True))
        limit = {"bare loop": "1.15", "preqtorch": "0.85", "plan alone": ""}.get(name, "")
        lines.append(f"{name:<12} {statistics.median(values):>8.3f} {ratio:>10.3f} {limit:>6}")
    share = statistics.median(p / o for o, p in zip(times["ours"], times["plan alone"], strict=True))
    lines.append(f"the plan takes {share:.2%} of the run (limit 1 %)")
    lines.append(
        f"LeNet, batch 32, 8 streams, {len(data):,} labels, {len(batches):,} training steps, 1 thread, median of "
        f"{arguments.pairs} interleaved\n{platform.machine()} {torch.backends.cpu.get_cpu_capability()}, "
        f"Python {platform.python_version()}, torch {torch.__version__}, prequential {pq.__version__}"
    )
    print("\n".join(lines))
    if arguments.write:
        write_section("On a CPU", "make bench", "```\n" + "\n".join(lines) + "\n```")


if __name__ == "__main__":
    main()
