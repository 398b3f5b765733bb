"""What `preq run` and `preq encode` share: data, model, method and recipe from flags."""

from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from prequential.cli.all_inputs import StudyFlags
from prequential.cli.experts import ExpertFlags, Models, Settled
from prequential.cli.parse import flag_group
from prequential.cli.source import SourceFlags
from prequential.errors import PreqError
from prequential.learn.execution import Execution
from prequential.settings import setting

if TYPE_CHECKING:
    from prequential.data.sequence import LoadedSequence


@flag_group("model")
class ModelFlags:
    """The model."""

    models: Models
    """A model (see preq models), your own as package.module:factory or file.py:factory, or a classifier that is no
    network as sklearn:ensemble.HistGradientBoostingClassifier or river:forest.ARFClassifier. Several are experts, whose
    predictions are mixed label by label into one code."""
    width: float | None = setting(None, hint="1.0")
    """Scale the model's layers."""
    seed: int = 0
    """Initialisation, dropout, augmentation, perturbation."""


@flag_group("data")
class DataFlags(SourceFlags):
    """The data."""

    data: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DATA")]
    """A data set (see preq data), or your own: folder:PATH, table:PATH, npz:PATH, hf:NAME, prepared:DIR."""
    length: int | None = setting(None, hint="all")
    """Take the first N examples of the ordered whole."""


@flag_group("data")
class CodedFlags(DataFlags):
    """The data, and which of its labels are coded."""

    num_labels: int | None = setting(None, hint="all")
    """Code the first N labels, those of --length N, and keep all inputs."""

    def load_coded(self) -> "LoadedSequence":
        """The data."""
        return self.load(self.data, self.length, self.num_labels)


@flag_group("machine")
class MachineFlags:
    """What computes."""

    device: str = "cpu"
    """cpu, cuda, cuda:1, ..."""
    engine: str = "auto"
    """eager, graph (steps recorded once and replayed), or auto: graph on a GPU."""
    precision: str = "auto"
    """fp32, bf16 (networks compute in bfloat16), or auto: bf16 for the graph engine on a GPU."""
    threads: str = "auto"
    """CPU threads; auto measures which number is fastest."""

    @property
    def execution(self) -> Execution:
        """Engine and precision."""
        return Execution(engine=self.engine, precision=self.precision)

    @property
    def num_threads(self) -> int | str:
        """As `run` takes them."""
        if self.threads != "auto" and not self.threads.isdecimal():
            raise PreqError(f"--threads must be auto or a whole number, got '{self.threads}'")
        return self.threads if self.threads == "auto" else int(self.threads)


@flag_group()
class JobFlags(CodedFlags, ModelFlags, ExpertFlags, StudyFlags, MachineFlags):
    """Data, model, and everything that decides a run."""

    @cached_property
    def chosen_settings(self) -> Settled:
        """Model or experts, method and recipe."""
        name = data_name(self.data, self.data_dir, self.array, self.label, self.standardise)
        return self.settled(self.models, name)

    def job(self) -> dict[str, Any]:
        """What `run` and `encode` take besides data, checked as far as that needs no data."""
        settled = self.chosen_settings
        if self.study_dir is not None and not self.all_inputs:
            raise PreqError("--study-dir is about what is studied of all inputs; add --all-inputs, or leave it out")
        same = {name: getattr(self, name) for name in ("seed", "plan_seed", "device", "execution", "study_dir")}
        width, num_threads = 1.0 if self.width is None else self.width, self.num_threads
        told = {"make_model": settled.make_model(), "method": settled.method, "recipe": settled.recipe}
        return same | told | {"width": width, "threads": num_threads}


def data_name(
    data: str,
    data_dir: str | None,
    array: str | None = None,
    label: str | None = None,
    standardise: str | None = None,
) -> str:
    """What presets are looked up by: for prepared data the source it was made from, for tables in arrays and in data
    sets of Hugging Face a table."""
    prefix = data.partition(":")[0]
    if prefix in ("npz", "hf"):
        from prequential.data.sources import archives, hub, user_directory

        directory = user_directory(data_dir)
        if prefix == "npz":
            is_table = archives.holds_table(data, directory, array)
        else:
            is_table = hub.holds_table(data, directory, label, standardise)
        return data.replace(prefix, "table", 1) if is_table else data
    if prefix != "prepared":
        return data
    import numpy as np

    from prequential.data.sources import load

    prepared = load(data, data_dir=data_dir)
    origin = prepared.origin or data
    is_table = len(prepared.input_shape) == 1 and prepared.inputs(np.zeros(1, np.int64)).is_floating_point()
    made_of = origin.partition(":")[0]
    return origin.replace(made_of, "table", 1) if made_of in ("npz", "hf") and is_table else origin
