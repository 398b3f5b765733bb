"""What the presets reach: `python experiments/presets.py --device cuda --out runs/presets DATA/MODEL/PRESET/SEED ...`

Every run is a process of its own, all at once; each keeps its record (and checkpoints) under --out, and one line of
JSON is printed for each when it is done. Run again, the command goes on with what was stopped.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import prequential as pq
from prequential.presets import find_preset


def run(job: str, device: str, out: Path) -> None:
    data_name, model, preset_name, seed = job.split("/")
    preset = find_preset(preset_name, data_name, model)
    record = pq.run(
        model,
        pq.load_data(data_name),
        preset.method("mi-rs", {}),
        preset.recipe,
        seed=int(seed),
        device=device,
        out=out / job.replace("/", "-"),
        resume=True,
        checkpoint_seconds=30,
    )
    facts = {"preset": preset_name, "device": record.environment["device_name"], "torch": record.environment["torch"]}
    print(json.dumps(record.summary() | facts), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="+", metavar="DATA/MODEL/PRESET/SEED")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, required=True)
    flags = parser.parse_args()
    if len(flags.jobs) == 1:
        run(flags.jobs[0], flags.device, flags.out)
        return
    command = [sys.executable, __file__, "--device", flags.device, "--out", str(flags.out)]
    processes = [subprocess.Popen([*command, job]) for job in flags.jobs]
    sys.exit(max(process.wait() for process in processes))


if __name__ == "__main__":
    main()
