"""Formats of `cockpit export`. Its flags, help and completion and the topic `report` are derived from this table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from cockpit.recording.reader import Recording


class ExportFormat(NamedTuple):
    """A format; its name is also the suffix of its files. `function` (MODULE:NAME) yields text, or bytes if `binary`.

    The function is called with the final State; if `options` is set, with the Recording and these options: flags, and
    `run` (of FILE#2).
    """

    name: str
    description: str
    function: str
    options: tuple[str, ...] | None = None
    binary: bool = False

    def export(self, recording: Recording, given: dict[str, Any]) -> Iterable[Any]:
        """Return the export of a recording; `given` are the flags and `run`. Raises UsageError."""
        # Imported here because the import takes 0.1 s, which other commands need not wait for.
        from cockpit.recording.reader import last_state

        module, _, name = self.function.partition(":")
        function: Callable[..., Iterable[Any]] = getattr(import_module(module), name)
        if self.options is None:
            return function(last_state(recording))
        return function(recording, **{option: given[option] for option in self.options})

    @property
    def example(self) -> str:
        return f"cockpit export s.cockpit -o {f's.{self.name}':<13}  # {self.description}"


_SCREEN = ("at", "size", "keys")
_TABLE = (
    ExportFormat("jsonl", "every event, as recorded", "cockpit.cli.commands.export:event_lines", options=()),
    ExportFormat("csv", "one line per second", "cockpit.export.series:series_csv"),
    ExportFormat("parquet", "with types, for pandas, DuckDB", "cockpit.export.parquet:series_parquet", binary=True),
    ExportFormat("openmetrics", "for Prometheus", "cockpit.export.openmetrics:openmetrics"),
    ExportFormat(
        "hlog", "HdrHistogram; s.cockpit#2: run 2", "cockpit.cli.commands.export:run_histograms", options=("run",)
    ),
    ExportFormat("folded", "stacks of CPU profiles", "cockpit.export.stacks:folded_stacks", options=("run",)),
    ExportFormat("speedscope", "JSON of CPU profiles", "cockpit.export.stacks:speedscope", options=("run",)),
    ExportFormat(
        "cast",
        "the screen, for asciinema",
        "cockpit.cli.commands.export:screen_cast",
        options=("every", "until", *_SCREEN),
    ),
    ExportFormat("svg", "the screen, at its end or --at T", "cockpit.cli.commands.export:screen_svg", options=_SCREEN),
)
EXPORT_FORMATS = {form.name: form for form in _TABLE}


def formats_with(option: str) -> str:
    """Return the names of the formats that take an option, e.g. `cast, svg`."""
    return ", ".join(form.name for form in _TABLE if form.options and option in form.options)
