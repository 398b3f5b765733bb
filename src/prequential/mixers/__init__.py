"""Several predictions of a label into one: Bayes, switching, logistic mixing. No torch.

A mixer is a frozen dataclass of settings; `begin` gives the state of one code, a `Mixing`, which is asked for the row
of a label, told the label, and so on. To add one, write its settings and its `Mixing`, and list it in MIXERS.
"""

from collections.abc import Mapping
from typing import Any

from prequential.errors import PreqError
from prequential.mixers.bayes import Bayes
from prequential.mixers.guarded import Logistic
from prequential.mixers.logistic import PureLogistic
from prequential.mixers.mixing import Mixer, Mixing
from prequential.mixers.switching import Switching
from prequential.settings import from_plain

MIXERS: dict[str, type[Bayes] | type[Switching] | type[Logistic]] = {
    mixer.name: mixer for mixer in (Bayes, Switching, Logistic)
}


def mixer_from_settings(settings: str | Mapping[str, Any]) -> Mixer:
    """The mixer of that name, or the one whose plain values a file holds (see `prequential.settings.settings_of`).

    Example:
        >>> from prequential.settings import settings_of
        >>> mixer_from_settings(settings_of(Switching(rate=0.01))) == Switching(rate=0.01)
        True
        >>> mixer_from_settings("bayes")
        Bayes(prior=None)
    """
    values = {"name": settings} if isinstance(settings, str) else settings
    name = values.get("name") if isinstance(values, Mapping) else None
    if not isinstance(name, str) or name not in MIXERS:
        raise PreqError(f"unknown mixer '{name}'; known: {', '.join(MIXERS)}")
    mixer: Mixer = from_plain(MIXERS[name], {key: value for key, value in values.items() if key != "name"}, name)
    return mixer


__all__ = [
    "MIXERS",
    "Bayes",
    "Logistic",
    "Mixer",
    "Mixing",
    "PureLogistic",
    "Switching",
    "mixer_from_settings",
]
