"""What presets reach: `python experiments/presets.py --device cuda --out runs/presets DATA/MODEL/PRESET/SEED ...`

Every run is a process of its own, all at once; each keeps its record (and checkpoints) under --out, and one line of
JSON is printed for each when it is done. Run again, the command goes on with what was stopped. A job may change
settings of its preset, which is how the presets were found:

    mnist/smallconv/best/0?ema_step_size=0.001&augment=affine:0.7&num_streams=80&width=2

With --table a log of such lines becomes a table of means over seeds; nothing is run.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
from collections import defaultdict
from dataclasses import fields, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import prequential as pq
from prequential.presets import find_preset


def run(job: str, out: Path, options: dict[str, Any]) -> None:
    place, _, changes = job.partition("?")
    data_name, model, preset_name, seed = place.split("/")
    preset = find_preset(preset_name, data_name, model)
    settings = {name: value(text) for name, text in parse_qsl(changes)}
    if "augment" in settings:
        settings["augment"] = tuple(settings["augment"].split(","))
    width, length = settings.pop("width", 1.0), settings.pop("length", None)
    of_recipe = {f.name for f in fields(pq.Recipe)}
    recipe = replace(preset.recipe, **{name: v for name, v in settings.items() if name in of_recipe})
    data = pq.load_data(data_name)
    record = pq.run(
        model,
        data if length is None else data.take(length),
        preset.method("mi-rs", {name: v for name, v in settings.items() if name not in of_recipe}),
        recipe,
        seed=int(seed),
        width=width,
        out=out / job.replace("/", "-").replace("?", "-"),
        resume=True,
        checkpoint_seconds=30,
        **options,
    )
    made = record.environment
    facts = {name: made[name] for name in ("device_name", "torch", "engine", "precision", "compiled")}
    print(json.dumps({"job": job} | record.summary() | {"preset": preset_name} | facts), flush=True)


def value(text: str) -> Any:
    """A setting as it is written in a job."""
    if text in ("true", "false"):
        return text == "true"
    if text.isdecimal():
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text


def print_table(log: Path) -> None:
    """Means over seeds, with standard errors."""
    found = defaultdict(list)
    for line in log.read_text().splitlines():
        if line.startswith("{"):
            result = json.loads(line)
            place, _, changes = result["job"].partition("?")
            found[place.rpartition("/")[0] + (f"?{changes}" if changes else "")].append(result)
    for job, results in sorted(found.items()):
        nats = [r["codelength_nats"] for r in results if r["codelength_nats"] is not None]
        error = f" ± {statistics.stdev(nats) / math.sqrt(len(nats)):,.0f}" if len(nats) > 1 else ""
        mean = f"{statistics.mean(nats):,.0f}" if nats else "diverged"
        heldout = [r["heldout"]["error_rate"] for r in results if r["heldout"]]
        rate = f"{statistics.mean(heldout):.2%}" if heldout else "–"
        seconds = statistics.mean(r["seconds"] for r in results)
        print(f"{mean:>8}{error:<7} nats  {len(results)} seed(s)  held-out error {rate:>7}  {seconds:5.0f} s  {job}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", metavar="DATA/MODEL/PRESET/SEED")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--compile", choices=("auto", "yes", "no"), default="auto")
    parser.add_argument("--out", type=Path, default=Path("runs/presets"))
    parser.add_argument("--table", type=Path, metavar="LOG", help="print a log of results as a table")
    flags = parser.parse_args()
    if flags.table is not None:
        print_table(flags.table)
        return
    compiled = {"auto": None, "yes": True, "no": False}[flags.compile]
    execution = pq.Execution(engine=flags.engine, precision=flags.precision, compiled=compiled)
    options = {"device": flags.device, "execution": execution}
    if len(flags.jobs) == 1:
        run(flags.jobs[0], flags.out, options)
        return
    flagged = [word for name in ("device", "engine", "precision", "compile", "out")
               for word in (f"--{name}", str(getattr(flags, name)))]  # fmt: skip
    processes = [subprocess.Popen([sys.executable, __file__, *flagged, job]) for job in flags.jobs]
    sys.exit(max((process.wait() for process in processes), default=0))


if __name__ == "__main__":
    main()
