"""A whole sweep as one stack: `python experiments/stacked_sweep.py --device cuda`

64 LeNets on MNIST, MI/RS with 25 streams, batch 32, settings drawn from the paper's space, all of them trained side by
side in one process. Then the best settings once more, alone, with the graph engine (another engine rounds in another
order, and training is chaotic: the lengths agree within about a percent, not to the digit), and the length of not
choosing: a Bayesian mixture of the 64 and fixed-share switching among them.
"""

import argparse
import tempfile
import time
from pathlib import Path

import torch

import prequential as pq
from prequential.cli.sweep_table import print_summary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--streams", type=int, default=25)
    parser.add_argument("--length", type=int, default=60_000)
    parser.add_argument("--out", type=Path, help="keep the sweep here")
    flags = parser.parse_args()
    name = torch.cuda.get_device_name() if flags.device.startswith("cuda") else flags.device
    given = f"--device {flags.device} --trials {flags.trials} --streams {flags.streams} --length {flags.length}"
    print(f"python experiments/stacked_sweep.py {given}: {name}, torch {torch.__version__}\n")
    data = pq.load_data("mnist").take(flags.length)
    method = pq.ReplayStreams(num_streams=flags.streams, batch_size=32)
    space = {key: value for key, value in pq.SPACES["mnist"].items() if key not in ("num_streams", "batch_size")}
    with tempfile.TemporaryDirectory() as folder:
        out = flags.out or Path(folder) / "sweep"
        begin = time.perf_counter()
        summary = pq.sweep(
            "lenet", data, method, space=space, seed=0, out=out, trials=flags.trials, stack=flags.trials,
            device=flags.device,
        )  # fmt: skip
        print(f"the whole sweep: {time.perf_counter() - begin:.0f} seconds\n")
        print_summary(summary, 10)
        records = summary.records()
        best = min(records, key=lambda record: record.codelength)
        recipe = pq.Recipe(**{key: value for key, value in best.recipe.items() if not isinstance(value, list)})
        alone = pq.run("lenet", data, method, recipe, seed=best.seeds["seed"], device=flags.device)
        print(f"\nthe best settings alone, engine {alone.environment['engine']}: {alone.codelength:,.1f} nats", end="")
        print(f" ({alone.seconds:.0f} seconds)")
        for words, switching in (("a mixture of all", None), ("switching among all", "1/t")):
            begin = time.perf_counter()
            found = pq.mixture(records, switching=switching)
            print(f"{words}: {found.codelength:,.1f} nats ({time.perf_counter() - begin:.0f} seconds)")


if __name__ == "__main__":
    main()
