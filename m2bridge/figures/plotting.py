"""Shared code of the figures: optional libraries, formats, colours, reproducible files, and data files."""

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
# the palette of Okabe and Ito, suitable for colour-blind readers
BLUE, SKY, GREEN, ORANGE, VERMILION = "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00"
PURPLE, YELLOW, BLACK, GREY = "#CC79A7", "#F0E442", "#000000", "#7F7F7F"
_STYLE = {
    "font.family": "DejaVu Sans", "font.size": 8, "axes.titlesize": 8.5, "axes.labelsize": 8, "xtick.labelsize": 7,
    "ytick.labelsize": 7, "legend.fontsize": 7, "mathtext.fontset": "dejavusans", "pdf.fonttype": 42, "svg.fonttype": "none",
    "svg.hashsalt": "m2bridge", "axes.spines.top": False, "axes.spines.right": False, "savefig.dpi": 300,
}  # fmt: skip


def library(name: str) -> Any:
    """Import a plotting library, or raise InputError with the command that installs it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        raise InputError(
            f"this figure requires {package}, which is not installed: pip install 'm2bridge[plot]'"
        ) from None


def check_output(path: Path, allowed: Sequence[str]) -> None:
    """Raise InputError, before any computation, if the suffix is not supported or the file cannot be written."""
    if path.suffix.lower() not in allowed:
        endings = ", ".join(ending.lstrip(".") for ending in allowed)
        raise InputError(f"-o {path}: the suffix selects the format; use one of {endings}")
    if not path.parent.is_dir():
        raise InputError(f"-o {path}: the directory {path.parent} does not exist")
    check_writable(path)
    library("plotly.graph_objects" if path.suffix.lower() == ".html" else "matplotlib")


def check_writable(path: Path) -> None:
    """Raise InputError if the file cannot be written."""
    probe = path.with_name(f".{path.name}.{secrets.token_hex(8)}")  # a name as write_atomically uses
    try:
        if path.is_dir():
            raise InputError(f"-o {path} is a directory")
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise InputError(f"-o {path} cannot be written: {error.strerror}") from None
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"-o {path}: the directory is not writable")


@contextmanager
def style() -> Iterator[Any]:
    """Apply the style of m2bridge to drawing and saving, and yield ``matplotlib``. Global state is restored at the end."""
    matplotlib = library("matplotlib")
    with matplotlib.rc_context(_STYLE):
        yield matplotlib


def new_figure(width: float, height: float) -> Any:
    """Return a figure of the given size in inches, with a canvas that needs no display."""
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
    """Format three-dimensional axes: light panes, few ticks, labels x, y, z."""
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


def legend_below(figure: Any, handles: Sequence[Any], anchor: tuple[float, float], **settings: Any) -> None:
    """Draw a legend without a frame, with the middle of its lower edge at `anchor`."""
    defaults = {
        "frameon": False,
        "handlelength": 1.8,
        "columnspacing": 1.2,
        "borderaxespad": 0,
        "borderpad": 0,
    }
    figure.legend(
        handles=list(handles), loc="lower center", bbox_to_anchor=anchor, **{**defaults, **settings}
    )


def save_figure(figure: Any, path: Path) -> None:
    """Write a matplotlib figure without dates or random identifiers, so that the same data give the same bytes."""
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
    """Write a plotly figure as one self-contained file."""
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
    """Write the data of a figure beside it, `document` as JSON and `rows` as CSV, and return the paths."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    data_files = [path.with_suffix(".json"), path.with_suffix(".csv")]
    write_atomically(data_files[0], text + "\n")
    write_atomically(data_files[1], table.getvalue())
    return data_files
