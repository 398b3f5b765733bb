"""A table and the same numbers as arrays: `python experiments/flights.py flights.csv.gz`

Of the first 20,000 flights that have no holes there, 11 columns of numbers go into a csv file and into arrays, and what
a run over each needs is printed. docs/tables.md says where the file of flights is from.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from pyarrow import csv

ROOT = Path(__file__).parent.parent
NAMES = [
    *("sched_dep_time", "sched_arr_time", "distance", "temp", "dewp", "humid"),
    *("wind_dir", "wind_speed", "precip", "pressure", "visib"),
]


def main() -> None:
    flights = csv.read_csv(sys.argv[1]).select([*NAMES, "late"])
    is_whole = ~np.any([column.is_null().to_numpy() for column in flights.columns], axis=0)
    flights = flights.take(np.flatnonzero(is_whole)[:20_000])
    inputs = np.stack([flights[name].to_numpy().astype(float) for name in NAMES], axis=1)
    labels = flights["late"].to_numpy().astype(int)
    with tempfile.TemporaryDirectory() as place:
        csv.write_csv(flights.set_column(len(NAMES), "late", [labels]), f"{place}/flights.csv")
        np.savez(f"{place}/flights.npz", x=inputs, y=labels)
        for data in (["table:flights.csv", "--label", "late"], ["npz:flights.npz"]):
            words = ["run", *data, "mlp2", "--seed", "0", "--threads", "1", "--json"]
            environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PREQ_DATA": place}
            command = [Path(sys.executable).with_name("preq"), *words]
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=place)
            print(f"preq {' '.join(words)}: {json.loads(done.stdout)['codelength_nats']:,.1f} nats", flush=True)


if __name__ == "__main__":
    main()
