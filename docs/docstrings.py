"""Read by mkdocstrings: the heading of our examples as its parser expects it."""

from typing import Any

import griffe


class Examples(griffe.Extension):
    """Makes `Example:` the section `Examples:`, so that what stands under it is shown as code."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called for everything that was read."""
        if obj.docstring is not None:
            obj.docstring.value = obj.docstring.value.replace("\nExample:\n", "\nExamples:\n")
