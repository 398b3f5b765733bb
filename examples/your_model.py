"""Your own model on your own data: `python examples/your_model.py`, or `preq run npz:… examples/your_model.py:Wide`."""

import numpy as np
from torch import Tensor, nn

import prequential as pq


class Wide(nn.Module):
    """Any nn.Module will do; of input_shape, num_classes and width it is given those it asks for."""

    def __init__(self, input_shape: tuple[int, ...], num_classes: int, width: float = 1.0) -> None:
        super().__init__()
        units = round(64 * width)
        self.layers = nn.Sequential(nn.Linear(input_shape[0], units), nn.ReLU(), nn.Linear(units, num_classes))

    def forward(self, inputs: Tensor) -> Tensor:
        return self.layers(inputs)  # type: ignore[no-any-return]


if __name__ == "__main__":
    random = np.random.default_rng(0)
    inputs = random.normal(size=(2000, 8)).astype("float32")  # one row for each example
    labels = (inputs[:, 0] * inputs[:, 1] > 0).astype(int)  # whole numbers from 0
    data = pq.from_arrays(inputs, labels).shuffled(seed=0)  # leave shuffled() out for a stream
    method = pq.ReplayStreams(num_streams=8, batch_size=16)
    runs = {width: pq.run(Wide, data, method, pq.Recipe(), width=width, seed=0) for width in (0.05, 1.0)}
    for width, record in runs.items():
        print(f"width {width:<4} {record.codelength:7.1f} nats, {record.errors} errors")
    print(f"uniform    {len(data) * np.log(2):7.1f} nats")
