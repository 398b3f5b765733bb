r"""What building the site adds to mkdocs: equations as MathML, and a look at what the pages would load.

Equations are written as on GitHub, in blocks ```math and inline as $`\ln n`$; browsers draw MathML without a script.
"""

import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor
from mkdocs.exceptions import PluginError

BLOCK = re.compile(r"^```math\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"\$`([^`]+)`\$")
LOADED = re.compile(
    r"<(?:script|img|iframe|source|audio|video|embed)\b[^>]*?\bsrc=[\"']?((?:https?:)?//[^\"'\s>]+)"
    r"|<link\b(?=[^>]*\brel=[\"']?(?:stylesheet|icon|preconnect|preload|prefetch|dns-prefetch|modulepreload))"
    r"[^>]*?\bhref=[\"']?((?:https?:)?//[^\"'\s>]+)"
    r"|@import\s+[\"']((?:https?:)?//[^\"']+)|\burl\([\"']?((?:https?:)?//[^\"')]+)"
)
"""What a browser fetches by itself; links that a reader may follow are not meant."""


class Equations(Extension):
    """Turns equations into MathML before blocks of code are looked for (25), after the text was tidied (30)."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        md.preprocessors.register(_ToMathML(md), "equations", 28)


class _ToMathML(Preprocessor):
    def run(self, lines: list[str]) -> list[str]:
        text = BLOCK.sub(self._block, "\n".join(lines))
        return INLINE.sub(self._inline, text).split("\n")

    def _block(self, found: re.Match[str]) -> str:
        return self._kept(f'<div class="equation">{convert(_spaced(found[1]), display="block")}</div>')

    def _inline(self, found: re.Match[str]) -> str:
        return self._kept(convert(_spaced(found[1])))

    def _kept(self, html: str) -> str:
        return str(self.md.htmlStash.store(html))


def _spaced(tex: str) -> str:
    """The converter leaves no room behind a function's name."""
    return tex.replace(r"\ln ", r"\ln\, ")


def on_config(config: Any) -> Any:
    """Called by mkdocs once it has read its settings."""
    config.markdown_extensions.append(Equations())
    return config


def on_post_build(config: Any) -> None:
    """Called by mkdocs when the site is written: refuse pages that would load anything from another host."""
    loaded = foreign(Path(config.site_dir))
    if loaded:
        raise PluginError("pages must work without a network, but " + "; ".join(loaded))


def foreign(site: Path) -> list[str]:
    """What the pages and style sheets of a site would fetch from other hosts."""
    pages = sorted(path for path in site.rglob("*") if path.suffix in (".html", ".css"))
    return [
        f"{path.relative_to(site)} loads {next(filter(None, found.groups()))}"
        for path in pages
        for found in LOADED.finditer(path.read_text(encoding="utf-8"))
    ]
