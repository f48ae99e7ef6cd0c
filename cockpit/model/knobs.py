"""Settings of a server that can be read and changed, and commands that can be run there.

The value of a live kind is read and set by commands, not in a file. Checks of profiles, commands, questions to the
user, help and JSON Schema are derived from the entry of a kind in LIVE_KNOBS. A value is never inserted into the text
of a command.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import msgspec

from cockpit.model.errors import ChangeRefused
from cockpit.model.text import sanitize
from cockpit.servers import kernel, systemd
from cockpit.servers.registry import GRAMMARS, SETTINGS
from cockpit.servers.settings import Impact, KnownSetting

ATIME_OPTIONS = ("strictatime", "relatime", "noatime")
_SYSCTL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]*")

# $point is the mount point. Sets $atime to the active access time option of the mount, and $flags to its other options;
# the last mount on the point counts. mountinfo writes a space as \040.
_MOUNT = r"""
flags= atime= found=
while read -r _ _ _ _ at options _; do
    [ "$(printf '%b' "$(printf '%s' "$at" | sed 's/\\\([0-7][0-7][0-7]\)/\\0\1/g')")" = "$point" ] || continue
    found=y flags= atime=strictatime
    rest=$options,
    while [ "$rest" ]; do
        one=${rest%%,*} rest=${rest#*,}
        case $one in
            noatime | relatime) atime=$one ;;
            *) flags=$flags$one, ;;
        esac
    done
done </proc/self/mountinfo
[ "$found" ] || { echo "$point: not a mount point" >&2; exit 1; }
"""

# mount(8) keeps the mount's current options, so the other access time options must be removed. `bind` changes only this
# mount: without `bind`, the `ro` of a read-only bind mount would make the whole file system read-only.
_REMOUNT = """
case $1 in
    noatime) atime=norelatime,noatime ;;
    relatime) atime=atime,relatime ;;
    *) atime=atime,norelatime,strictatime ;;
