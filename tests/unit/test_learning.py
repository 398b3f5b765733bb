"""The formulas, the optimizers and the learner against independent computations."""

import copy
import math
import os
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

import prequential as pq
from prequential.data.sequence import ArraySequence
from prequential.errors import PreqError
from prequential.learn import classes, functional
from prequential.learn.environment import environment, fastest_num_threads, find_device, num_threads
from prequential.learn.estimate import cost_per_example, flops_of
from prequential.learn.learner import Learner
from prequential.learn.optimizers import make_optimizer
from prequential.models import MODELS, build
from prequential.plan import Plan

from ..conftest import blobs


@given(st.integers(0, 1000), st.floats(-3, 5))
def test_the_calibration_gradient_is_the_derivative(seed: int, value: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(6, 4, generator=generator, dtype=torch.float64) * 3
    labels = torch.randint(4, (6,), generator=generator)
    beta = torch.tensor(value, dtype=torch.float64, requires_grad=True)
    loss = F.cross_entropy(F.softplus(beta) * logits, labels)
    (wanted,) = torch.autograd.grad(loss, beta)
    torch.testing.assert_close(classes.calibration_gradient(logits, labels, beta.detach()), wanted)


@given(st.integers(0, 1000), st.floats(0, 0.99))
def test_the_training_gradient_is_the_derivative(seed: int, smoothing: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = (torch.randn(6, 4, generator=generator, dtype=torch.float64) * 3).requires_grad_()
    labels = torch.randint(4, (6,), generator=generator)
    (wanted,) = torch.autograd.grad(F.cross_entropy(logits, labels, label_smoothing=smoothing), logits)
    torch.testing.assert_close(classes.cross_entropy_gradient(logits.detach(), labels, smoothing), wanted)


def test_the_temperature_starts_at_one() -> None:
    assert float(functional.temperature(torch.tensor(functional.INITIAL_BETA))) == pytest.approx(1, abs=1e-7)


def test_warm_up_looks_back_over_the_last_fifth_of_the_steps() -> None:
    n = 400
    weights = np.zeros(n)
    for m in range(1, n + 1):  # the average of unit vectors shows what each step counts
        weights *= 1 - functional.ema_step_size(0.01, m, warmup=True)
        weights[m - 1] += functional.ema_step_size(0.01, m, warmup=True)
    wanted = [math.comb(m - 1, 4) / math.comb(n, 5) for m in range(1, n + 1)]
    assert weights == pytest.approx(np.array(wanted), abs=1e-12)
    assert weights[-1] == pytest.approx(5 / n)
    assert (weights * np.arange(n)[::-1]).sum() == pytest.approx((n - 5) / 6)
    assert weights[-n // 5 :].sum() == pytest.approx(2 / 3, abs=0.01)
    assert weights[-n // 8 :].sum() == pytest.approx(1 / 2, abs=0.02)


def test_the_warm_up_ends_at_the_step_size_asked_for() -> None:
    steps = [functional.ema_step_size(0.01, n, warmup=True) for n in range(1, 2000)]
    assert steps[:5] == [1.0] * 5
    assert steps[99] == 0.05
    assert steps[499] == 0.01
    assert steps[-1] == 0.01
    assert functional.ema_step_size(0.01, 1, warmup=False) == 0.01


@pytest.mark.parametrize("name", ["adamw", "rmsprop", "sgd", "muon"])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_gradients_in_another_layout_move_the_same_weights(name: str, momentum: float) -> None:
    recipe = pq.Recipe(optimizer=name, momentum=momentum)
    weight, gradient = torch.randn(4, 3, 3, 3), torch.randn(4, 3, 3, 3)
    moved = []
    for layout in (torch.contiguous_format, torch.channels_last):
        parameter = weight.clone(memory_format=layout)
        optimizer = make_optimizer(recipe, [parameter], with_last=False)
        for _ in range(3):
            optimizer.step([gradient])
        moved.append(parameter)
    torch.testing.assert_close(moved[0], moved[1])
    assert not torch.equal(moved[0], weight)


@pytest.mark.parametrize("name", ["adamw", "rmsprop", "sgd"])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_optimizers_do_what_torchs_do(name: str, momentum: float) -> None:
    recipe = pq.Recipe(optimizer=name, learning_rate=0.01, eps=1e-3, weight_decay=0.1, momentum=momentum)
    ours, theirs = nn.Linear(3, 2), nn.Linear(3, 2)
    theirs.load_state_dict(ours.state_dict())
    makers = {
        "adamw": lambda p: torch.optim.AdamW(p, 0.01, (momentum, 0.999), 1e-3, 0.1),
        "rmsprop": lambda p: torch.optim.RMSprop(p, 0.01, eps=1e-3, momentum=momentum),
        "sgd": lambda p: torch.optim.SGD(p, 0.01, momentum),
    }
    reference = makers[name](theirs.parameters())
    optimizer = make_optimizer(recipe, [p.detach() for p in ours.parameters()])
    for repeat in range(2):
        for step in range(5):
            inputs = torch.full((4, 3), 0.1 * step + repeat)
            gradients = torch.autograd.grad(ours(inputs).square().sum(), list(ours.parameters()))
            optimizer.step(list(gradients))
            reference.zero_grad()
            theirs(inputs).square().sum().backward()
            if name != "adamw":
                torch._foreach_mul_([p.detach() for p in theirs.parameters()], 1 - 0.01 * 0.1)
            reference.step()
        for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-7)
        optimizer.reset()
        reference = makers[name](theirs.parameters())


@pytest.mark.parametrize("with_last", [True, False])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_muon_moves_hidden_matrices_as_torchs_does_and_the_rest_as_adamw(
    momentum: float, with_last: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.Tensor, "bfloat16", torch.Tensor.clone)  # which torch's computes in
    recipe = pq.Recipe(optimizer="muon", learning_rate=0.01, eps=1e-3, weight_decay=0.1, momentum=momentum)
    shapes = (4, 2, 3, 3), (4,), (6, 16), (9, 6), (9,), (3, 9), (3,)
    ours = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    ours[0] = ours[0].contiguous(memory_format=torch.channels_last)
    theirs = [nn.Parameter(p.clone()) for p in ours]
    theirs[0] = nn.Parameter(ours[0].flatten(1).clone())
    hidden = {0, 2, 3} if with_last else {0, 2, 3, 5}
    of_muon, of_adamw = ([p for n, p in enumerate(theirs) if (n in hidden) is there] for there in (True, False))
    muon = torch.optim.Muon(of_muon, 0.01, weight_decay=0.1, momentum=momentum, adjust_lr_fn="match_rms_adamw")
    adamw = torch.optim.AdamW(of_adamw, 0.01, (momentum, 0.999), 1e-3, 0.1)
    optimizer = make_optimizer(recipe, ours, with_last=with_last)
    for _ in range(2):
        for _ in range(5):
            gradients = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
            for p, gradient in zip(theirs, gradients, strict=True):
                p.grad = gradient.reshape(p.shape).clone()
            muon.step()
            adamw.step()
            optimizer.step(gradients)
            for mine, other in zip(ours, theirs, strict=True):
                torch.testing.assert_close(mine.reshape(other.shape), other.detach(), rtol=1e-9, atol=1e-12)
        optimizer.reset()
        muon.state.clear()
        adamw.state.clear()


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 99), st.floats(1e-3, 1e3))
def test_what_is_orthogonalised_keeps_its_directions_and_has_singular_values_near_one(
    rows: int, columns: int, seed: int, scale: float
) -> None:
    rank = min(rows, columns)
    u, s, v = torch.linalg.svd(
        torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed), dtype=torch.float64),
        full_matrices=False,
    )
    s = (s / s.norm()).clamp(min=0.01)
    found = u.T @ functional.orthogonalised(scale * (u * s) @ v) @ v.T
    assert (found - found.diagonal().diag()).abs().max() < 1e-9
    assert ((found.diagonal() > 0.68) & (found.diagonal() < 1.21)).all()
    assert found.shape == (rank, rank)


