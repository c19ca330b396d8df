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
        attributes = dict(attrs)
        self.ids.update(attributes[name] for name in ("id", "name") if attributes.get(name))
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        if (
            tag in _LOADS
            and attributes.get(_LOADS[tag])
            and attributes.get("rel") not in ("canonical", "next", "prev", "index", "search")
        ):
            self.loads.append(attributes[_LOADS[tag]])


def broken(site: Path) -> list[str]:
    """Return one line per link without a target and per file that is loaded from another site."""
    pages = {path: _Page(path) for path in sorted(site.rglob("*.html"))}
    errors = []
    for path, page in pages.items():
        for link, loaded in [*((link, False) for link in page.links), *((load, True) for load in page.loads)]:
            url = urlsplit(link)
            if url.scheme in ("http", "https", "mailto", "data") or url.netloc:
                if loaded and url.scheme != "data":
                    errors.append(f"{path.relative_to(site)} loads {link}")
                continue
            target = (path.parent / unquote(url.path)).resolve() if url.path else path.resolve()
            if not target.is_file():
                errors.append(f"{path.relative_to(site)}: {link} does not exist")
            elif url.fragment and target.suffix == ".html" and not loaded:
                linked_page = next((p for q, p in pages.items() if q.resolve() == target), None)
                if (
                    linked_page is not None
                    and unquote(url.fragment) not in linked_page.ids
                    and url.fragment not in linked_page.ids
                ):
                    errors.append(f"{path.relative_to(site)}: {link} has no such anchor")
    return errors


if __name__ == "__main__":
    site = Path(sys.argv[1])
    lines = broken(site)
    print("\n".join(lines) or f"{len(list(site.rglob('*.html')))} pages, every link leads somewhere")
    sys.exit(bool(lines))