esac
mount -o "remount,bind,$flags$atime" -- "$point"
"""
_TRY = 'try() { if sh -c "$1" >/dev/null 2>&1 </dev/null; then printf "%s\\n" "$2"; exit; fi; }'


class LiveKnobKind(NamedTuple):
    """A kind of knob. `needs` and `may`: its required and optional keys in [[knob]]; `setting` and `keys`: its row in
    `cockpit help knobs`.

    `get` returns the command that prints a knob's value, `set` the command that sets it to "$1"; both raise
    ChangeRefused for an invalid name in the profile. `place` identifies the value on its host, independent of the
    knob's name. `writes` names the target of a change, for the question whether to trust a profile; "": only commands
    of the profile write, and these are listed anyway.
    `printed`: a value in the form in which `get` prints it; `values`: all allowed values ((): any); `cost`: cost of a
    change ("": by the reload command); `settings`: known settings by `key`.
    """

    name: str
    needs: tuple[str, ...]
    setting: str
    keys: str
    get: Callable[[Knob], str]
    set: Callable[[Knob, str], str]
    place: Callable[[Knob], str]
    writes: Callable[[Knob], str] = lambda _: ""
    printed: Callable[[str], str] = str
    may: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    cost: str = ""
    settings: Mapping[str, KnownSetting] = {}


def _sysctl_file(knob: Knob) -> str:
    """Return the file of `net.ipv4.tcp_rmem`, or of a key with slashes (for names with a dot), as in sysctl(8)."""
    if not _SYSCTL.fullmatch(knob.key) or ".." in knob.key:
        raise ChangeRefused(f"{knob.name}: {sanitize(knob.key, 80)!r} is not a sysctl name; write it as vm.swappiness")
    return "/proc/sys/" + (knob.key if "/" in knob.key else knob.key.replace(".", "/"))


def _point(knob: Knob) -> str:
    if not knob.mount.startswith("/") or sanitize(knob.mount) != knob.mount:
        raise ChangeRefused(f"{knob.name}: {sanitize(knob.mount, 80)!r}: write a mount point as an absolute path")
    return posixpath.normpath(knob.mount)


def _options(knob: Knob) -> str:
    """Return the command that prints the active option."""
    if knob.get:
        return knob.get
    tries = [f"try {shlex.quote(option.when)} {shlex.quote(option.name)}" for option in knob.option]
    return "\n".join((_TRY, *tries, "echo 'none of its options is active' >&2; exit 1"))


SYSCTL = LiveKnobKind(
    name="sysctl",
    needs=("key",),
    may=("file",),
    setting="the kernel's value, and its line in `file` if the profile names one",
    keys="`key` `file`",
    get=lambda knob: f"tr -s '[:space:]' ' ' <{shlex.quote(_sysctl_file(knob))}",
    set=lambda knob, _: f"printf '%s\\n' \"$1\" >{shlex.quote(_sysctl_file(knob))}",
    place=_sysctl_file,
    writes=lambda knob: f"sysctl {knob.key}",
    printed=lambda value: " ".join(value.split()),
    settings=kernel.SETTINGS,
)
CHOICE = LiveKnobKind(
    name="choice",
    needs=("option",),
    may=("get",),
    setting="one of several options, each with a command that switches to it",
    keys="`[[knob.option]]` `name` `set` `when`, or one `get`",
    get=_options,
    set=lambda knob, value: next(option.set for option in knob.option if option.name == value),
    place=lambda knob: f"choice\t{_options(knob)}",
    cost="restart",
)
MOUNT = LiveKnobKind(
    name="mount",
    needs=("mount",),
    setting="strictatime, relatime or noatime, by a remount",
    keys="`mount`",
    get=lambda knob: f"point={shlex.quote(_point(knob))}\n{_MOUNT}\nprintf '%s\\n' \"$atime\"",
    set=lambda knob, _: f"point={shlex.quote(_point(knob))}\n{_MOUNT}\n{_REMOUNT}",
    place=lambda knob: f"mount\t{_point(knob)}",
    writes=lambda knob: f"mount options of {knob.mount}",
    values=ATIME_OPTIONS,
    cost="remount",
)
COMMAND = LiveKnobKind(
    name="command",
    needs=("get", "set"),
    setting='anything else: `get` prints the value, `set` takes it as `"$1"`',
    keys="`get` `set`",
    get=lambda knob: knob.get,
    set=lambda knob, _: knob.set,
    place=lambda knob: f"command\t{knob.get}",
)
LIVE_KNOBS = {kind.name: kind for kind in (SYSCTL, CHOICE, MOUNT, COMMAND)}
KNOB_KINDS = (*GRAMMARS, *LIVE_KNOBS)
if TYPE_CHECKING:
    KnobKind = str
else:
    KnobKind = Literal[KNOB_KINDS]
# Cost of a change. written: the value is in its file, not active; live: active without a reload.
Cost = Literal["written", "live", "graceful", "restart", "remount"]
COSTS: tuple[str, ...] = get_args(Cost)

# Placeholder for a value that must not be shown.
SECRET = "(secret)"
_NUMBER = re.compile(r"([-+]?[0-9]+(?:\.[0-9]+)?)(.*)", re.DOTALL)
_RESTARTS = re.compile(r"\b(restart|start|stop|shutdown)\b")


class Option(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An option of a choice: `set` switches to it; `when` succeeds while it is active (if the knob has no `get`)."""

    name: str
    set: str
    when: str = ""


