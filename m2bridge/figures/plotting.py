"""What all pictures share: libraries on demand, formats, colours, deterministic files, data beside the picture."""

from __future__ import annotations

import csv
import importlib
import io
import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from m2bridge.errors import InputError
from m2bridge.records import write_atomically

STATIC = (".png", ".pdf", ".svg")
# Okabe and Ito's palette, told apart with any colour vision
BLUE, SKY, GREEN, ORANGE, VERMILION = "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00"
PURPLE, YELLOW, BLACK, GREY = "#CC79A7", "#F0E442", "#000000", "#7F7F7F"
_STYLE = {
    "font.family": "DejaVu Sans", "font.size": 8, "axes.titlesize": 8.5, "axes.labelsize": 8, "xtick.labelsize": 7,
    "ytick.labelsize": 7, "legend.fontsize": 7, "mathtext.fontset": "dejavusans", "pdf.fonttype": 42, "svg.fonttype": "none",
    "svg.hashsalt": "m2bridge", "axes.spines.top": False, "axes.spines.right": False, "savefig.dpi": 300,
}  # fmt: skip


def library(name: str) -> Any:
    """A plotting library, or one line that says how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        raise InputError(
            f"this picture needs {package}, which is not installed: pip install 'm2bridge[plot]'"
        ) from None


def check_output(path: Path, allowed: Sequence[str]) -> None:
    """Refuse, before any work is done, an ending that cannot be written or a directory that is not there."""
    if path.suffix.lower() not in allowed:
        endings = ", ".join(ending.lstrip(".") for ending in allowed)
        raise InputError(f"-o {path}: the ending chooses the format; use one of {endings}")
    if not path.parent.is_dir():
        raise InputError(f"-o {path}: there is no directory {path.parent}; create it first")
    check_place(path)
    library("plotly.graph_objects" if path.suffix.lower() == ".html" else "matplotlib")


def check_place(path: Path) -> None:
    """Refuse a file that cannot be written: a directory of its name, a name too long, a place that takes no files."""
    probe = path.with_name(f".{path.name}.{secrets.token_hex(8)}")  # as write_atomically would name it
    try:
        if path.is_dir():
            raise InputError(f"-o {path}: there is a directory of this name")
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise InputError(f"-o {path} cannot be written: {error.strerror}") from None
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"-o {path}: the directory cannot be written to")


@contextmanager
def style() -> Iterator[Any]:
    """The house style around drawing and saving; yields ``matplotlib``. Needs no display and leaves no global state changed."""
    matplotlib = library("matplotlib")
    with matplotlib.rc_context(_STYLE):
        yield matplotlib


def new_figure(width: float, height: float) -> Any:
    """A figure of the given size in inches, with a canvas for files only."""
    figure = library("matplotlib.figure").Figure(figsize=(width, height))
    library("matplotlib.backends.backend_agg").FigureCanvasAgg(figure)
    return figure


def frame_3d(
    axes: Any,
    *,
    aspect: tuple[float, ...],
    zoom: float,
    focal_length: float,
    view: Sequence[float],
    small: bool = False,
) -> None:
    """Three-dimensional axes of the house: light panes, few ticks close to the box, letters x, y, z."""
    axes.set_box_aspect(aspect, zoom=zoom)
    axes.set_proj_type("persp", focal_length=focal_length)
    axes.view_init(*view)
    locator = library("matplotlib.ticker").MaxNLocator
    for label in "xyz":
        axis = getattr(axes, f"{label}axis")
        axis.set_pane_color((0.97, 0.97, 0.97, 1.0))
        axis.set_tick_params(pad=-4 if small else -3, labelsize=5.5 if small else 6.5)
        axis.set_major_locator(locator(4, steps=[1, 5, 10], prune="both"))
        axis.set_label_text(f"${label}$", fontsize=7 if small else 9)
        axis.labelpad = -8 if small else -6


def legend_below(figure: Any, handles: Sequence[Any], place: tuple[float, float], **words: Any) -> None:
    """A legend without a frame, its lower middle at `place`."""
    usual = {"frameon": False, "handlelength": 1.8, "columnspacing": 1.2, "borderaxespad": 0, "borderpad": 0}
    figure.legend(handles=list(handles), loc="lower center", bbox_to_anchor=place, **{**usual, **words})


def save_figure(figure: Any, path: Path) -> None:
    """Write a matplotlib figure without dates or random names: the same data give the same bytes."""
    kind = path.suffix.lower().lstrip(".")
    metadata: dict[str, dict[str, str | None]] = {
        "pdf": {"Creator": "m2bridge", "Producer": None, "CreationDate": None},
        "svg": {"Creator": "m2bridge", "Date": None},
        "png": {"Software": "m2bridge"},
    }
    picture = io.BytesIO()
    figure.savefig(picture, format=kind, metadata=metadata[kind])
    write_atomically(path, picture.getvalue())


def save_html(figure: Any, path: Path) -> None:
    """Write a plotly figure as one file that needs no network."""
    text = figure.to_html(
        include_plotlyjs=True,
        full_html=True,
        div_id="figure",
        default_height="96vh",
        config={"displaylogo": False, "responsive": True},
    )
    write_atomically(path, text)


def write_data(
    path: Path, document: Mapping[str, Any], columns: Sequence[str], rows: Sequence[Sequence[Any]]
) -> list[Path]:
    """The data of a picture beside it: `document` as JSON, `rows` as CSV."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    beside = [path.with_suffix(".json"), path.with_suffix(".csv")]
    write_atomically(beside[0], text + "\n")
    write_atomically(beside[1], table.getvalue())
    return beside
