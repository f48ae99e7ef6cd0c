"""Formats of `cockpit export`. Its flags, help and completion and the topic `report` are derived from this table.

Installed packages of others add formats by the entry point `webcockpit.exports`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from cockpit.model.errors import CockpitError, UsageError
from cockpit.plugins import additions

if TYPE_CHECKING:
    from cockpit.recording.reader import Recording


class ExportFormat(NamedTuple):
    """A format; its name is also the suffix of its files. `function` (MODULE:NAME) yields text, or bytes if `binary`.
    `package` provides it, "": cockpit.

    The function is called with the final State; if `options` is set, with the Recording and these options: flags, and
    `run` (of FILE#2).
    """

    name: str
    description: str
    function: str
    options: tuple[str, ...] | None = None
    binary: bool = False
    package: str = ""

    def export(self, recording: Recording, given: dict[str, Any]) -> Iterable[Any]:
        """Return the export of a recording; `given` are the flags and `run`. Raises UsageError."""
        # Imported here because the import takes 0.1 s, which other commands need not wait for.
        from cockpit.recording.reader import last_state

        if self.package:
            return self._guarded(lambda: self._function()(last_state(recording)))
        if self.options is None:
            return self._function()(last_state(recording))
        return self._function()(recording, **{option: given[option] for option in self.options})

    def _function(self) -> Callable[..., Iterable[Any]]:
        module, _, name = self.function.partition(":")
        function: Callable[..., Iterable[Any]] = getattr(import_module(module), name)
        return function

    def _guarded(self, export: Callable[[], Iterable[Any]]) -> Iterator[Any]:
        """Yield what a package of others exports. Raises UsageError."""
        kind = bytes if self.binary else str
        try:
            for piece in export():
                if not isinstance(piece, kind):
                    raise TypeError(f"{self.function} yields {type(piece).__name__}, not {kind.__name__}")
                yield piece
        except CockpitError:
            raise
        except Exception as error:
            raise UsageError(f"package {self.package}: {self.name}: {type(error).__name__}: {error}") from None

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


@cache
def export_formats() -> dict[str, ExportFormat]:
    """Return all formats by name, those of packages of others last."""
    added = additions("exports", ExportFormat, lambda form: (form.name,), [form.name for form in _TABLE], _check)
    return {form.name: form for form in (*_TABLE, *(form._replace(package=package) for package, form in added))}


def _check(form: ExportFormat) -> None:
    """Check a format of a package of others. Raises TypeError, ValueError."""
    if not re.fullmatch(r"[a-z][a-z0-9]*", form.name):
        raise ValueError(f"invalid name {form.name!r}; use small letters and digits")
    if form.options is not None or not all(isinstance(text, str) for text in form[:3]):
        raise TypeError(f"the format {form.name} must have a description and a function, and no options")


def formats_with(option: str) -> str:
    """Return the names of the formats that take an option, e.g. `cast, svg`."""
    return ", ".join(form.name for form in _TABLE if form.options and option in form.options)