def test_muon_without_any_matrix_is_adamw() -> None:
    beta = [torch.ones((), dtype=torch.float64) for _ in range(2)]
    for parameter, name in zip(beta, ("muon", "adamw"), strict=True):
        optimizer = make_optimizer(pq.Recipe(optimizer=name), [parameter], rate_factor=3.0, decay=False)
        for gradient in (0.3, -0.1):
            optimizer.step([torch.full((), gradient, dtype=torch.float64)])
        assert optimizer.state.keys() == {"mean", "square", "step"}
    assert beta[0] == beta[1] != 1


def learner_of(recipe: pq.Recipe, factory: str | type[nn.Module] = "mlp1", length: int = 64) -> Learner:
    return Learner(factory, blobs(length), recipe, seed=0, calibration_rate_factor=3.0)


def test_training_is_a_plain_step_and_the_average_follows() -> None:
    recipe = pq.Recipe(label_smoothing=0.1, ema_step_size=0.25, ema_warmup=False, weight_decay=0.05)
    data = blobs(64)
    learner = Learner(lambda: nn.Linear(5, 3), data, recipe, seed=0)
    plain = copy.deepcopy(learner.model)
    average = [p.detach().clone() for p in plain.parameters()]
    optimizer = torch.optim.AdamW(plain.parameters(), recipe.learning_rate, (0.9, 0.999), recipe.eps, 0.05)
    for event in range(10):
        indices = np.arange(event, event + 16)
        labels = data.labels(indices)
        learner.train(indices, labels, event)
        optimizer.zero_grad()
        F.cross_entropy(plain(data.inputs(indices)), labels, label_smoothing=0.1).backward()
        optimizer.step()
        average = [a + 0.25 * (p.detach() - a) for a, p in zip(average, plain.parameters(), strict=True)]
    for mine, other in zip(learner.model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-6)
    for mine, wanted in zip(learner.averaged.parameters(), average, strict=True):
        torch.testing.assert_close(mine, wanted, rtol=1e-5, atol=1e-6)


