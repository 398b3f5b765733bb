"""What docs/results.md, docs/few_labels.md and the README say of runs on a CPU, once more:
`PREQ_DATA=DIR python experiments/cpu.py`

Every command of the results that ran on two cores is run, with seeds 0, 1 and 2 where it says `--seed S`, and
what it prints stands beside it; then those about few labels, and the README's comparison of five models. With words,
only commands that have all of them are run.
"""

import json
import os
import re
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE, FEW_LABELS, README = (ROOT / name for name in ("docs/results.md", "docs/few_labels.md", "README.md"))
SEEDS = "0", "1", "2"


def commands(text: str) -> list[str]:
    """Those about runs on a CPU, each once, in order: rows of the table of results, and what is said below it."""
    results, _, below = text.partition("## Streams")
    rows = "\n".join(line for line in results.splitlines() if "| two cores |" in line)
    part = rows + below.partition("## Speed")[0]
    return list(dict.fromkeys(re.findall(r"`((?:preq run|python experiments/) ?[^`]*)`", part)))


def commands_of_rows(text: str) -> list[str]:
    """Those that stand in tables."""
    rows = "\n".join(line for line in text.splitlines() if line.startswith("|"))
    return re.findall(r"`(preq run [^`]*)`", rows)


def compared(text: str) -> str:
    """What the README's commands about five models print, without their pictures."""
    lines = text[text.index("for model in mlp1") :].partition("```")[0].splitlines()
    script = "\n".join(line for line in lines if not line.startswith("preq plot"))
    preq = Path(sys.executable).parent
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PATH": f"{preq}{os.pathsep}{os.environ['PATH']}"}
    with tempfile.TemporaryDirectory() as there:
        shared = {"capture_output": True, "text": True, "check": True, "env": environment}
        done = subprocess.run(["bash", "-ec", script], cwd=there, **shared)
    return f"{script}\n{done.stdout[done.stdout.rindex('mnist ·') :]}"


def printed(command: str) -> str:
    """What a command prints: of runs the means over its seeds."""
    program, *words = shlex.split(command)
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    shared = {"capture_output": True, "text": True, "check": True, "env": environment}
    if program == "python":
        script = ROOT / words[0]
        return subprocess.run([sys.executable, script, *words[1:]], **shared).stdout.strip().replace("\n", "\n    ")
    found, before = [], processor_seconds()
    for seed in SEEDS if "S" in words else SEEDS[:1]:
        given = [seed if word == "S" else word for word in words]
        done = subprocess.run([Path(sys.executable).with_name("preq"), *given, "--json"], **shared)
        found.append(json.loads(done.stdout))
    codes, length = [each["codelength_nats"] for each in found], found[0]["length"]
    spread = f" ± {statistics.stdev(codes) / len(codes) ** 0.5:,.1f}" if len(codes) > 1 else ""
    heldout = [each["heldout"]["error_rate"] for each in found if each["heldout"]]
    rate = f", held-out error {statistics.mean(heldout):.2%}" if heldout else ""
    nats, errors = statistics.mean(codes), statistics.mean(each["errors"] for each in found)
    return (
        f"{nats:,.1f}{spread} nats, {nats / length:.4f} per label, {errors:,.0f} errors{rate}, "
        f"{(processor_seconds() - before) / len(found):.1f} s of a processor each "
        f"({', '.join(f'{code:,.1f}' for code in codes)})"
    )


def processor_seconds() -> float:
    """Of all commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    found = [*commands(PAGE.read_text()), *commands_of_rows(FEW_LABELS.read_text())]
    for command in dict.fromkeys(found):
        if all(word in shlex.split(command) for word in sys.argv[1:]):
            print(f"{command}\n    {printed(command)}", flush=True)
    if not sys.argv[1:]:
        print(compared(README.read_text()))


if __name__ == "__main__":
    main()
