"""What codes that look at labels alone need: `python experiments/simple_codes.py csv:elec.csv --label label`

Nats per label in the given order: uniform, by label frequencies, by the previous label.
"""

import argparse

import numpy as np

import prequential as pq
from prequential.targets.simple_codes import frequency_code, previous_label_code, uniform_code


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--label")
    flags = parser.parse_args()
    options = {"label": flags.label} if flags.label else {}
    data = pq.load_data(flags.data, order="given", **options)
    labels = data.labels(np.arange(len(data))).numpy()
    for code in (uniform_code, frequency_code, previous_label_code):
        print(f"{code.__name__:<20} {code(labels, data.num_classes).mean():.4f} nats per label")


if __name__ == "__main__":
    main()