class Knob(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A setting of a host. Its fields depend on its kind:

    a kind of server (apache, nginx, …): `directive` in `file`, in `section` (`IfModule mpm_prefork_module`;
    `http { server {`; None: top level); `get` and `set`: commands that read and set it in the running server too.
    systemd: `directive` in `file`, a drop-in of its unit. `get` alone prints the value that `reload` activated.
    keyvalue: `key` in `file`, in the ini `section` if there are several. Kinds without a file: see LIVE_KNOBS.

    `test` checks the whole configuration, `reload` activates it: shell commands for the host.
    `values`: allowed values; `min` and `max`: range of numbers, with an optional `unit`.
    `workers`: processes that a reload replaces; `log`: the server's error log; `cost`: see Cost.
    `action`: the profile's action that activates a value that is only written (keyvalue without `reload`).
    `secret`: its value is never shown or recorded.
    """

    name: str
    host: str
    kind: KnobKind = "apache"
    file: str = ""
    section: str | None = None
    directive: str = ""
    key: str = ""
    mount: str = ""
    option: tuple[Option, ...] = ()
    get: str = ""
    set: str = ""
    test: str = ""
    reload: str = ""
    values: tuple[str, ...] = ()
    min: float | None = None
    max: float | None = None
    unit: str = ""
    cost: str = ""
    workers: str = ""
    log: str = ""
    action: str = ""
    secret: bool = False

    @property
    def in_file(self) -> bool:
        """Return whether its value is in a file."""
        return self.kind in GRAMMARS or bool(self.file)

    @property
    def creates(self) -> bool:
        """Return whether a change may create its file: a `.conf` file of a `sysctl.d` directory, a unit's drop-in."""
        if self.kind == systemd.KIND:
            return systemd.is_drop_in(self.file)
        directory, _, name = self.file.rpartition("/")
        return bool(self.key) and directory.endswith("/sysctl.d") and name.endswith(".conf")

    @property
    def live(self) -> bool:
        """Return whether its active value is read from the running host, in addition to its file if it has one."""
        return self.kind not in GRAMMARS or bool(self.get)

    @property
    def set_by_reload(self) -> bool:
        """Return whether `reload` activates the value in its file, and `get` reads the active value."""
        return self.kind in GRAMMARS and bool(self.get) and not self.set

    @property
    def written_only(self) -> bool:
        """Return whether a change writes its value to a file without activating it."""
        return self.in_file and not self.live and (not self.reload or self.needs_restart)

    @property
    def needs_restart(self) -> bool:
        """Return whether the server reads the setting only when it starts, and `reload` does not restart it."""
        restarts = self.cost == "restart" or _RESTARTS.search(self.reload)
        return not restarts and bool(self.directive and self.known and self.known.impact is Impact.RESTART)

    @property
    def known(self) -> KnownSetting | None:
        """Its entry in the table of known settings."""
        settings = LIVE_KNOBS[self.kind].settings if self.kind in LIVE_KNOBS else SETTINGS.get(self.kind, {})
        return settings.get((self.directive or self.key).lower())

    @property
    def help(self) -> str:
        return self.known.help if self.known else ""

    @property
    def activation(self) -> str:
        """The next step to activate a written value."""
        step = f"run action {self.action}" if self.action else "restart its server"
        if self.needs_restart:
            return f"needs a restart: {step}"
        return step if self.action else "restart or reload its server"

    @property
    def choices(self) -> tuple[str, ...]:
        options = tuple(option.name for option in self.option)
        return options or self.values or (LIVE_KNOBS[self.kind].values if self.kind in LIVE_KNOBS else ())

    @property
    def allowed(self) -> str:
        """Return the allowed values as text; "": no restriction is known."""
        unit = self.unit and f" {self.unit.strip()}"
        if self.choices:
            return ", ".join(self.choices)
        if self.min is not None and self.max is not None:
            return f"{self.min:g} to {self.max:g}{unit}"
        if self.min is not None:
            return f"{self.min:g} or more{unit}"
        if self.max is not None:
            return f"at most {self.max:g}{unit}"
        return self.known.form.words if self.known else ""

    @property
    def effective_cost(self) -> str:
        """Return the cost of a change: from the profile, else from its kind and its reload command."""
        if cost := self.cost or (LIVE_KNOBS[self.kind].cost if self.kind in LIVE_KNOBS else ""):
            return cost
        if _RESTARTS.search(self.reload):
            return "restart"
        if self.written_only:
            return "written"
        if self.kind == systemd.KIND:
            return "live"
        return "graceful" if self.reload else "live"

    @property
    def place(self) -> str:
        """Return the place of its value, e.g. `/etc/default/tomcat10: JAVA_OPTS`."""
        name = self.directive or self.key or self.mount or self.get
        return f"{self.file}: {name}" if self.file else name

    def getter(self) -> str:
        """Return the command that prints its live value. Raises ChangeRefused for an invalid name in the profile."""
        return LIVE_KNOBS[self.kind].get(self) if self.kind in LIVE_KNOBS else self.get

    def setter(self, value: str) -> str:
        """Return the command that sets its live value to "$1"."""
        return LIVE_KNOBS[self.kind].set(self, value) if self.kind in LIVE_KNOBS else self.set

    def live_place(self) -> str:
        """Return an identity of its live value on its host, independent of the knob's name."""
        return LIVE_KNOBS[self.kind].place(self) if self.kind in LIVE_KNOBS else f"{self.kind}\t{self.get}"

    def shown(self, value: str, limit: int = 200) -> str:
        """Return a value for an error message, without secrets."""
        return SECRET if self.secret else sanitize(value, limit)

    def printed(self, value: str) -> str:
        """Return a value in the form in which the running server prints it."""
        if self.kind in LIVE_KNOBS:
            return LIVE_KNOBS[self.kind].printed(value)
        return self.known.as_printed(value) if self.known else value

    def format_error(self, value: str) -> str:
        """Return why the form of a value is invalid for the server; "" if it is valid or unknown."""
        variable = GRAMMARS[self.kind].variable if self.kind in GRAMMARS else None
        if self.known is None or (variable and variable.fullmatch(value)):
            return ""
        if self.known.accepts(value):
            return ""
        return f"{self.directive or self.key} takes {self.known.form.words}, not {self.shown(value, 80)!r}"

    def check_live(self, value: str) -> None:
        """Raise ChangeRefused for a live value that is not allowed."""
        shown = f"{self.name}: {self.shown(value, 80)!r}"
        if why := self.value_error(value):
            raise ChangeRefused(f"{shown} {why}")
        if not value or value != " ".join(value.split()) or sanitize(value) != value:
            raise ChangeRefused(f"{shown}: a value is one line of text, not empty, with single spaces")

    def value_error(self, value: str) -> str:
        """Return why a value is not allowed by the profile; "" if it is allowed."""
        if self.choices:
            choices = "its values" if self.secret else ", ".join(self.choices)
            return "" if value in self.choices else f"is not one of {choices}"
        if self.min is None and self.max is None:
            return ""
        match = _NUMBER.fullmatch(value)
        if not match or match[2].strip() not in ("", self.unit.strip()):
            return f"is not a number{f' of {self.unit.strip()}' if self.unit else ''}; allowed: {self.allowed}"
        number = float(match[1])
        if (self.min is not None and number < self.min) or (self.max is not None and number > self.max):
            return f"is out of range; allowed: {self.allowed}"
        return ""


def highest_cost(knobs: tuple[Knob, ...]) -> str:
    """Return the cost of a change of all these knobs: the highest of their costs."""
    return max((knob.effective_cost for knob in knobs), key=COSTS.index, default="live")


def not_yet_active(knobs: Iterable[Knob]) -> str:
    """Return the knobs whose values are written but not active, each with its next step, as text; "" if none."""
    steps = ", ".join(f"{knob.name} ({knob.activation})" for knob in knobs)
    return f"written, not yet active: {steps}" if steps else ""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """The `old` and the `new` value of a knob; None: not set."""

    knob: str
    old: str | None
    new: str | None

    def hidden(self) -> Setting:
        """Return the setting of a secret knob with its values replaced by SECRET."""
        return Setting(knob=self.knob, old=self.old and SECRET, new=self.new and SECRET)


def settings_words(settings: Iterable[Setting]) -> str:
    """Return `MaxSpareServers 10 → 30, …`."""
    return ", ".join(f"{s.knob} {s.old or 'unset'} → {s.new or 'unset'}" for s in settings)


class ServerAction(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A command to run on a host, `times` times in sequence, e.g. a restart, or emptying a cache."""

    name: str
    host: str
    command: str
    times: int = 1
