"""What docs/results.md says of runs on a CPU, once more: `PREQ_DATA=DIR python experiments/cpu.py`

Every command of the results that ran on two cores is run, with seeds 0, 1 and 2 where it says `--seed S`, and
what it prints stands beside it. With words, only commands that have all of them are run.
"""

import json
import os
import re
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "results.md"
SEEDS = "0", "1", "2"


def commands(text: str) -> list[str]:
    """Those about runs on a CPU, each once, in order: rows of the table of results, and what is said below it."""
    results, _, below = text.partition("## Streams")
    rows = "\n".join(line for line in results.splitlines() if "| two cores |" in line)
    part = rows + below.partition("## Speed")[0]
    return list(dict.fromkeys(re.findall(r"`((?:preq run|python experiments/) ?[^`]*)`", part)))


def printed(command: str) -> str:
    """What a command prints: of runs the means over its seeds."""
    program, *words = shlex.split(command)
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    shared = {"capture_output": True, "text": True, "check": True, "env": environment}
    if program == "python":
        script = ROOT / words[0]
        return subprocess.run([sys.executable, script, *words[1:]], **shared).stdout.strip().replace("\n", "\n    ")
    found = []
    for seed in SEEDS if "S" in words else SEEDS[:1]:
        given = [seed if word == "S" else word for word in words]
        done = subprocess.run([Path(sys.executable).with_name("preq"), *given, "--json"], **shared)
        found.append(json.loads(done.stdout))
    mean = {name: statistics.mean(each[name] for each in found) for name in ("codelength_nats", "errors", "seconds")}
    nats, length = mean["codelength_nats"], found[0]["length"]
    each = ", ".join(f"{result['codelength_nats']:,.1f}" for result in found)
    heldout = [result["heldout"]["error_rate"] for result in found if result["heldout"]]
    rate = f", held-out error {statistics.mean(heldout):.2%}" if heldout else ""
    return (
        f"{nats:,.1f} nats, {nats / length:.4f} per label, {mean['errors']:,.0f} errors{rate}, "
        f"{mean['seconds']:.0f} s each ({each})"
    )


def main() -> None:
    for command in commands(PAGE.read_text()):
        if all(word in shlex.split(command) for word in sys.argv[1:]):
            print(f"{command}\n    {printed(command)}", flush=True)


if __name__ == "__main__":
    main()
