"""The public names of the package and where they live: the one list of them, which `__init__.py` reads too."""

from prequential.data.arrays import from_arrays as from_arrays, from_dataset as from_dataset
from prequential.data.tables.frames import from_frame as from_frame
from prequential.data.prepare import prepare as prepare
from prequential.data.shown import ShownExamples as ShownExamples
from prequential.data.sources import load_data as load_data
from prequential.errors import PreqError as PreqError
from prequential.events import (
    Calibrate as Calibrate,
    EndStudy as EndStudy,
    Evaluate as Evaluate,
    Event as Event,
    OwnEvent as OwnEvent,
    Predict as Predict,
    Reinit as Reinit,
    ShrinkPerturb as ShrinkPerturb,
    Study as Study,
    Train as Train,
    TrainBeside as TrainBeside,
)
from prequential.experts.settings import Expert as Expert, Experts as Experts
from prequential.learn.execution import Execution as Execution
from prequential.learn.recipe import Recipe as Recipe
from prequential.measure import mixture as mixture, pareto_front as pareto_front, regret as regret
from prequential.methods import (
    AllInputs as AllInputs,
    ChunksFineTuned as ChunksFineTuned,
    ChunksFromScratch as ChunksFromScratch,
    Exponential as Exponential,
    FullDataset as FullDataset,
    Method as Method,
    MethodDefaults as MethodDefaults,
    Online as Online,
    Pareto as Pareto,
    ReplayBuffer as ReplayBuffer,
    ReplayStreams as ReplayStreams,
    Uniform as Uniform,
    cut_into_batches as cut_into_batches,
)
from prequential.mixers import Bayes as Bayes, Logistic as Logistic, Switching as Switching
from prequential.plan import Plan as Plan
from prequential.presets import PRESETS as PRESETS, Preset as Preset, find_preset as find_preset
from prequential.probing.entry import probe as probe
from prequential.report.comparison import compare as compare
from prequential.report.page import write_report as write_report
from prequential.report.plots import plot as plot
from prequential.runs.codec import decode as decode, encode as encode
from prequential.runs.record import Record as Record, load as load
from prequential.runs.run import Interrupted as Interrupted, run as run, run_stack as run_stack
from prequential.settings import setting as setting
from prequential.sweeps import (
    SPACES as SPACES,
    Between as Between,
    Choice as Choice,
    LogUniform as LogUniform,
    sweep as sweep,
)
from prequential.trackers import track as track

__version__: str
__all__: list[str]
