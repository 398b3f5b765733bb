"""The three trackers, each in its own words. Their packages are imported when one is made."""

import importlib
import os
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PROJECT = "prequential"
"""The project of Weights & Biases and the experiment of MLflow, unless their environment variables say otherwise."""


class TensorBoard:
    """Event files in the folder `tensorboard` of the run; hyperparameters for its tab of that name."""

    name = "tensorboard"
    seconds_between_entries = 0.1

    def __init__(self, directory: Path) -> None:
        self._folder = directory / "tensorboard"
        importlib.import_module("tensorboard")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._make: Any = importlib.import_module("torch.utils.tensorboard").SummaryWriter

    def open(self, title: str, settings: Mapping[str, Any], identity: str | None) -> str | None:
        self._writer = self._make(log_dir=str(self._folder))
        return str(self._folder.name)

    def log(self, position: int, figures: Mapping[str, float]) -> None:
        for name, value in figures.items():
            self._writer.add_scalar(name, value, position)
        self._writer.flush()

    def close(self, settings: Mapping[str, Any], results: Mapping[str, float], status: str) -> None:
        if results:
            self._writer.add_hparams({**settings, "status": status}, dict(results), run_name=".")
        self._writer.close()


class WeightsAndBiases:
    """A run of wandb, as its own environment variables say; offline with WANDB_MODE=offline."""

    name = "wandb"
    seconds_between_entries = 1.0

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        package: Any = importlib.import_module("wandb")
        self._init, self._settings = package.init, package.Settings

    def open(self, title: str, settings: Mapping[str, Any], identity: str | None) -> str | None:
        self._run = self._init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            dir=str(self._directory),
            name=title,
            config=dict(settings),
            id=identity,
            resume=None if identity is None else "allow",
            reinit="create_new",
            settings=self._settings(console="off"),  # what a run prints is its user's
        )
        return str(self._run.id)

    def log(self, position: int, figures: Mapping[str, float]) -> None:
        if position:
            self._run.log(dict(figures), step=position)
        else:  # a step is sent when the next one begins, and before the first label that takes as long as a study
            self._run.summary.update(dict(figures))

    def close(self, settings: Mapping[str, Any], results: Mapping[str, float], status: str) -> None:
        self._run.summary.update({**results, "status": status})
        self._run.finish(exit_code=0 if status in ("finished", "pruned", "stopped") else 1)


class MLflow:
    """A run of MLflow, in the store that MLFLOW_TRACKING_URI names, else where MLflow puts it."""

    name = "mlflow"
    seconds_between_entries = 1.0

    def __init__(self, directory: Path) -> None:
        self._position = 0
        self._client_class: Any = importlib.import_module("mlflow").MlflowClient
        self._entities: Any = importlib.import_module("mlflow.entities")

    def open(self, title: str, settings: Mapping[str, Any], identity: str | None) -> str | None:
        self._client = self._client_class()
        if identity is not None:
            self._identity = identity
            self._client.update_run(identity, status="RUNNING")
            return identity
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
        found = self._client.get_experiment_by_name(name)
        experiment = self._client.create_experiment(name) if found is None else found.experiment_id
        self._identity = str(self._client.create_run(experiment, run_name=title).info.run_id)
        params = [self._entities.Param(key, str(value)[:500]) for key, value in settings.items()]
        self._client.log_batch(self._identity, params=params)
        return self._identity

    def log(self, position: int, figures: Mapping[str, float]) -> None:
        self._position, now = position, int(time.time() * 1000)
        metrics = [self._entities.Metric(name, value, now, position) for name, value in figures.items()]
        self._client.log_batch(self._identity, metrics=metrics)

    def close(self, settings: Mapping[str, Any], results: Mapping[str, float], status: str) -> None:
        self.log(self._position, results)
        self._client.set_tag(self._identity, "status", status)
        ends = {"finished": "FINISHED", "pruned": "FINISHED", "stopped": "KILLED"}
        self._client.set_terminated(self._identity, ends.get(status, "FAILED"))


BACKENDS = {kind.name: kind for kind in (TensorBoard, WeightsAndBiases, MLflow)}
