"""Settings of a systemd unit: systemd.exec(5), systemd.resource-control(5), and settings of its program. Pure.

A drop-in is `/etc/systemd/system/UNIT.d/NAME.conf` with a section `[Service]`. Properties of the control group become
active by `systemctl daemon-reload`, limits and the priority by a restart of the unit. `systemctl show` prints the
configured values even if systemd cannot apply them, so active values are read from the main process and the control
group.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping

from cockpit.servers.inventory import Process
from cockpit.servers.kind import CandidateKnob, StartSetting
from cockpit.servers.settings import Impact, KnownSetting, ValueForm, integer, word
from cockpit.servers.systemd.editor import UnitGrammar

KIND = "systemd"
UNLIMITED = "infinity"
_UNIT_DIRECTORY = "/etc/systemd/system/"
_FILE = re.compile(rf"{_UNIT_DIRECTORY}([\w@:.\\-]{{1,200}}\.service)(\.d/[\w.-]{{1,100}}\.conf)?")
_SIZE = re.compile(r"([0-9]{1,15})([KMGT]?)")
_LIMIT = re.compile(r"(infinity|[0-9]{1,18})(?::(infinity|[0-9]{1,18}))?")
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_MAX_LIMIT = 2**63


def is_drop_in(file: str) -> bool:
    """Return whether the file is a drop-in, which a change may create, with its directory: it only extends a unit."""
    match = _FILE.fullmatch(file)
    return match is not None and match[2] is not None


def unit_of(file: str) -> str:
    """Return the unit of a file in the administrator's unit directory; "" for another file."""
    match = _FILE.fullmatch(file)
    return match[1] if match else ""


def _bytes(value: str) -> str:
    """Convert a size to bytes, as printed by systemctl."""
    match = _SIZE.fullmatch(value)
    return str(int(match[1]) << _UNITS[match[2]]) if match else value


def _is_limit(value: str) -> bool:
    """Return whether the value is a limit, or SOFT:HARD with a hard limit that is not lower."""
    match = _LIMIT.fullmatch(value)
    if not match:
        return False
    soft, hard = (_MAX_LIMIT if part == UNLIMITED else int(part) for part in (match[1], match[2] or match[1]))
    return 0 < soft <= hard <= _MAX_LIMIT


def _printed_limit(value: str) -> str:
    """Return a limit as printed by its command: a single number if soft and hard limit are equal."""
    soft, _, hard = value.partition(":")
    return soft if soft == hard else value


_SIZES = ValueForm(
    "a size such as 512M (K, M, G, T)",
    lambda value: bool(_SIZE.fullmatch(value)) and 0 < int(_bytes(value)) < _MAX_LIMIT,
).or_word(UNLIMITED)
SETTINGS = {
    "LimitNOFILE": KnownSetting(
        "open files and sockets of each process; matters if accept fails with EMFILE under many connections",
        ValueForm("a number, or SOFT:HARD such as 4096:524288, each may be infinity", _is_limit),
        Impact.RESTART,
        _printed_limit,
    ),
    "Nice": KnownSetting(
        "-20 to 19: CPU priority, lower is preferred; matters if other programs compete for the CPUs",
        word("a whole number from -20 to 19", "-(?:20|1[0-9]|[1-9])|1?[0-9]"),
        Impact.RESTART,
    ),
    "CPUQuota": KnownSetting(
        "total CPU time of all processes of the unit, 100% is one CPU; matters if the unit is throttled",
        word("a percentage such as 150%", "[1-9][0-9]{0,5}%"),
        Impact.LIVE,
    ),
    "CPUWeight": KnownSetting(
        "1 to 10000 (default 100): CPU share relative to other units; matters if they compete for the CPUs",
        integer(1, 10000),
        Impact.LIVE,
    ),
    "MemoryMax": KnownSetting(
        "memory above which processes of the unit are killed; matters if the unit has OOM kills",
        _SIZES,
        Impact.LIVE,
        _bytes,
    ),
    "MemoryHigh": KnownSetting(
        "memory above which the unit is throttled and its pages are reclaimed; at most MemoryMax",
        _SIZES,
        Impact.LIVE,
        _bytes,
    ),
    "TasksMax": KnownSetting(
        "maximum processes and threads of the unit; matters if fork fails with EAGAIN",
        integer(1).or_word(UNLIMITED),
        Impact.LIVE,
    ),
}
# sh programs. $unit is the name of the unit.
_PROCESS = r"""
pid=$(systemctl show --value -p MainPID "$unit")
[ "${pid:-0}" != 0 ] || { echo "$unit is not running" >&2; exit 1; }
"""
# `enforced FILE HIERARCHY FILE...` prints the unit's FILE of cgroup v2, or the FILEs in the HIERARCHY of cgroup v1. No
# such file means no limit. In v1, infinity is -1 or the largest multiple of the page size.
_GROUP = r"""
group=$(systemctl show --value -p ControlGroup "$unit")
[ "$group" ] || { echo "$unit is not running" >&2; exit 1; }
enforced() {
    cat "/sys/fs/cgroup$group/$1" 2>/dev/null && return
    directory=/sys/fs/cgroup/$2$group
    shift 2
    (cd "$directory" && cat "$@") 2>/dev/null | paste -s -d ' '
}
unlimited() { awk '!NF || $1 == "max" || $1 < 0 || $1 > 9e18 { print "infinity"; next } '"$1"; }
"""
_GETTERS = {
    "LimitNOFILE": f'{_PROCESS}awk \'/^Max open files/ {{ print $4 == $5 ? $4 : $4 ":" $5 }}\' "/proc/$pid/limits"',
    "Nice": f"{_PROCESS}sed 's/^.*) //' \"/proc/$pid/stat\" | cut -d ' ' -f 17",
    "CPUQuota": f"{_GROUP}enforced cpu.max cpu cpu.cfs_quota_us cpu.cfs_period_us |"
    " unlimited '{ printf \"%.10g%%\\n\", 100 * $1 / $2 }'",
    # cgroup v1 has shares: 1024 for a weight of 100. The file is read twice, so that two words mean v1.
    "CPUWeight": f"{_GROUP}enforced cpu.weight cpu cpu.shares cpu.shares |"
    " awk 'NF > 1 { $1 = int($1 * 100 / 1024 + 0.5) } { print NF ? $1 : 100 }'",
    "MemoryMax": f"{_GROUP}enforced memory.max memory memory.limit_in_bytes | unlimited '{{ print $1 }}'",
    "MemoryHigh": f"{_GROUP}enforced memory.high memory memory.high | unlimited '{{ print $1 }}'",
    "TasksMax": f"{_GROUP}enforced pids.max pids pids.max | unlimited '{{ print $1 }}'",
}


