"""Make the links of README.md absolute in the metadata of the package, so that it reads the same on a package index.

In the repository the links are relative, and lead to the files of the same revision on every host and in every clone. When the
package is built, hatchling calls this hook: a relative link becomes one into the repository of ``[project.urls]``, at the tag of
the version.
"""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE = re.compile(r"(!?\[[^\]]*\]\()(?!https?://|#)([^)]+)\)")


class AbsoluteLinks(MetadataHookInterface):
    """Add the field ``readme``, which `pyproject.toml` declares as dynamic."""

    def update(self, metadata: dict) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = absolute(text, metadata["urls"]["Repository"], f"v{metadata['version']}")
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def absolute(text: str, repository: str, revision: str) -> str:
    """Return Markdown in which every relative link leads into the repository; pictures lead to the file itself.

    >>> absolute("[a](docs/a.md#b) ![c](c.png) [d](https://d.org) [e](#e)", "https://x.org/r", "v1")
    '[a](https://x.org/r/blob/v1/docs/a.md#b) ![c](https://x.org/r/raw/v1/c.png) [d](https://d.org) [e](#e)'
    """

    def link(match: re.Match) -> str:
        view = "raw" if match[1].startswith("!") else "blob"
        return f"{match[1]}{repository}/{view}/{revision}/{match[2]})"

    return _RELATIVE.sub(link, text)
