"""Check the built site: every link to a page, an anchor or a file leads somewhere, and nothing is loaded from elsewhere.

Addresses of other sites are links that a reader may follow; they are not tried, so that the site builds without a network.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADS = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src", "video": "src"}


class _Page(HTMLParser):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids, self.links, self.loads = set(), [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids.update(given[name] for name in ("id", "name") if given.get(name))
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if (
            tag in _LOADS
            and given.get(_LOADS[tag])
            and given.get("rel") not in ("canonical", "next", "prev", "index", "search")
        ):
            self.loads.append(given[_LOADS[tag]])


def broken(site: Path) -> list[str]:
    """What leads nowhere, one line each."""
    pages = {path: _Page(path) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        for link, loaded in [*((link, False) for link in page.links), *((load, True) for load in page.loads)]:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https", "mailto", "data") or parts.netloc:
                if loaded and parts.scheme != "data":
                    found.append(f"{path.relative_to(site)} loads {link}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
            if not target.is_file():
                found.append(f"{path.relative_to(site)}: {link} is not there")
            elif parts.fragment and target.suffix == ".html" and not loaded:
                there = next((p for q, p in pages.items() if q.resolve() == target), None)
                if (
                    there is not None
                    and unquote(parts.fragment) not in there.ids
                    and parts.fragment not in there.ids
                ):
                    found.append(f"{path.relative_to(site)}: {link} has no such anchor")
    return found


if __name__ == "__main__":
    site = Path(sys.argv[1])
    lines = broken(site)
    print("\n".join(lines) or f"{len(list(site.rglob('*.html')))} pages, every link leads somewhere")
    sys.exit(bool(lines))
