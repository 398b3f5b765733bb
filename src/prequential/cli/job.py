"""What `preq run` and `preq encode` share: data, model, method and recipe from flags."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from prequential.cli.parse import flag_group
from prequential.cli.settings import SettingFlags
from prequential.cli.source import SourceFlags
from prequential.errors import PreqError
from prequential.learn.execution import Execution
from prequential.learn.recipe import Recipe
from prequential.methods import Method
from prequential.presets import find_preset
from prequential.settings import setting

if TYPE_CHECKING:
    from prequential.data.sequence import LoadedSequence


@flag_group("model")
class ModelFlags:
    """The model."""

    model: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="MODEL")]
    """A model (see preq models), or your own as package.module:factory or file.py:factory."""
    width: float | None = setting(None, hint="1.0")
    """Scale the model's layers."""
    seed: int = 0
    """Initialisation, dropout, augmentation, perturbation."""


@flag_group("data")
class DataFlags(SourceFlags):
    """The data."""

    data: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DATA")]
    """A data set (see preq data), or your own: folder:PATH, csv:PATH, npz:PATH, hf:NAME, prepared:DIR."""
    length: int | None = setting(None, hint="all")
    """Take the first N examples of the ordered whole."""


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
class JobFlags(DataFlags, ModelFlags, SettingFlags, MachineFlags):
    """Data, model, and everything that decides a run."""


@dataclass(frozen=True)
class Job:
    """What the flags ask for."""

    flags: JobFlags
    method: Method
    recipe: Recipe

    def load(self) -> "LoadedSequence":
        """The data, in order, cut to length."""
        return self.flags.load(self.flags.data, self.flags.length)

    def arguments(self) -> dict[str, Any]:
        """What `run` and `encode` take besides model and data."""
        flags = self.flags
        return {
            "method": self.method,
            "recipe": self.recipe,
            "seed": flags.seed,
            "plan_seed": flags.plan_seed,
            "width": 1.0 if flags.width is None else flags.width,
            "device": flags.device,
            "execution": flags.execution,
            "threads": flags.num_threads,
        }


def job_from(flags: JobFlags) -> Job:
    """The job the flags describe, checked as far as that needs no data."""
    preset = find_preset(flags.preset, data_name(flags.data, flags.data_dir), flags.model)
    flags.num_threads  # noqa: B018  # a mistake is told before any data is read
    return Job(flags, *flags.chosen(preset))


def data_name(data: str, data_dir: str | None) -> str:
    """What presets are looked up by: for prepared data the source it was made from."""
    if not data.startswith("prepared:"):
        return data
    from prequential.data.sources import load

    return load(data, data_dir=data_dir).origin or data