# `value NAME` prints a variable of $pid's environment, or the value of an option on its command line; the last one
# counts.
_VARIABLE = """
value() { tr '\\0' '\\n' <"/proc/$pid/environ" | awk -v name="$1=" '
    index($0, name) == 1 { value = substr($0, length(name) + 1) }
    END { print value }'; }
"""
_OPTION = """
value() { tr '\\0' '\\n' <"/proc/$pid/cmdline" | awk -v name="$1" '
    index($0, name "=") == 1 { value = substr($0, length(name) + 2) }
    wanted { value = $0 }
    { wanted = $0 == name }
    END { print value }'; }
"""


def candidates(
    master: Process, program: Iterable[StartSetting] = (), files: Mapping[str, str] = {}
) -> Iterator[CandidateKnob]:
    """Yield the settings of the program, then those of the unit of a server's first process; nothing without a unit on
    this host. `files` maps variables to the EnvironmentFile that sets them."""
    file = f"{_UNIT_DIRECTORY}{master.unit}.d/90-webcockpit.conf"
    if not master.unit or master.origin == "container" or not is_drop_in(file):
        return
    unit = shlex.quote(master.unit)
    # systemd does not start a unit that failed too often, unless its failures are reset.
    restart = f"systemctl daemon-reload; systemctl reset-failed {unit}; systemctl restart {unit}"
    for start in program:
        if knob := _of_program(start, master, file, files):
            get = f"unit={unit}{_PROCESS}{knob.get}"
            yield knob._replace(name=start.name, get=get, reload=restart, usual=start.usual)
    for name, setting in SETTINGS.items():
        yield CandidateKnob(
            name,
            KIND,
            file,
            directive=name,
            get=f"unit={unit}{_GETTERS[name]}",
            reload=restart if setting.impact is Impact.RESTART else "systemctl daemon-reload",
        )


def _of_program(start: StartSetting, master: Process, file: str, files: Mapping[str, str]) -> CandidateKnob | None:
    """Return the knob for a setting of a program, with a command that prints its active value; None if the setting can
    only be changed by hand. An EnvironmentFile overrides the Environment of a drop-in."""
    if option := start.given(master.command):
        get = f"{_OPTION}value {shlex.quote(option)} | grep ."
        return CandidateKnob(start.name, KIND, f"{_UNIT_DIRECTORY}{master.unit}", directive=option, get=get)
    names = [name for name in (start.variable, start.fallback) if name]
    if name := next((name for name in names if name in files), ""):
        return CandidateKnob(start.name, "keyvalue", files[name], key=name, get=f"{_VARIABLE}value {name} | grep .")
    if not start.variable:
        return None
    values = " ".join(f"value {name} | grep . ||" for name in names)
    get = f"{_VARIABLE}{values} echo {shlex.quote(start.default)}"
    return CandidateKnob(start.name, KIND, file, directive=start.variable, get=get)


GRAMMAR = UnitGrammar()
