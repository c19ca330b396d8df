"""The site: Markdown of this directory, pages that are made from code when it is built, search without a server."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from _site import gallery, reference, theorem_map
from docutils import nodes
from latex2mathml.converter import convert

from m2bridge import __version__

project = "m2bridge"
author = copyright = "the m2bridge developers"
release = version = __version__
extensions = ["myst_parser", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "_site", "_static", "gallery/*.py"]
nitpicky = True
myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_inline", "deflist"]
myst_heading_anchors = 4

suppress_warnings = ["misc.highlighting_failure", "toc.not_included"]  # a page may be reached by a link alone

html_theme = "furo"
html_title = "m2bridge"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("rotate.js", {"defer": "defer"})]
html_show_sphinx = False
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # summaries would be fetched, which needs a server
html_baseurl = ""
pygments_style, pygments_dark_style = "friendly", "github-dark"
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True


html_math_renderer = "mathml"


def _inline(self, node):
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _block(self, node):
    self.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app):
    """Make the pages of the gallery, the reference and the theorem map first; write formulas as MathML, which needs no script."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.connect("builder-inited", lambda app: gallery.write(HERE))
    app.connect("builder-inited", lambda app: reference.write(HERE))
    app.connect("builder-inited", lambda app: theorem_map.write(HERE))
