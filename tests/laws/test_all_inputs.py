"""Laws of codes that are given all inputs: plans look at no label early, and no label moves what was before it."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import prequential as pq
from prequential.data.sequence import ArraySequence
from prequential.errors import PreqError
from prequential.events import EndStudy, Predict, Study, TrainBeside
from prequential.learn.all_inputs import FromAllInputs
from prequential.learn.last_layer import LastLayer, with_last_layer
from prequential.learn.learner import Learner
from prequential.methods import AllInputs, FullDataset, Method, ReplayStreams
from prequential.methods.joint import method_settings
from prequential.methods.rebuild import method_from_settings
from prequential.plan import Plan
from prequential.runs.session import make_session
from prequential.testing import check_prefix_stable

from ..conftest import blobs
from .resuming import require_same_bits
from .strategies import lengths, prequential_methods, seeds

NUM_INPUTS = 96


@st.composite
def given_all(draw: st.DrawFn) -> AllInputs:
    return AllInputs(
        method=draw(prequential_methods()),
        num_inputs=draw(st.integers(400, 500)),
        study_steps=draw(st.integers(0, 5)),
        study_batch_size=draw(st.sampled_from([2, 64, 1000])),
        study_seed=draw(st.integers(0, 3)),
        beside=draw(st.integers(0, 3)),
    )


@settings(max_examples=40)
@given(given_all(), lengths, seeds, st.booleans())
def test_every_plan_is_causal_and_complete(method: Any, length: int, seed: int, heldout: bool) -> None:
    plan = Plan(method, length, seed, heldout)
    plan.check()
    assert plan.num_inputs == method.num_inputs
    counts = plan.counts()
    studied = [event for event in plan.events() if isinstance(event, Study)]
    assert counts.studies == len(studied) == method.study_steps
    assert counts.beside_examples == method.beside * counts.trained_examples
    assert all(len(set(event.indices.tolist())) == len(event.indices) for event in studied), "no input is its own rival"


@settings(max_examples=30)
@given(given_all(), lengths, lengths, seeds)
def test_a_prefix_does_not_depend_on_what_follows(method: Any, one: int, other: int, seed: int) -> None:
    shorter, longer = sorted([one, other])
    if shorter < longer and getattr(method.method, "batch_size", 1) <= shorter:
        check_prefix_stable(method, shorter, longer, seed)


@settings(max_examples=30)
@given(given_all(), lengths, seeds, st.floats(0, 1))
def test_a_plan_is_entered_anywhere(method: Any, length: int, seed: int, share: float) -> None:
    plan = Plan(method, length, seed)
    events = list(plan.events())
    start = int(share * len(events))
    assert list(islice(plan.events(start), 5)) == events[start : start + 5]


@settings(max_examples=30)
@given(given_all(), lengths)
def test_settings_come_back_and_work_is_bounded(method: Any, length: int) -> None:
    assert method_from_settings(method_settings(method)) == method
    counts, most = Plan(method, length).counts(), Plan(method, length).most_work()
    if most is not None:
        assert counts.events <= most.events
        assert counts.trained_examples + counts.beside_examples + 2 * counts.studied_examples <= most.trained


@pytest.mark.parametrize(
    ("event", "complaint"),
    [
        (Study(np.array([4])), "looks at input 4, but there are only"),
        (Study(np.array([], np.int64)), "has no inputs"),
        (EndStudy(np.array([-1])), "looks at input -1"),
        (TrainBeside(np.array([0]), np.array([4])), "looks at input 4"),
        (TrainBeside(np.array([2]), np.array([0])), "uses position 2, but only"),
    ],
)
def test_a_plan_that_looks_too_far_is_named(event: Any, complaint: str) -> None:
    class Cheat(ReplayStreams):
        num_inputs = 4

        def events(self, length: int, seed: int) -> Any:
            return iter([Predict(0, 2), event])

    with pytest.raises(PreqError, match=complaint):
        Plan(Cheat(), 2).check()


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(PreqError, match="erm has no code of labels"):
        AllInputs(method=FullDataset())
    with pytest.raises(PreqError, match="given already; wrap the method once"):
        AllInputs(method=AllInputs(method=ReplayStreams()))
    with pytest.raises(PreqError, match="a method such as ReplayStreams"):
        AllInputs(method=ReplayStreams)  # type: ignore[arg-type]
    with pytest.raises(PreqError, match="the plan is about 3 inputs, the data has 4"):
        AllInputs(method=ReplayStreams(), num_inputs=3).of(4)


def tiny(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(input_shape[0], 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, num_classes))


METHOD = ReplayStreams(num_streams=1, batch_size=8)
RECIPE = pq.Recipe(learning_rate=0.03)
KINDS: dict[str, dict[str, Any]] = {
    "both": {"study_steps": 3, "study_batch_size": 16, "beside": 2, "threshold": 0.3},
    "study": {"study_steps": 4, "study_batch_size": 16, "beside": 0, "body_rate": 0.3},
    "beside": {"beside": 3, "threshold": 0.2},
    "relative": {"beside": 2, "threshold": 0.9, "threshold_kind": "relative"},
    "adaptive": {"study_steps": 2, "beside": 2, "threshold": 1.0, "threshold_kind": "adaptive"},
}


def partly_labelled() -> ArraySequence:
    """48 labels, 96 inputs."""
    data: Any = blobs(NUM_INPUTS).without_heldout().with_num_labels(48)
    return data


def with_other_labels(data: Any, first: int) -> Any:
    """The same, every label from `first` on another."""
    whole = data.whole
    labels = whole.stored_labels.clone()
    labels[whole.order[first:]] = (labels[whole.order[first:]] + 1) % whole.num_classes
    return pq.from_arrays(
        whole.stored_inputs.numpy(), labels.numpy(), num_classes=whole.num_classes, name=whole.name
    ).with_num_labels(len(data))


def nats(data: Any, kind: dict[str, Any], learner: Callable[..., Any] | None = None) -> Any:
    method = AllInputs(method=METHOD, **kind)
    own = None if learner is None else partial(learner, given=method.of(NUM_INPUTS))
    return pq.run(tiny, data, method, RECIPE, seed=0, learner=own).nats


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", [0, 13, 40])
def test_no_label_moves_what_was_before_it(kind: str, first: int) -> None:
    data = partly_labelled()
    assert (
        nats(data, KINDS[kind])[:first].tolist() == nats(with_other_labels(data, first), KINDS[kind])[:first].tolist()
    )


@pytest.mark.parametrize("kind", KINDS)
def test_inputs_without_labels_do_something(kind: str) -> None:
    data = partly_labelled()
    plain = pq.run(tiny, data, METHOD, RECIPE, seed=0).nats
    assert nats(data, KINDS[kind]).tolist() != plain.tolist()


class PeekingStudy(FromAllInputs):
    """Its study sees the label of one input."""

    def study_steps(self, batches: Any, event: int) -> None:
        super().study_steps(batches, event)
        with torch.no_grad():
            self.model[0].weight[0, 0] += 0.01 * self.data.labels(np.array([20]))[0]  # type: ignore[index]


class TrueLabels(FromAllInputs):
    """An input is taken for what it is."""

    def train_beside_steps(self, batches: Any, labels: Tensor, event: int) -> None:
        beside = batches[:, labels.shape[1] :] % len(self.data)
        true = self.data.labels(beside.reshape(-1))
        taken_for = self._beside.taken_for
        self._beside.taken_for = lambda *given: (true, taken_for(*given)[1])  # type: ignore[method-assign]
        super().train_beside_steps(batches, labels, event)


class FutureCounts(FromAllInputs):
    """Alignment knows how many labels of each class there will be."""

    def observe(self, start: int, stop: int, labels: Tensor) -> None:
        super().observe(start, stop, self.data.labels(np.arange(len(self.data))))


@pytest.mark.parametrize("learner", [PeekingStudy, TrueLabels, FutureCounts])
def test_the_law_notices_who_looks_ahead(learner: Any) -> None:
    data, first = partly_labelled(), 40 if learner is not PeekingStudy else 16
    kind = KINDS["both"] | {"threshold": 0.2}
    both = [nats(each, kind, learner)[:first].tolist() for each in (data, with_other_labels(data, first))]
    assert both[0] != both[1]
    honest = [nats(each, kind, FromAllInputs)[:first].tolist() for each in (data, with_other_labels(data, first))]
    assert honest[0] == honest[1]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_coded_given_all_inputs_is_decoded_without_a_label(kind: str) -> None:
    data = partly_labelled()
    bits = pq.encode(tiny, data, AllInputs(method=METHOD, **KINDS[kind]), RECIPE, seed=0)
    blind = with_other_labels(data, 0)
    assert np.array_equal(pq.decode(bits, blind, tiny), data.labels(np.arange(48)).numpy())


def test_runs_that_differ_in_their_seed_share_a_study() -> None:
    data, given = partly_labelled(), AllInputs(method=METHOD, **KINDS["both"]).of(NUM_INPUTS)

    def studied(seed: int, **changes: Any) -> FromAllInputs:
        method = AllInputs(**({name: getattr(given, name) for name in vars(given)} | changes))
        learner = FromAllInputs(tiny, data, RECIPE, seed=seed, given=method)
        for number, event in enumerate(Plan(method, 48).events()):
            if isinstance(event, EndStudy):
                learner.end_study(event.indices)
                return learner
            assert isinstance(event, Study)
            learner.study_steps(event.indices[None], number)
        raise AssertionError

    first, same, other = studied(0), studied(1), studied(0, study_seed=1)
    assert (first.study_key, first.study_digest) == (same.study_key, same.study_digest)
    assert first.study_key != other.study_key
    assert first.study_digest != other.study_digest
    assert all(tensor.dtype == torch.float16 for tensor in first.studied if tensor.is_floating_point())
    for kept, used in zip(first.studied, first.raw_tensors.all, strict=True):
        assert torch.equal(kept.to(used.dtype), used), "what is learned from is what is kept"


@settings(max_examples=12)
@given(st.sampled_from(sorted(KINDS)), st.floats(0, 1))
def test_a_learner_goes_on_from_any_event(kind: str, share: float) -> None:
    data = partly_labelled()
    given = AllInputs(method=METHOD, **KINDS[kind]).of(NUM_INPUTS)
    plan = Plan(given, 48)
    stop = int(share * plan.counts().events)

    def learner() -> FromAllInputs:
        return FromAllInputs(tiny, data, RECIPE, seed=0, given=given)

    whole, first, second = learner(), learner(), learner()
    walk(whole, data, plan, 0, None)
    walk(first, data, plan, 0, stop)
    state = first.state()
    second.expect(set(state))
    second.restore(state)
    walk(second, data, plan, stop, None)
    for mine, other in zip(whole.tensors().items(), second.tensors().items(), strict=True):
        assert mine[0] == other[0]
        assert all(torch.equal(a, b) for a, b in zip(mine[1], other[1], strict=True)), mine[0]


def walk(learner: FromAllInputs, data: Any, plan: Plan, start: int, stop: int | None) -> None:
    """Execute some events of a plan."""
    for number, event in islice(enumerate(plan.events(start), start), None if stop is None else stop - start):
        match event:
            case Predict(begin, end):
                learner.predict(begin, end)
                learner.observe(begin, end, data.labels(np.arange(begin, end)))
            case pq.Calibrate(indices):
                learner.calibrate(indices, data.labels(indices))
            case TrainBeside(indices, beside):
                both = np.concatenate([indices, beside])
                learner.train_beside_steps(both[None], data.labels(indices)[None], number)
            case pq.Train(indices):
                learner.train_steps(indices[None], data.labels(indices)[None], number)
            case Study(indices):
                learner.study_steps(indices[None], number)
            case EndStudy(indices):
                learner.end_study(indices)


AVERAGES = pq.Experts([pq.Expert(tiny, averages=(0.1, 0.05)), pq.Expert(tiny, averages=(0.05, 0.1))], "bayes")
"""One network twice, trained by what its first average takes inputs for."""
APART = replace(RECIPE, ema_warmup=False)
"""Averages differ from the first step on."""


@pytest.mark.parametrize("kind", KINDS)
def test_the_average_that_teaches_is_what_it_is_alone(kind: str) -> None:
    data, method = partly_labelled(), AllInputs(method=METHOD, **KINDS[kind])
    experts = pq.Experts([replace(each, seed=0) for each in AVERAGES.each], "bayes")
    mixed = pq.run(experts, data, method, APART, seed=0)
    assert mixed.expert_nats is not None
    alone = [pq.run(tiny, data, method, replace(APART, ema_step_size=size), seed=0).nats for size in (0.1, 0.05)]
    large, small_of_large, small, large_of_small = (column.tolist() for column in mixed.expert_nats.T)
    assert [large, small] == [nats.tolist() for nats in alone]
    # it does not matter who teaches where nobody is taught, or where both take everything for the same
    assert [small_of_large == small, large_of_small == large] == [kind in ("study", "beside")] * 2


@pytest.mark.parametrize("kind", KINDS)
def test_several_averages_keep_the_laws(kind: str) -> None:
    data, method = partly_labelled(), AllInputs(method=METHOD, **KINDS[kind])
    record, other = (pq.run(AVERAGES, each, method, APART, seed=0) for each in (data, with_other_labels(data, 13)))
    assert record.expert_nats is not None
    assert other.expert_nats is not None
    assert record.expert_nats[:13].tolist() == other.expert_nats[:13].tolist()
    bits = pq.encode(AVERAGES, data, method, APART, seed=0)
    assert np.array_equal(pq.decode(bits, with_other_labels(data, 0), AVERAGES), data.labels(np.arange(48)).numpy())


@settings(max_examples=12)
@given(st.sampled_from(sorted(KINDS)), st.lists(st.integers(0, 40), max_size=2))
def test_several_averages_go_on_from_any_event(kind: str, stops: list[int]) -> None:
    data = partly_labelled()
    full = AVERAGES.completed(AllInputs(method=METHOD, **KINDS[kind]), APART, 1.0, 5, NUM_INPUTS)
    plan = Plan(full.method, 48)

    def fresh() -> Any:
        return make_session(full, data, full.method, [None], [5], evaluate=False).learner

    require_same_bits(plan, data, fresh, stops, num_experts=len(full.names))


def test_a_network_without_a_last_layer_is_refused() -> None:
    def odd(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        return nn.Sequential(
            nn.Linear(input_shape[0], num_classes), nn.LayerNorm(num_classes), nn.Linear(num_classes, 3)
        )

    data = blobs(48, num_classes=4).without_heldout()
    method = AllInputs(method=METHOD, study_steps=1)
    with pytest.raises(PreqError, match="does not end in a linear layer with 4 outputs"):
        pq.run(odd, data, method, seed=0)


def test_what_follows_the_last_layer_is_a_normalisation_or_refused() -> None:
    """A study puts standardised features in the place of normalised outputs."""

    def ends_in(last: nn.Module, num_classes: int) -> nn.Module:
        return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, num_classes, bias=False), last)

    def normalised(num_classes: int) -> nn.Module:
        return ends_in(nn.BatchNorm1d(num_classes), num_classes)

    def normalised_otherwise(num_classes: int) -> nn.Module:
        return ends_in(nn.LayerNorm(num_classes), num_classes)

    def plain(num_classes: int) -> nn.Module:
        return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, num_classes, bias=False))

    data, method = blobs(48, num_classes=4).without_heldout(), AllInputs(method=METHOD, study_steps=2)
    assert pq.run(normalised, data, method, seed=0).nats.tolist() == pq.run(plain, data, method, seed=0).nats.tolist()

    def scaled(num_classes: int) -> nn.Module:
        return ends_in(nn.Hardtanh(), num_classes)

    for refused in (normalised_otherwise, scaled):
        with pytest.raises(PreqError, match="does something with the outputs of its last linear layer"):
            pq.run(refused, data, method, seed=0)
    for factory in (normalised, normalised_otherwise, scaled):
        pq.run(factory, data, replace(method, study_steps=0), seed=0)

    def weighed(num_classes: int) -> nn.Module:
        return nn.Sequential(nn.Linear(5, 8), nn.utils.parametrizations.weight_norm(nn.Linear(8, num_classes)))

    assert pq.run(weighed, data, method, seed=0).status == "finished", "a last layer may have parts"


def test_a_normalisation_before_the_last_layer_stays_whatever_the_order_it_is_told_in() -> None:
    class Late(nn.Module):
        def __init__(self, num_classes: int) -> None:
            super().__init__()
            self.below, self.last = nn.Linear(5, num_classes), nn.Linear(num_classes, num_classes)
            self.norm = nn.BatchNorm1d(num_classes)

        def forward(self, inputs: Tensor) -> Tensor:
            outputs: Tensor = self.last(self.norm(self.below(inputs)))
            return outputs

    assert isinstance(with_last_layer(Late(4), 4, "late").norm, nn.BatchNorm1d)
    alone = with_last_layer(nn.Sequential(nn.Linear(5, 4)), 4, "alone")
    assert isinstance(alone.get_submodule("0"), LastLayer)
    data, method = blobs(48, num_classes=4).without_heldout(), AllInputs(method=METHOD, study_steps=2)
    assert pq.run(Late, data, method, seed=0).status == "finished"


def test_a_learner_of_labels_alone_is_refused() -> None:
    data = blobs(48).without_heldout()
    with pytest.raises(PreqError, match="learns from labelled examples alone"):
        pq.run(tiny, data, AllInputs(method=METHOD), seed=0, learner=Learner)


def test_members_share_studies_and_are_what_they_are_alone() -> None:
    data = partly_labelled()
    methods: list[Method] = [AllInputs(method=METHOD, **KINDS["both"], study_seed=seed) for seed in (0, 0, 1)]
    experts = pq.Experts([pq.Expert(tiny, method=method, seed=seed) for seed, method in enumerate(methods)])
    mixed = pq.run(experts, data, METHOD, RECIPE, seed=0)
    assert mixed.expert_nats is not None
    for number, method in enumerate(methods):
        alone = pq.run(tiny, data, method, RECIPE, seed=number)
        assert mixed.expert_nats[:, number].tolist() == alone.nats.tolist()
