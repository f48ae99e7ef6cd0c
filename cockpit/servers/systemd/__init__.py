"""Settings of a systemd unit: systemd.exec(5), systemd.resource-control(5), and those of the program it starts. Pure.

A drop-in is `/etc/systemd/system/UNIT.d/NAME.conf` with a section `[Service]`. Properties of the control group are
active after `systemctl daemon-reload`; limits and the priority when the unit restarts. `systemctl show` prints what
systemd means to set, also where it cannot, so values are read from the main process and the unit's control group.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping

from cockpit.servers.inventory import Process
from cockpit.servers.kind import CandidateKnob, StartSetting
from cockpit.servers.settings import Impact, KnownSetting, ValueForm, integer
from cockpit.servers.systemd.editor import UnitGrammar

KIND = "systemd"
UNLIMITED = "infinity"
_PLACE = "/etc/systemd/system/"
_FILE = re.compile(rf"{_PLACE}([\w@:.\\-]{{1,200}}\.service)(\.d/[\w.-]{{1,100}}\.conf)?")
_SIZE = re.compile(r"([0-9]{1,15})([KMGT]?)")
_SHARE = re.compile(r"[1-9][0-9]{0,5}%")
_LIMIT = re.compile(r"(infinity|[0-9]{1,18})(?::(infinity|[0-9]{1,18}))?")
_NICE = re.compile(r"-(?:20|1[0-9]|[1-9])|1?[0-9]")
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_MOST = 2**63


def is_drop_in(file: str) -> bool:
    """Whether a change may create the file, and its directory: it only adds to a unit."""
    found = _FILE.fullmatch(file)
    return found is not None and found[2] is not None


def unit_of(file: str) -> str:
    """The unit that a file in systemd's directory for the administrator belongs to; "" if none."""
    found = _FILE.fullmatch(file)
    return found[1] if found else ""


def _bytes(value: str) -> str:
    """A size in bytes, as systemctl prints it."""
    found = _SIZE.fullmatch(value)
    return str(int(found[1]) << _UNITS[found[2]]) if found else value


def _is_size(value: str) -> bool:
    return _SIZE.fullmatch(value) is not None and 0 < int(_bytes(value)) < _MOST


def _is_limit(value: str) -> bool:
    """Whether it is a limit, or a soft one and a hard one that is not lower."""
    found = _LIMIT.fullmatch(value)
    if not found:
        return False
    soft, hard = (_MOST if part == UNLIMITED else int(part) for part in (found[1], found[2] or found[1]))
    return 0 < soft <= hard <= _MOST


def _both(value: str) -> str:
    """A limit as the command prints it: once if both are the same."""
    soft, _, hard = value.partition(":")
    return soft if soft == hard else value


