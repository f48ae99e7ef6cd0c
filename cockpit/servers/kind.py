"""The description of a kind of server: a web server, a proxy, an application server, a database. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from cockpit.plugins import guarded
from cockpit.servers import blocks
from cockpit.servers.access_log import AccessLine, LoggedRequest, PartialLog
from cockpit.servers.configured_pages import ConfiguredPage
from cockpit.servers.editing import Grammar
from cockpit.servers.inventory import Inventory, Process
from cockpit.servers.settings import KnownSetting
from cockpit.servers.site_logs import Site, SiteLog, TimedLog
from cockpit.servers.startup import Startup
from cockpit.servers.status import MALFORMED, NotThePageError, PageMetrics, PageRows, number

_NAME = re.compile(r"[a-z][a-z0-9_]*")


class StatusPageKind(NamedTuple):
    """A kind of status page; `name` is its name in profiles and thresholds (`apache.busy`).

    `url` is the end of its URL. `rows` parses the page: numbers are its metrics, other rows and those named in `texts`
    are texts. A page without the metric `required` is another page, or malformed; `hint` is the fix, `not_found` and
    `forbidden` are those for the responses 404 and 403 ("": also `hint`). `means` and `rates` map the short names of
    thresholds and tables to names on the page: `means` for gauges (averaged), `rates` for counters (per second).
    `is_counter` returns whether a metric is a counter since the start of the server. `age` is the metric that resets
    when the server restarts, `generation` the metric that increases with each reload. `scoreboard` maps letters to
    worker states. For a URL such as unix:/run/haproxy/admin.sock, `command` is sent to the socket, or `program` is a
    shell command that reads the socket "$1"; both "": HTTP only.
    """

    name: str
    url: str
    rows: Callable[[str], PageRows]
    required: str
    hint: str
    is_counter: Callable[[str], bool]
    not_found: str = ""
    forbidden: str = ""
    texts: tuple[str, ...] = ()
    means: Mapping[str, str] = {}
    rates: Mapping[str, str] = {}
    age: str = ""
    generation: str = ""
    scoreboard: Mapping[str, str] = {}
    command: str = ""
    program: str = ""

    @property
    def has_socket(self) -> bool:
        return bool(self.command or self.program)

    def parse(self, page: str) -> PageMetrics:
        """Return the metrics and texts of a page. Raises NotThePageError with the hint."""
        try:
            rows = dict[str, str | float](self.rows(page).items())
        except MALFORMED:
            rows = {}
        parsed = {name: number(row) for name, row in rows.items() if name not in self.texts}
        values = {name: value for name, value in parsed.items() if value is not None}
        if self.required not in values:
            raise NotThePageError(f"no {self.required} on the page: {self.hint}")
        texts = {name: row for name, row in rows.items() if row and name not in values and isinstance(row, str)}
        return PageMetrics(values, texts)


class CandidateOption(NamedTuple):
    """An option of a knob of the kind choice: the command `set` selects it, `when` succeeds while it is active."""

    name: str
    set: str
    when: str


class CandidateKnob(NamedTuple):
    """A setting offered as a knob, with the fields of a knob. `usual`: preselected."""

    name: str
    kind: str
    file: str = ""
    section: str | None = None
    directive: str = ""
    key: str = ""
    get: str = ""
    set: str = ""
    test: str = ""
    reload: str = ""
    values: tuple[str, ...] = ()
    workers: str = ""
    log: str = ""
    option: tuple[CandidateOption, ...] = ()
    cost: str = ""
    usual: bool = False

    @classmethod
    def of_file(cls, startup: Startup, **fields: Any) -> CandidateKnob:
        """Return a candidate without a directive: the main file of a server, and the commands that test and reload
        it."""
        return cls("", startup.kind, startup.file, test=startup.test, reload=startup.reload)._replace(**fields)

    def directives(
        self, names: str, *, usual: bool, section: str | None = None, label: str = ""
    ) -> Iterator[CandidateKnob]:
        """Yield a candidate per directive of a section. `names` are separated by commas or spaces; `label` is appended
        to the names of the knobs."""
        for name in names.split(", ") if "," in names else names.split():
            knob = name.replace(" ", "-") + (f"-{label}" if label else "")
            yield self._replace(name=knob, section=section, directive=name, usual=usual)


class StartSetting(NamedTuple):
    """A setting that a program reads at startup. In order of precedence: one of the `options` of the command line, the
    environment `variable`, the environment variable `fallback`, the `default`. "": no such variable. A `fallback` is
    changed only in an EnvironmentFile that already sets it."""

    name: str
    setting: KnownSetting
    options: tuple[str, ...] = ()
    variable: str = ""
    fallback: str = ""
    default: str = ""
    usual: bool = False

    def given(self, command: Sequence[str]) -> str:
        """Return the option that sets it in a command line, the last one if there are several; "" if there is none."""
        heads = [word.partition("=")[0] for word in command if word.startswith("-")]
        return next((head for head in reversed(heads) if head in self.options), "")


class StatusAddress(NamedTuple):
    """The probable address of a running server's status page."""

    kind: str
    url: str


