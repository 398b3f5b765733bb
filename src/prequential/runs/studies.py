"""What a run studies: computed in it, or taken from a file that an earlier one has written, and told either way."""

import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prequential.errors import PreqError, PreqWarning
from prequential.experts.learner import MixedLearner
from prequential.files import digest_of
from prequential.learn.all_inputs import FromAllInputs
from prequential.learn.learning import Learning
from prequential.learn.shared_studies import share_study, who_study
from prequential.runs.recorder import Recorder
from prequential.runs.studied import FILE, HERE
from prequential.runs.study_files import ABOUT_FILE, default_folder, place_of, read_about, read_study, write_study

MOST_FOLDERS = 4096


@dataclass(frozen=True)
class Studies:
    """Where studies are looked for and kept, and what they must be."""

    folder: Path | None = None
    """Where one that was done before may be."""
    keeps: bool = False
    """Whether new ones are written there."""
    trusted: Path | None = None
    """A folder whose studies are used in place of computing them; they must be those that are `expected`."""
    expected: Mapping[str, Any] | None = None
    """What a record or bitstream says of its study."""

    @classmethod
    def of_run(cls, study_dir: str | Path | None, *, has_out: bool) -> "Studies":
        """Those of a run: kept in the directory that was named or, if the run itself is kept, in the cache."""
        return cls(default_folder() if study_dir is None else Path(study_dir), has_out or study_dir is not None)

    def begin(self, learner: Learning, recorder: Recorder) -> None:
        """Before the first event: take over what was studied before."""
        for number, each in enumerate(who_study(_members(learner))):
            if recorder.num_events or not each.is_studying:
                continue
            if self.trusted is not None:
                self._take(each, self._trusted_place(self.trusted, number, each), learner, recorder)
            elif self.folder is not None and _is_known(each) and (place := place_of(self.folder, each)).exists():
                try:
                    self._take(each, place, learner, recorder)
                except PreqError as error:
                    warnings.warn(f"the study is computed anew: {error}", PreqWarning, stacklevel=4)

    def _take(self, each: FromAllInputs, place: Path, learner: Learning, recorder: Recorder) -> None:
        studied, about = read_study(place, each)
        each.take_study([tensor.to(each.device) for tensor in studied])
        share_study(each, _members(learner))
        self._note(each, learner, recorder, about["seconds"], FILE)

    def _trusted_place(self, folder: Path, number: int, learner: FromAllInputs) -> Path:
        """Where in a folder the study is that a record or bitstream tells of."""
        wanted = _expected(self.expected, number)
        if wanted is None:
            raise PreqError("there is no digest that a study could be held against; leave --trust-study out")
        places = [folder, *(sorted(folder.iterdir())[:MOST_FOLDERS] if folder.is_dir() else [])]
        for place in (place for place in places if (place / ABOUT_FILE).is_file()):
            with suppress(PreqError):  # of another one that is damaged, or of another version
                about = read_about(place)
                if (about["key"], about["digest"]) == (learner.study_key, wanted):
                    return place
        raise PreqError(f"{folder} has no study of digest {wanted} for these inputs; leave --trust-study out")

    def ended(self, learner: Learning, recorder: Recorder) -> None:
        """After the end of a study: note it, hold it against what is expected, and keep it."""
        noted = {(study["key"], study["digest"]) for study in recorder.studies}
        for number, each in enumerate(who_study(_members(learner))):
            if each.is_studying or (each.study_key, each.study_digest) in noted:
                continue
            seconds = max(recorder.seconds - recorder.study_seconds, 0.0)
            self._note(each, learner, recorder, seconds, HERE)
            wanted = _expected(self.expected, number)
            if wanted not in (None, each.study_digest):
                raise PreqError(
                    f"the study gave other weights here (digest {each.study_digest}) than there (digest {wanted})"
                )
            if self.keeps and self.folder is not None and _is_known(each):
                try:
                    write_study(place_of(self.folder, each), each, seconds)
                except PreqError as error:  # the run needs no file
                    warnings.warn(f"the study is not kept: {error}", PreqWarning, stacklevel=4)

    @staticmethod
    def _note(each: FromAllInputs, learner: Learning, recorder: Recorder, seconds: float, where: str) -> None:
        """Studies are told in the order of who does them, whichever came to its end first."""
        told = {"key": each.study_key, "digest": each.study_digest, "steps": each.given.study_steps}
        recorder.studies.append({**told, "seconds": seconds, "from": where})
        place = {(one.study_key, one.study_digest): number for number, one in enumerate(who_study(_members(learner)))}
        recorder.studies.sort(key=lambda study: place.get((study["key"], study["digest"]), 0))


def _members(learner: Learning) -> list[Learning]:
    return list(learner.members) if isinstance(learner, MixedLearner) else [learner]


def _is_known(learner: FromAllInputs) -> bool:
    """Whether learner and method are the package's own: of others no digest tells how they study."""
    parts = (type(learner), type(learner.given))
    return all(part.__module__.partition(".")[0] == __name__.partition(".")[0] for part in parts)


def _expected(study: Mapping[str, Any] | None, number: int) -> str | None:
    """The digest of a study, where a file tells it."""
    if study is None:
        return None
    each = study.get("each") or [study]
    return str(each[number]["digest"]) if number < len(each) else None


def told_of_studies(recorder: Recorder) -> dict[str, Any]:
    """What a record says of what was studied: of several studies also of each. Nothing where there was none.

    Where one of several is from a file, so is the whole.
    """
    each = [{name: study[name] for name in ("digest", "steps", "seconds", "from")} for study in recorder.studies]
    if len(each) <= 1:
        return {"study": each[0]} if each else {}
    whole = {
        "digest": digest_of("".join(study["digest"] for study in each).encode()),
        "steps": sum(study["steps"] for study in each),
        "seconds": sum(study["seconds"] for study in each),
        "from": FILE if any(study["from"] == FILE for study in each) else HERE,
    }
    return {"study": whole | {"each": each}}
