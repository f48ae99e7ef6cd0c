"""Kinds of knobs whose value is read and set by commands, not in a file. Checks of profiles, commands, questions to the
user, help and JSON Schema are derived from the entry of a kind.

A value is never inserted into the text of a command.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from cockpit.model.errors import ChangeRefused
from cockpit.model.text import sanitize
from cockpit.servers import kernel
from cockpit.servers.settings import KnownSetting

if TYPE_CHECKING:
    from cockpit.model.knobs import Knob

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