def test_batch_statistics_are_averaged_and_counters_copied() -> None:
    def factory() -> nn.Module:
        return nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 3))

    data = blobs(64)
    learner = Learner(factory, data, pq.Recipe(ema_step_size=0.5, ema_warmup=False), seed=0)
    wanted = torch.zeros(5)
    for event in range(3):
        learner.train(np.arange(32), data.labels(np.arange(32)), event)
        raw = learner.model[0].running_mean  # type: ignore[index]
        assert isinstance(raw, torch.Tensor)
        wanted = wanted + 0.5 * (raw - wanted)
    buffers = dict(learner.averaged.named_buffers())
    torch.testing.assert_close(buffers["0.running_mean"], wanted)
    assert int(buffers["0.num_batches_tracked"]) == 3


def test_calibration_uses_the_logits_at_hand_and_its_own_learning_rate() -> None:
    recipe = pq.Recipe(optimizer="sgd", momentum=0.0, learning_rate=0.01, weight_decay=0.5)
    learner = learner_of(recipe)
    labels = learner.data.labels(np.arange(8))
    learner.predict(0, 8)
    logits = learner.averaged(learner.inputs.clean(np.arange(8)))
    wanted = learner.beta - 0.03 * classes.calibration_gradient(logits, labels, learner.beta)
    forward, calls = learner.averaged.forward, []
    learner.averaged.forward = lambda *a: calls.append(1) or forward(*a)  # type: ignore[func-returns-value]
    learner.calibrate(np.arange(8), labels)
    assert not calls
    torch.testing.assert_close(learner.beta, wanted)
    learner.train(np.arange(8), labels, 0)
    learner.calibrate(np.arange(8), labels)
    assert calls, "after training the logits at hand are stale"


def test_reinit_starts_anew_and_shrink_perturb_keeps_temperature_and_statistics() -> None:
    def factory() -> nn.Module:
        return nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 3))

    data = blobs(64)
    learner = Learner(factory, data, pq.Recipe(), seed=0)
    labels = data.labels(np.arange(32))

    def learn() -> None:
        for event in range(5):
            learner.train(np.arange(32), labels, event)
            learner.calibrate(np.arange(32), labels)

    learn()
    before = copy.deepcopy(learner.model.state_dict())
    beta = learner.beta.clone()
    learner.shrink_perturb(0.4, 0.0, event=7)
    after = learner.model.state_dict()
    torch.testing.assert_close(after["1.weight"], before["1.weight"] * 0.4)
    torch.testing.assert_close(learner.averaged.state_dict()["1.weight"], after["1.weight"])
    assert torch.equal(after["0.running_mean"], before["0.running_mean"])
    assert torch.equal(learner.beta, beta)
    assert learner.num_steps == 0
    assert all(not t.any() for tensors in learner.optimizer.state.values() for t in tensors)
    learner.shrink_perturb(0.0, 1.0, event=7)
    perturbed = learner.model.state_dict()["1.weight"].clone()
    learn()
    learner.reinit(event=7)
    state = learner.model.state_dict()
    assert torch.equal(state["1.weight"], perturbed), "the fresh initialisation depends on seed and event alone"
    assert not state["0.running_mean"].any()
    assert float(learner.beta) == functional.INITIAL_BETA
    learner.reinit(event=8)
    assert not torch.equal(learner.model.state_dict()["1.weight"], perturbed)