class ServerOffer(NamedTuple):
    """The settings, logs and status pages that are offered for a running server, and its title."""

    title: str
    candidates: Iterable[CandidateKnob] = ()
    tail: tuple[str, ...] = ()
    status: tuple[StatusAddress, ...] = ()


class RunningServer(NamedTuple):
    """A server that runs on a host. `pattern` is the value for `processes` in [[host]], `master` its first process.
    `programs` are those outside the system's directories that its commands run, with owner and mode."""

    title: str
    pattern: str
    processes: int
    ports: tuple[int, ...]
    candidates: tuple[CandidateKnob, ...]
    tail: tuple[str, ...] = ()
    status: tuple[StatusAddress, ...] = ()
    master: Process | None = None
    startup: Startup | None = None
    programs: tuple[str, ...] = ()


class ServerKind(NamedTuple):
    """A kind of server. `name` is also the kind of its knobs if it has a `grammar`.

    Discovery: `processes` are shell patterns of process names, `pattern` is that of the processes to watch ("": the
    name of the master), `files` paths that are tested for readability, `texts` patterns of files that are read.
    `startup` finds the configuration of a running server, and `offer` describes it (None: another program of that
    name). `has_unit`: settings of its systemd unit are offered. `speaks_http`: its ports accept HTTP. `version` is the
    program's option that prints its compiled defaults, `variables` are environment variables that set several settings,
    `library` is a grep pattern of the library on which the settings depend.

    Settings: `settings` are the known settings; without a grammar they are keys of keyvalue files. `keys` are keyvalue
    keys of a kind with a grammar. `at_start` are
    settings that the program reads at startup; they are offered in the systemd unit that starts it. `choices` finds the
    values that the configuration allows for a setting, () if the setting cannot be used.
    `header` returns the words of a section's innermost header. `in_sections` maps the first word of a header to the
    settings that are offered in each such section; other settings are offered only in sections that contain them.
    `live` adds commands to a candidate in a section, if the running server accepts the value according to all its
    configuration texts.

    Status pages: `status` are the kinds of its pages; `pages` finds them in the configuration texts by file, of a
    server that listens on some ports.

    Logs: `error_logs` are the default paths of the error log. In it and in the output of commands, `failure` matches a
    line of a failed start or reload (group 1: the reason), `correction` a line about a corrected value, and `chatter`
    lines that are unrelated to a change. `access_log` parses a line of the access log, `logged_request` the request in
    it; None: another format. `partial_log` is a format that cannot be replayed. `sites` finds the access logs in the
    configuration texts, by the directory of relative paths and the `variables`; `timed` finds the settings that add the
    durations to a log without them, in the texts by file (None: it has them, or no certain place).

    Reload: `reload_replaces` are parts of the names of processes that a reload replaces. For a kind that keeps its
    processes, `reloaded` matches the line of the error log at the end of a start or reload; also used by grep -E.

    Patterns for configuration texts: `include` matches a line that includes files (group 1: a path or pattern, possibly
    quoted), `upstream` the addresses of upstream servers (groups: addresses, or host and port), `own_log` the file of
    the error log (group 1).
    """

    name: str
    processes: tuple[str, ...]
    startup: Callable[[Process, Inventory], Startup | None]
    offer: Callable[[Process, Startup, Inventory], ServerOffer | None]
    pattern: str = ""
    has_unit: bool = True
    speaks_http: bool = True
    files: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    grammar: Grammar | None = None
    status: tuple[StatusPageKind, ...] = ()
    pages: Callable[[Mapping[str, str], Sequence[int]], Iterable[ConfiguredPage]] | None = None
    error_logs: tuple[str, ...] = ()
    failure: str = ""
    correction: str = ""
    chatter: str = ""
    reload_replaces: tuple[str, ...] = ()
    reloaded: re.Pattern[str] | None = None
    settings: Mapping[str, KnownSetting] = {}
    keys: Mapping[str, KnownSetting] = {}
    access_log: Callable[[bytes], AccessLine | None] | None = None
    logged_request: Callable[[bytes], LoggedRequest | None] | None = None
    partial_log: PartialLog | None = None
    sites: Callable[[Iterable[str], str, Mapping[str, str]], list[Site]] | None = None
    timed: Callable[[Mapping[str, str], str, Mapping[str, str], SiteLog], TimedLog | None] | None = None
    version: str = ""
    variables: tuple[str, ...] = ()
    library: str = ""
    include: str = ""
    upstream: re.Pattern[str] | None = None
    own_log: re.Pattern[str] | None = None
    header: Callable[[str], Sequence[str]] = blocks.header_of
    in_sections: Mapping[str, tuple[str, ...]] = {}
    live: Callable[[CandidateKnob, str], CandidateKnob] | None = None
    choices: Callable[[str], Mapping[str, tuple[str, ...]]] | None = None
    at_start: tuple[StartSetting, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Its name and those of its status pages, which no other kind has."""
        return tuple(dict.fromkeys((self.name, *(page.name for page in self.status))))

    def check(self) -> None:
        """Check the description by a package of others. Raises TypeError, ValueError, re.error."""
        if not all(_NAME.fullmatch(name) for name in self.names):
            raise ValueError(f"invalid name in {', '.join(self.names)}; use small letters, digits and underscores")
        for field, default in {**self._field_defaults, "processes": ()}.items():
            kind = Mapping if isinstance(default, Mapping) else type(default)
            if default is not None and not callable(default) and not isinstance(getattr(self, field), kind):
                raise TypeError(f"{field} of the kind {self.name} must be of type {kind.__name__.lower()}")
        if not all(isinstance(known, KnownSetting) for known in (*self.settings.values(), *self.keys.values())):
            raise TypeError(f"settings of the kind {self.name} must be of type KnownSetting")
        for pattern in (self.include, self.failure, self.correction, self.chatter):
            re.compile(pattern)

    def guarded(self, package: str) -> ServerKind:
        """Return the kind of a package of others, whose exceptions count as another program, and as another format."""
        subject = f"kind {self.name}"
        return self._replace(
            startup=guarded(package, subject, self.startup),
            offer=guarded(package, subject, self.offer),
            access_log=self.access_log and guarded(package, subject, self.access_log),
            logged_request=self.logged_request and guarded(package, subject, self.logged_request),
        )

    def running(self, master: Process, inventory: Inventory) -> RunningServer | None:
        """Return the server of a master process, without candidates if its file or its commands are unknown; None:
        another program of that name."""
        startup = self.startup(master, inventory)
        offer = self.offer(master, startup, inventory) if startup else None
        if startup is None or offer is None:
            return None
        tree, pattern = inventory.tree(master.pid), self.pattern or master.name
        count = sum(fnmatchcase(process.name, pattern) for process in inventory.processes if process.pid in tree)
        known = startup.file and master.origin != "container"
        return RunningServer(
            title=offer.title,
            pattern=pattern,
            processes=count,
            ports=inventory.ports_of(master.pid),
            candidates=tuple(
                candidate for candidate in offer.candidates if known and (candidate.reload or candidate.set)
            ),
            tail=offer.tail,
            status=offer.status,
            master=master if self.has_unit else None,
            startup=startup,
        )


def command_line_kind(
    title: str, name: str, *processes: str, at_start: tuple[StartSetting, ...], partial_log: PartialLog | None = None
) -> ServerKind:
    """Return a kind of server that is configured by its command line and its environment only."""

    def startup(process: Process, inventory: Inventory) -> Startup:
        by_unit = f"its options are set by {process.unit}" if process.unit else ""
        reason = by_unit or "its options are on its command line, and no systemd unit starts it"
        return Startup(name, (), "", read_only_reason=reason)

    def offer(master: Process, startup: Startup, inventory: Inventory) -> ServerOffer | None:
        return ServerOffer(title) if inventory.ports_of(master.pid) else None

    return ServerKind(name, processes, startup, offer, partial_log=partial_log, at_start=at_start)