_SIZES = ValueForm("a size such as 512M (K, M, G, T)", _is_size).or_word(UNLIMITED)
SETTINGS = {
    "LimitNOFILE": KnownSetting(
        "open files and sockets of each process; matters if accept fails with EMFILE under many connections",
        ValueForm("a number, or SOFT:HARD such as 4096:524288, each may be infinity", _is_limit),
        Impact.RESTART,
        _both,
    ),
    "Nice": KnownSetting(
        "-20 to 19: priority for the CPU, lower goes first; matters if other programs compete for the CPUs",
        ValueForm("a whole number from -20 to 19", lambda value: _NICE.fullmatch(value) is not None),
        Impact.RESTART,
    ),
    "CPUQuota": KnownSetting(
        "CPU time of all its processes together, 100% is one CPU; matters if the unit is throttled",
        ValueForm("a percentage such as 150%", lambda value: _SHARE.fullmatch(value) is not None),
        Impact.LIVE,
    ),
    "CPUWeight": KnownSetting(
        "1 to 10000 (100): share of the CPU beside other units; matters if they compete for it",
        integer(1, 10000),
        Impact.LIVE,
    ),
    "MemoryMax": KnownSetting(
        "memory above which processes of the unit are killed; matters if the kernel reports OOM kills in it",
        _SIZES,
        Impact.LIVE,
        _bytes,
    ),
    "MemoryHigh": KnownSetting(
        "memory above which the unit is slowed down and its pages are reclaimed; at most MemoryMax",
        _SIZES,
        Impact.LIVE,
        _bytes,
    ),
    "TasksMax": KnownSetting(
        "processes and threads of the unit together; matters if fork fails with EAGAIN",
        integer(1).or_word(UNLIMITED),
        Impact.LIVE,
    ),
}
# sh. $unit is the unit.
_PROCESS = r"""
pid=$(systemctl show --value -p MainPID "$unit")
[ "${pid:-0}" != 0 ] || { echo "$unit does not run" >&2; exit 1; }
"""
# `enforced FILE HIERARCHY FILE...`: the content of the unit's file in version 2 of control groups, or of those in
# version 1; a control group without such a file enforces nothing. Version 1 writes infinity as -1 or as its last page.
_GROUP = r"""
group=$(systemctl show --value -p ControlGroup "$unit")
[ "$group" ] || { echo "$unit does not run" >&2; exit 1; }
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
    # Version 1 has shares, 1024 for a weight of 100; listed twice, they differ from the weight of version 2.
    "CPUWeight": f"{_GROUP}enforced cpu.weight cpu cpu.shares cpu.shares |"
    " awk 'NF > 1 { $1 = int($1 * 100 / 1024 + 0.5) } { print NF ? $1 : 100 }'",
    "MemoryMax": f"{_GROUP}enforced memory.max memory memory.limit_in_bytes | unlimited '{{ print $1 }}'",
    "MemoryHigh": f"{_GROUP}enforced memory.high memory memory.high | unlimited '{{ print $1 }}'",
    "TasksMax": f"{_GROUP}enforced pids.max pids pids.max | unlimited '{{ print $1 }}'",
}


# $1 in $pid's environment or, as an option, on its command line; the last one counts.
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
    """The settings of its program, then those of the unit of a server's first process; nothing without a unit here.
    `files` are the EnvironmentFile of each variable that one sets."""
    file = f"{_PLACE}{master.unit}.d/90-cockpit.conf"
    if not master.unit or master.origin == "container" or not is_drop_in(file):
        return
    unit = shlex.quote(master.unit)
    # A unit that failed too often is not started again before its failures are forgotten.
    restart = f"systemctl daemon-reload; systemctl reset-failed {unit}; systemctl restart {unit}"
    for one in program:
        if found := _of_program(one, master, file, files):
            get = f"unit={unit}{_PROCESS}{found.get}"
            yield found._replace(name=one.name, get=get, reload=restart, usual=one.usual)
    for name, setting in SETTINGS.items():
        yield CandidateKnob(
            name,
            KIND,
            file,
            directive=name,
            get=f"unit={unit}{_GETTERS[name]}",
            reload=restart if setting.impact is Impact.RESTART else "systemctl daemon-reload",
        )


def _of_program(one: StartSetting, master: Process, file: str, files: Mapping[str, str]) -> CandidateKnob | None:
    """The place of a setting of a program, with commands that print its active value; None if it can only be changed by
    hand. An EnvironmentFile wins over the Environment of a drop-in."""
    if option := one.given(master.command):
        get = f"{_OPTION}value {shlex.quote(option)} | grep ."
        return CandidateKnob(one.name, KIND, f"{_PLACE}{master.unit}", directive=option, get=get)
    names = [name for name in (one.variable, one.fallback) if name]
    if name := next((name for name in names if name in files), ""):
        return CandidateKnob(one.name, "keyvalue", files[name], key=name, get=f"{_VARIABLE}value {name} | grep .")
    if not one.variable:
        return None
    values = " ".join(f"value {name} | grep . ||" for name in names)
    get = f"{_VARIABLE}{values} echo {shlex.quote(one.default)}"
    return CandidateKnob(one.name, KIND, file, directive=one.variable, get=get)


GRAMMAR = UnitGrammar()
