"""Several learners as one: each event goes to all of them, and what they predict is mixed."""

import copy
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from prequential.data.optional import Read
from prequential.errors import PreqError, PreqWarning
from prequential.events import Event, Train
from prequential.experts.code import MixedCode
from prequential.experts.executing import Executing, Member
from prequential.experts.prediction import MixedPrediction
from prequential.files import digest_of
from prequential.learn.all_inputs import FromAllInputs
from prequential.learn.base import BaseLearner
from prequential.learn.estimate import Share
from prequential.learn.inputs import Inputs
from prequential.learn.learning import Learning
from prequential.learn.prediction import Predicted, Prediction, heldout_parts
from prequential.learn.shared_studies import studies_first
from prequential.methods.joint import ForExperts, Joint
from prequential.plan import Plan
from prequential.walks import with_reads


class MixedLearner(Executing):
    """A `Learning` over others. What one of them does depends on none of the others.

    Args:
        members: who learns; at least one.
        code: what mixes their predictions.
        names: of all experts.
    """

    def __init__(self, members: Sequence[Member], code: MixedCode, names: Sequence[str]) -> None:
        self.each, self.code, self.names = members, code, names
        self.members = [member.learner for member in members]
        networks = [learner for learner in self.members if isinstance(learner, BaseLearner)]
        first = (networks or self.members)[0]
        self.factory, self.width, self.device, self.data = first.factory, first.width, first.device, first.data
        # who is no network has no kernels to choose, so what was asked of the networks counts
        self.precision, self.deterministic = (
            first.precision,
            all(each.deterministic for each in networks or self.members),
        )
        self.compiled = any(each.compiled for each in networks)
        self.engine = "eager" if all(each.engine == "eager" for each in networks) else "graph"
        self.inputs = MixedInputs(first.inputs, members)
        self.libraries = {
            name: is_at for each in self.members for name, is_at in getattr(each, "libraries", {}).items()
        }
        self._left_out: dict[int, int] = {}

    @property
    def fallback(self) -> str | None:
        """What any of them could not do."""
        return next((each.fallback for each in self.members if each.fallback is not None), None)

    @property
    def steps_at_once(self) -> int:
        """As many as all of them like."""
        return min(each.steps_at_once for each in self.members)

    @property
    def model(self) -> nn.Module:
        """Of the first one that is a network."""
        return next((each for each in self.members if isinstance(each, BaseLearner)), self.members[0]).model

    def probe(self, num_examples: int) -> None:
        for each in self.members:
            each.probe(num_examples)

    def fingerprints(self) -> list[str]:
        """One, of all networks as they began."""
        return [digest_of("".join(fingerprint for _, fingerprint in self.networks()).encode())]

    def networks(self) -> list[tuple[Learning, str]]:
        """Who trains each expert that is no simple code, and the fingerprint it began with, in the order of experts."""
        found = {
            member.columns[number * len(member.columns) // member.num_networks]: (member.learner, fingerprint)
            for member in self.each
            for number, fingerprint in enumerate(member.learner.fingerprints())
        }
        return [found[column] for column in sorted(found)]

    def predict(self, start: int, stop: int) -> MixedPrediction:
        return self._mixed([each.predict(start, stop) for each in self.members], stop - start)

    def predict_uniformly(self, start: int, stop: int) -> MixedPrediction:
        """Learners know nothing; simple codes still say what they know."""
        found = [each.predict_uniformly(start, stop) for each in self.members]
        return self._mixed(found, stop - start)

    def _mixed(self, predictions: Sequence[Predicted], num_labels: int) -> MixedPrediction:
        for prediction, member in zip(predictions, self.each, strict=True):
            if isinstance(prediction, Prediction):
                self._require_classes(prediction, member)
        return MixedPrediction(self.code, predictions, [member.columns for member in self.each], num_labels)

    def _require_classes(self, prediction: Prediction, member: Member) -> None:
        if (given := prediction.log_probabilities.shape[-1]) != self.code.num_classes:
            raise PreqError(
                f"the expert '{self.names[member.columns[0]]}' gives probabilities of {given} classes, the data has "
                f"{self.code.num_classes}; experts of one code predict the same classes"
            )

    def tell_left_out(self) -> None:
        """Say which experts were left out since it was last asked."""
        for expert, position in list(self.code.mixing.left_out.items()):  # a thread may be mixing
            if expert not in self._left_out:
                self._left_out[expert] = position
                note = f"the expert '{self.names[expert]}' gave no finite prediction at label {position}"
                warnings.warn(f"{note} and is left out from there on", PreqWarning, stacklevel=4)

    @property
    def left_out(self) -> dict[str, int]:
        """Experts whose predictions were not finite, and from which label on they are left out."""
        return {self.names[expert]: position for expert, position in self.code.mixing.left_out.items()}

    @torch.no_grad()
    def evaluate(self) -> list[dict[str, float]] | None:
        """Mean loss and error rate of the mixture on the held-out data: by the weights after the last label, which
        learn nothing from it; simple codes say of each example what they would say of the next label of the sequence.
        """
        heldout = self.data.heldout
        if heldout is None:
            return None
        for each, member in zip(self.members, self.each, strict=True):
            if not hasattr(each, "predict_heldout"):
                who = self.names[member.columns[0]]
                warnings.warn(f"no held-out result: the expert '{who}' gives none", PreqWarning, stacklevel=4)
                return None
        code, nats, errors = copy.deepcopy(self.code), 0.0, 0
        for positions in heldout_parts(len(heldout), self.device):
            found: list[Any] = [each.predict_heldout(positions) for each in self.members]  # type: ignore[attr-defined]
            more = code.heldout(self._mixed(found, len(positions)).at_once(), heldout.labels(positions).numpy())
            nats, errors = nats + more[0], errors + more[1]
        return [{"loss": nats / len(heldout), "error_rate": errors / len(heldout)}]

    def finite(self) -> list[bool]:
        """Whether anybody has only finite weights."""
        return [any(is_finite for each in self.members for is_finite in each.finite())]

    def tensors(self) -> dict[str, list[Tensor]]:
        found = {
            f"expert {number} {name}": tensors
            for number, each in enumerate(self.members)
            for name, tensors in each.tensors().items()
        }
        return found | {name: [torch.from_numpy(values)] for name, values in self.code.state().items()}

    def state(self) -> dict[str, list[Tensor]]:
        """The same as copies: put back by `restore`."""
        return {name: [tensor.clone() for tensor in tensors] for name, tensors in self.tensors().items()}

    def expect(self, names: set[str]) -> None:
        """Make those of the members that study ready to be restored from tensors of these names."""
        for number, each in enumerate(self.members):
            prefix = f"expert {number} "
            own = {name.removeprefix(prefix) for name in names if name.startswith(prefix)}
            getattr(each, "expect", lambda own: None)(own)

    def restore(self, state: dict[str, list[Tensor]]) -> None:
        for number, each in enumerate(self.members):
            prefix = f"expert {number} "
            each.restore({name.removeprefix(prefix): state[name] for name in state if name.startswith(prefix)})
        self.code.restore({name: state[name][0].cpu().numpy() for name in self.code.state()})
        self._left_out = dict(self.code.mixing.left_out)

    def close(self) -> None:
        for each in self.members:
            each.close()

    def shares(self, plan: Plan, num_events: int | None) -> Iterator[Share]:
        """What each learner does of the first events of the plan."""
        joint = plan.method if isinstance(plan.method, Joint) else None
        reached = None if joint is None else joint.reached(plan.events(), num_events)
        for member in self.each:
            own = plan if joint is None else Plan(joint.methods[member.follows], plan.length, plan.seed, plan.heldout)
            done = num_events if reached is None else reached[member.follows]
            forwards = len(member.columns) / member.num_networks
            studies = not isinstance(member.learner, FromAllInputs) or studies_first(member.learner, self.members)
            yield Share(own, member.learner, done, member.num_networks, forwards, studies)


class MixedInputs(Inputs):
    """What several learners read, each in its own way; everything else is as of the first."""

    def __init__(self, first: Inputs, members: Sequence[Member]) -> None:
        vars(self).update(vars(first))
        self._members = members

    def reads(self, events: Iterable[Event], first: int) -> Iterator[Read]:
        """What they read for these events, one learner after the other."""
        for number, event, read in with_reads(events, first):
            if isinstance(event, ForExperts) and event.kind == "Train":
                for member in self._members:
                    if member.follows == event.method and isinstance(member.learner, BaseLearner):
                        for place, indices in enumerate(event.indices, event.number):
                            yield indices, member.learner.inputs.crop_key(place)
            elif len(read):
                for member in self._members:
                    if not isinstance(event, Train):
                        yield read, None
                    elif isinstance(member.learner, BaseLearner):  # others learn nothing from it
                        yield read, member.learner.inputs.crop_key(number)
