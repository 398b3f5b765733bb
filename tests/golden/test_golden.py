"""Numbers that must not move by accident. Plans are exact; nats carry a tolerance.

A change here belongs under *Numbers* in the CHANGELOG.
"""

import numpy as np
import pytest

import prequential as pq
from prequential.data.sequence import ArraySequence
from prequential.methods import Method
from prequential.plan import Plan
from prequential.rng import derive, draw_bits, permutation

PLANS: list[tuple[Method, str]] = [
    (pq.ReplayStreams(num_streams=8), "0db42e68a429bc63b6be6a58c3fa8c54"),
    (pq.ReplayStreams(num_streams=50, age_law=pq.Pareto(180.0)), "dc75469506c94550cca99219efa1a7b3"),
    (pq.ReplayStreams(num_streams=5, age_law=pq.Exponential(500.0)), "4fbec6c3ba71150228bc2ec20e344e89"),
    (pq.ReplayStreams(num_streams=8, first_block=4, min_steps=8), "ca2725b0f7ccbd56ff03aadf2bc426f4"),
    (pq.ReplayStreams(num_streams=8, first_block=4, early_labels=1024), "054bb94055da57e645098405de04aa46"),
    (pq.ReplayBuffer(num_replays=8), "2d0791373391d2421f4cf482a47bda15"),
    (pq.ReplayBuffer(num_replays=8, capacity=512), "9533209b94369a3721a1d087b628fcc9"),
    (pq.ReplayBuffer(num_replays=8, capacity=512, replacement="reservoir"), "c1171b91752aa775d44f6dc681a8ce4e"),
    (pq.ChunksFromScratch(epochs=3), "4dc0f64ebbbf1c62e62e94005ec0e179"),
    (
        pq.ChunksFineTuned(epochs=3, shrink=0.5, perturb=0.1, split_points=(100, 1000)),
        "c7df91649a5e1314eab24f2ae71806b9",
    ),
    (pq.FullDataset(epochs=2), "4864e69ed3c7600ce46824142b083cd8"),
]


@pytest.mark.parametrize(("method", "digest"), PLANS, ids=[f"{i}-{m.name}" for i, (m, _) in enumerate(PLANS)])
def test_plans_are_what_they_were(method: Method, digest: str) -> None:
    assert Plan(method, 3001, seed=7, heldout=True).digest() == digest


def test_random_numbers_are_what_they_were() -> None:
    assert derive(0, "order") == 14049055906526217227
    assert draw_bits(1, np.arange(2)).tolist() == [10451216379200822465, 13757245211066428519]
    assert permutation(derive(0, "order"), 6).tolist() == [2, 0, 4, 1, 5, 3]


def test_the_order_of_mnist_is_what_it_was(mnist: ArraySequence) -> None:
    assert mnist.order[:6].tolist() == [1143, 56110, 25795, 52928, 10219, 52025]
    assert mnist.take(4096).digests() == {
        "inputs": "6a920e0ea2f29d0912a3a241e4342be9",
        "labels": "229f3b08574e91cb299ee214d2415620",
    }


@pytest.mark.parametrize(
    ("model", "method", "nats"),
    [
        ("lenet", pq.ReplayStreams(num_streams=8), 477.3),
        ("mlp2", pq.ReplayBuffer(num_replays=4, capacity=256), 699.7),
        ("lenet", pq.ChunksFineTuned(epochs=5), 570.3),
    ],
)
def test_codelengths_are_about_what_they_were(mnist: ArraySequence, model: str, method: Method, nats: float) -> None:
    data = mnist.take(512).without_heldout()
    lengths = [pq.run(model, data, method, seed=seed).codelength or 0.0 for seed in range(3)]
    assert np.mean(lengths) == pytest.approx(nats, rel=0.05)
