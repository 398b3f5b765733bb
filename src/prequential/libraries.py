"""Classifiers of scikit-learn and river by name, such as `river:forest.ARFClassifier`. No torch.

A name is a dotted one inside the library, with settings in brackets that are plain values. It is read, never run, and
leads to a class of that library that gives probabilities; anything else is refused. No pickle is read or written.
"""

import ast
import importlib
import importlib.metadata
import inspect
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from prequential.errors import PreqError, in_one_line

MOST_LETTERS = 2000


@dataclass(frozen=True)
class Library:
    """Where classifiers come from."""

    package: str
    """What is imported."""
    title: str
    """What PyPI and people call it."""
    gives: str
    """The method that gives probabilities."""
    seed: str
    """What its classifiers call their seed."""
    example: str
    own: tuple[str, ...] = ()
    """Settings that are its learner's, not the classifier's."""


LIBRARIES = {
    "sklearn:": Library(
        package="sklearn",
        title="scikit-learn",
        gives="predict_proba",
        seed="random_state",
        example="ensemble.HistGradientBoostingClassifier",
        own=("refit", "window"),
    ),
    "river:": Library(
        package="river", title="river", gives="predict_proba_one", seed="seed", example="forest.ARFClassifier"
    ),
}


@dataclass(frozen=True)
class Classifier:
    """What a name says.

    Example:
        >>> Classifier.of("sklearn:tree.DecisionTreeClassifier( max_depth = 3 )").name
        'sklearn:tree.DecisionTreeClassifier(max_depth=3)'
    """

    prefix: str
    path: str
    """The dotted name inside the library."""
    settings: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str) -> "Classifier":
        """Read a name. Nothing is imported."""
        prefix = prefix_of(name)
        assert prefix is not None
        example = f"{prefix}{LIBRARIES[prefix].example}"
        refused = PreqError(
            f"'{name[:80]}' is no name of a classifier; write {example}, with settings as (max_depth=8)"
        )
        try:
            if len(name) > MOST_LETTERS:
                raise refused
            tree: Any = ast.parse(name.removeprefix(prefix).strip(), mode="eval").body
            is_call = isinstance(tree, ast.Call)
            path = ast.unparse(tree.func if is_call else tree)
            keywords = tree.keywords if is_call else []
            settings = {each.arg: ast.literal_eval(each.value) for each in keywords}
        except (SyntaxError, ValueError, RecursionError, MemoryError, TypeError):
            raise refused from None
        parts = path.split(".")
        is_dotted = len(parts) > 1 and all(part.isidentifier() and not part.startswith("_") for part in parts)
        if not is_dotted or (is_call and tree.args) or None in settings or len(settings) < len(keywords):
            raise refused
        for key, value in settings.items():
            if not _is_plain(value):
                raise PreqError(f"{key} of {prefix}{path} must be a plain value, got {str(value)[:40]}")
        return cls(prefix, path, settings)

    @property
    def library(self) -> Library:
        """Where it is from."""
        return LIBRARIES[self.prefix]

    @property
    def name(self) -> str:
        """The name as records write it, whatever spaces and quotes the user wrote."""
        told = ", ".join(f"{key}={value!r}" for key, value in self.settings.items())
        return f"{self.prefix}{self.path}{f'({told})' if told else ''}"

    @property
    def own(self) -> dict[str, Any]:
        """The settings that were given of the learner."""
        return {key: value for key, value in self.settings.items() if key in self.library.own}

    @property
    def versions(self) -> dict[str, str]:
        """Of the library, by its name."""
        return {self.library.title: importlib.metadata.version(self.library.title)}

    @cached_property
    def kind(self) -> type:
        """The class, imported and checked."""
        package, (*modules, last) = self.library.package, self.path.split(".")
        try:
            importlib.import_module(package)
        except ImportError as error:
            todo = f"pip install 'prequential[{package}]'"
            raise PreqError(f"'{self.name}' needs the library {self.library.title} ({error}); {todo}") from None
        with suppress(ImportError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = getattr(importlib.import_module(".".join([package, *modules])), last, None)
            if isinstance(found, type) and found.__module__.startswith(f"{package}."):
                if callable(getattr(found, self.library.gives, None)) and not inspect.isabstract(found):
                    return found
                if "classif" in found.__name__.lower() or hasattr(found, "predict") or hasattr(found, "predict_one"):
                    raise PreqError(
                        f"'{self.prefix}{self.path}' gives no probabilities (it has no {self.library.gives}); "
                        f"take a classifier that does, such as {self.library.example}"
                    )
        raise PreqError(f"{self.library.title} has no classifier '{self.path}'; write {self.library.example}, say")

    @property
    def taken(self) -> frozenset[str]:
        """The settings that the class has."""
        return frozenset(inspect.signature(self.kind).parameters)

    def make(self, seed: int, **more: Any) -> Any:
        """A fresh classifier with these settings, a seed if it takes one, and of `more` what it takes."""
        seed_name, kind = self.library.seed, self.kind
        given = {key: value for key, value in self.settings.items() if key not in self.library.own}
        for key, reason in ((seed_name, "comes from the run's seed"), ("n_jobs", "is 1, so that the bits repeat")):
            if given.pop(key, None) not in (None, 1 if key == "n_jobs" else None):
                raise PreqError(f"{key} of '{self.name}' {reason}; leave it out")
        if unknown := [key for key in given if key not in self.taken]:
            known = ", ".join(sorted(self.taken - {seed_name, "n_jobs"} | {*self.library.own}))
            raise PreqError(f"{self.prefix}{self.path} has no setting '{unknown[0]}'; it has: {known}")
        offered = {seed_name: seed % (1 << 32), **more} | given
        settings = {key: value for key, value in offered.items() if key in self.taken}
        try:
            return kind(**settings)
        except Exception as error:  # other people's code may fail in any way
            raise PreqError(f"'{self.name}' could not be made ({in_one_line(error)})") from None


def prefix_of(name: object) -> str | None:
    """Which library a model's name is from; None for networks.

    Example:
        >>> prefix_of("river:forest.ARFClassifier"), prefix_of("lenet")
        ('river:', None)
    """
    return next((prefix for prefix in LIBRARIES if isinstance(name, str) and name.startswith(prefix)), None)


def _is_plain(value: Any) -> bool:
    """Whether a value is what it reads as when it is written down."""
    with suppress(Exception):
        return not isinstance(value, set | bytes | complex) and bool(ast.literal_eval(repr(value)) == value)
    return False