def test_flops_are_those_of_the_layers_times_the_counts() -> None:
    model = build("lenet", (1, 28, 28), 10)
    cost = cost_per_example(model, torch.zeros(2, 1, 28, 28))
    assert cost is not None
    macs = 28 * 28 * 6 * 25 + 10 * 10 * 16 * 6 * 25 + 400 * 120 + 120 * 84 + 84 * 10
    assert cost.forward == 2 * macs
    assert cost.train == 3 * 2 * macs - 2 * 28 * 28 * 6 * 25
    data = blobs(64)
    learner = Learner(lambda: nn.Linear(5, 3), data, pq.Recipe(), seed=0)
    streams = flops_of(Plan(pq.ReplayStreams(num_streams=3, batch_size=8), 64, heldout=True), learner)
    assert streams == {"code": 64 * 30 + 64 * 4 * 60, "heldout": 16 * 30}
    method = pq.ChunksFromScratch(batch_size=8, epochs=1, split_points=(32,))
    plan = Plan(method, 64, heldout=True)
    chunks, counts = flops_of(plan, learner), plan.without_heldout().counts()
    assert chunks is not None
    assert chunks["code"] == 30 * (32 + counts.recomputed_examples) + 60 * counts.trained_examples
    assert chunks["heldout"] > 16 * 30


@pytest.mark.parametrize(("name", "parameters"), [("mlp1", 407_050), ("mlp2", 669_706), ("mlp3", 932_362),
                                                  ("lenet", 61_706), ("smallconv", 871_082),
                                                  ("mnistnet", 1_307_754)])  # fmt: skip
def test_models_have_their_known_sizes_and_obey_the_laws(name: str, parameters: int) -> None:
    from prequential.testing import check_model

    check_model(name, (1, 28, 28), 10)
    count = {w: sum(p.numel() for p in build(name, (1, 28, 28), 10, width=w).parameters()) for w in (0.25, 1, 2)}
    assert count[1] == parameters
    assert count[0.25] < count[1] < count[2]
    assert set(MODELS) >= {"mlp1", "mlp2", "mlp3", "lenet", "smallconv", "mnistnet"}


def test_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_device("cpu").type == "cpu"
    with num_threads(2):
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == 1
    now = 0.0

    def takes(seconds: Callable[[int], float]) -> Callable[[], None]:
        """A step that takes so long, by the clock that measures it, with a number of threads."""

        def step() -> None:
            nonlocal now
            now += seconds(torch.get_num_threads())

        return step

    with monkeypatch.context() as patch:
        patch.setattr("prequential.learn.environment.time", SimpleNamespace(perf_counter=lambda: now))
        patch.setattr(os, "sched_getaffinity", lambda process: set(range(5)))
        assert fastest_num_threads(takes(lambda threads: 1.0 * threads)) == 1
        assert fastest_num_threads(takes(lambda threads: 1.0 / threads)) == 4
        assert fastest_num_threads(takes(lambda threads: {1: 1.0, 2: 0.8, 4: 0.75}[threads])) == 2
        assert fastest_num_threads(takes(lambda threads: {1: 1.0, 2: 0.9, 4: 0.8}[threads])) == 4
        patch.setattr(os, "sched_getaffinity", lambda process: {3})
        assert fastest_num_threads(takes(lambda threads: 1.0 / threads)) == 1
    facts = environment(Learner("mlp1", pq.load_data("mnist").take(8), pq.Recipe(), seed=0))
    assert facts["torch"] == torch.__version__
    assert math.isclose(facts["threads"], 1)


def test_raw_statistics_stand_beside_averaged_weights(mnist: ArraySequence) -> None:
    recipe = pq.Recipe(batch_statistics="raw", ema_step_size=0.1, ema_warmup=False)
    learner = Learner("smallconv", mnist.take(64), recipe, seed=0, width=0.1)
    for event in range(3):
        indices = np.arange(32)
        learner.train(indices, learner.data.labels(indices), event)
    for raw, averaged in zip(learner.model.buffers(), learner.averaged.buffers(), strict=True):
        assert torch.equal(raw, averaged)
    assert not any(
        torch.equal(raw, averaged)
        for raw, averaged in zip(learner.model.parameters(), learner.averaged.parameters(), strict=True)
    )
    with pytest.raises(PreqError, match="unknown kind of batch statistics 'fast'"):
        pq.Recipe(batch_statistics="fast")
