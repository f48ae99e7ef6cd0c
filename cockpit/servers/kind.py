"""A kind of server: all facts about a web server, a proxy or an application server. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from cockpit.servers import blocks
from cockpit.servers.access_log import AccessLine, LoggedRequest, PartialLog
from cockpit.servers.editing import Grammar
from cockpit.servers.evidence import Evidence
from cockpit.servers.inventory import Inventory, Process
from cockpit.servers.settings import KnownSetting
from cockpit.servers.startup import Startup
from cockpit.servers.status import PageMetrics


class StatusPageKind(NamedTuple):
    """A page with metrics of a server, by its `name` in profiles and thresholds (`apache.busy`).

    `url` is the end of its URL. `means` and `rates` are the short names of gauges and of counters per second, by which
    thresholds and tables find the page's own. `is_counter`: whether a metric only grows while the server runs. `age` is
    the page's metric that restarts with the server, `generation` the one that grows with each reload.
    `not_found` and `forbidden` are hints for the answers 404 and 403. `scoreboard` are the states by their letters.
    `command` requests the page on the server's Unix socket (a URL such as unix:/run/haproxy/admin.sock), or `program`
    is a shell command that does, with the socket as "$1"; both "": HTTP only.
    """

    name: str
    url: str
    parse: Callable[[str], PageMetrics]
    not_found: str
    forbidden: str
    is_counter: Callable[[str], bool]
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


class CandidateOption(NamedTuple):
    """An option of a choice: `set` switches to it, `when` succeeds while it is active."""

    name: str
    set: str
    when: str


class CandidateKnob(NamedTuple):
    """A setting to offer, with the fields of a knob; `usual`: preselected."""

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


class StartSetting(NamedTuple):
    """A setting that a program reads when it starts: from one of its `options`, else from a `variable` of its
    environment ("": it has none), else from the variable `fallback`, else it is the `default`. A `fallback` is only
    changed in an EnvironmentFile that sets it."""

    name: str
    setting: KnownSetting
    options: tuple[str, ...] = ()
    variable: str = ""
    fallback: str = ""
    default: str = ""
    usual: bool = False

    def given(self, command: Sequence[str]) -> str:
        """The option that a command line has last; "" if none."""
        heads = [word.partition("=")[0] for word in command if word.startswith("-")]
        return next((head for head in reversed(heads) if head in self.options), "")


class StatusAddress(NamedTuple):
    """A status page that a running server most likely has."""

    kind: str
    url: str


class RunningServer(NamedTuple):
    """A server that runs on a host. `pattern` is the value for [[host]] processes, `master` its first process."""

    title: str
    pattern: str
    processes: int
    ports: tuple[int, ...]
    candidates: tuple[CandidateKnob, ...]
    tail: tuple[str, ...] = ()
    status: tuple[StatusAddress, ...] = ()
    master: Process | None = None
    startup: Startup | None = None


class ServerKind(NamedTuple):
    """A kind of server. `name` is also the kind of its knobs if it has a `grammar` of its own.

    `processes` are shell patterns of its processes' names, `files` the paths that discovery tests for being readable,
    `texts` patterns of the files that it reads; `discover` finds its running servers. `error_logs` are the default
    places of its error log, in which `failure` matches a line by which a start or reload is given up (group 1: the
    reason) and `correction` one about a corrected value; `chatter` matches lines of its commands and logs that say
    nothing about a change. `reload_replaces` are parts of the names of processes that a reload replaces by new ones;
    `reloaded` matches the line of its error log by which a start or a reload ends, for a kind that keeps its processes;
    grep -E reads it too. `shown` are the settings that a running server shows.
    `settings` are its known settings; without a grammar they are keys of its keyvalue files. `keys` are such keys of a
    kind with a grammar. `access_log` parses a line of its access log, `logged_request` the request in it; None: a line
    of another format; `partial_log` is a log without such requests. `startup` finds a running server's configuration
    (None: another program of that name); `version` is the option that makes its program print its compiled defaults,
    `variables` are those of its environment that set more than one setting, `library` is grep's pattern of the one of
    its libraries that its settings depend on.
    `include` matches a line of its configuration that includes files (group 1: a path or pattern, possibly quoted),
    `upstream` the addresses of servers to which it passes requests (groups: addresses, or host and port), `own_log` the
    file of its error log (group 1).
    `header` are the words of a section's innermost header; `in_sections` are settings offered in each section whose
    header begins with the word, set or not; others are offered in the sections that have them. `live` returns a
    candidate that a section has with its commands, if the server takes its value while it runs: by all its texts.
    `choices` finds the values that its configuration allows for settings, () if it does not have them at all.
    `at_start` are settings that its program reads when it starts, which are offered in the systemd unit that starts it.
    """

    name: str
    processes: tuple[str, ...]
    discover: Callable[[Inventory], Iterable[RunningServer]]
    files: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    grammar: Grammar | None = None
    status: tuple[StatusPageKind, ...] = ()
    error_logs: tuple[str, ...] = ()
    failure: str = ""
    correction: str = ""
    chatter: str = ""
    reload_replaces: tuple[str, ...] = ()
    reloaded: re.Pattern[str] | None = None
    shown: Mapping[str, Evidence] = {}
    settings: Mapping[str, KnownSetting] = {}
    keys: Mapping[str, KnownSetting] = {}
    access_log: Callable[[bytes], AccessLine | None] | None = None
    logged_request: Callable[[bytes], LoggedRequest | None] | None = None
    partial_log: PartialLog | None = None
    startup: Callable[[Process, Inventory], Startup | None] | None = None
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


def on_command_line(
    title: str, name: str, *processes: str, at_start: tuple[StartSetting, ...], partial_log: PartialLog | None = None
) -> ServerKind:
    """A kind of server that is configured by what starts it alone: its command line and its environment."""

    def startup(process: Process, inventory: Inventory) -> Startup:
        if process.unit:
            return Startup(name, (), "", fixed=f"{process.unit} starts it with its options")
        return Startup(name, (), "", fixed="its options are on its command line, and no systemd unit starts it")

    def discover(inventory: Inventory) -> Iterator[RunningServer]:
        for master in inventory.masters(*processes):
            if inventory.ports_of(master.pid):
                yield running(title, master.name, inventory, master, startup(master, inventory), ())

    return ServerKind(
        name=name,
        processes=processes,
        discover=discover,
        partial_log=partial_log,
        startup=startup,
        at_start=at_start,
    )


class ConfigFile(NamedTuple):
    """A configuration file of a server, with the commands that test and reload it."""

    kind: str
    file: str
    test: str
    reload: str
    workers: str = ""
    log: str = ""

    def candidates(
        self, names: str, *, usual: bool, section: str | None = None, label: str = ""
    ) -> Iterator[CandidateKnob]:
        """Directives of one section, by their names, separated by commas or spaces; `label` ends the knobs' names."""
        for name in names.split(", ") if "," in names else names.split():
            yield CandidateKnob(
                name=name.replace(" ", "-") + (f"-{label}" if label else ""),
                kind=self.kind,
                file=self.file,
                section=section,
                directive=name,
                test=self.test,
                reload=self.reload,
                workers=self.workers,
                log=self.log,
                usual=usual,
            )


def running(
    title: str,
    pattern: str,
    inventory: Inventory,
    master: Process,
    startup: Startup,
    candidates: Iterable[CandidateKnob],
    tail: tuple[str, ...] = (),
    status: tuple[StatusAddress, ...] = (),
) -> RunningServer:
    """The server of a master process. Nothing is offered if its file, its test or its reload command is unknown."""
    tree, names = inventory.tree(master.pid), {process.pid: process.name for process in inventory.processes}
    count = sum(fnmatchcase(names.get(pid, ""), pattern) for pid in tree)
    known = startup.file and master.origin != "container"
    usable = tuple(one for one in candidates if known and (one.reload or one.set))
    ports = inventory.ports_of(master.pid)
    return RunningServer(title, pattern, count, ports, usable, tail, status, master, startup)
