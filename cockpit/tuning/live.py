"""Knobs that commands read and set. Every kind has two shell commands: one prints the value, one takes it as "$1".

A value never becomes part of a command's text.
"""

from __future__ import annotations

import posixpath
import re
import shlex

from cockpit.model.errors import ChangeRefused
from cockpit.model.knobs import Knob
from cockpit.model.text import neutral

_SYSCTL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]*")

# $point is the mount point. Sets $flags to the mount's own options without those of the access time, and $atime to the
# active one of these; the last mount on the point counts. mountinfo writes a space as \040.
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
[ "$found" ] || { echo "$point: nothing is mounted there" >&2; exit 1; }
"""

# mount(8) adds the mount's current options, so the other two have to be removed. `bind` alters the mount alone: without
# it, the `ro` of a read-only bind mount would make the whole file system read-only.
_REMOUNT = """
case $1 in
    noatime) atime=norelatime,noatime ;;
    relatime) atime=atime,relatime ;;
    *) atime=atime,norelatime,strictatime ;;
esac
mount -o "remount,bind,$flags$atime" -- "$point"
"""
_TRY = 'try() { if sh -c "$1" >/dev/null 2>&1 </dev/null; then printf "%s\\n" "$2"; exit; fi; }'


def getter(knob: Knob) -> str:
    """The command that prints the knob's value. Raises ChangeRefused for an impossible name in the profile."""
    if knob.kind == "sysctl":
        return f"tr -s '[:space:]' ' ' <{shlex.quote(_sysctl_file(knob))}"
    if knob.kind == "mount":
        return f"point={shlex.quote(_point(knob))}\n{_MOUNT}\nprintf '%s\\n' \"$atime\""
    if knob.kind == "choice" and not knob.get:
        tries = [f"try {shlex.quote(option.when)} {shlex.quote(option.name)}" for option in knob.option]
        return "\n".join((_TRY, *tries, "echo 'none of its options is chosen' >&2; exit 1"))
    return knob.get


def setter(knob: Knob, value: str) -> str:
    """The command that sets the knob to "$1"."""
    if knob.kind == "sysctl":
        return f"printf '%s\\n' \"$1\" >{shlex.quote(_sysctl_file(knob))}"
    if knob.kind == "mount":
        return f"point={shlex.quote(_point(knob))}\n{_MOUNT}\n{_REMOUNT}"
    if knob.kind == "choice":
        return next(option.set for option in knob.option if option.name == value)
    return knob.set


def plain(value: str) -> str:
    """A value for comparison: stripped, with single spaces."""
    return " ".join(value.split())


def place(knob: Knob) -> str:
    """Identifies the value on its host, independent of the knob's name."""
    if knob.kind == "sysctl":
        return _sysctl_file(knob)
    return f"mount\t{_point(knob)}" if knob.kind == "mount" else f"{knob.kind}\t{getter(knob)}"


def check(knob: Knob, value: str) -> None:
    """Raises ChangeRefused for a value that the knob does not allow."""
    if why := knob.refuses(value):
        raise ChangeRefused(f"{knob.name}: {knob.shown(value, 80)!r} {why}")
    if not value or value != plain(value) or neutral(value) != value:
        shown = knob.shown(value, 80)
        raise ChangeRefused(f"{knob.name}: {shown!r}: a value is one line of text, not empty, with single spaces")


def _sysctl_file(knob: Knob) -> str:
    """The file of `net.ipv4.tcp_rmem`, or of a key with slashes (for names with a dot), as in sysctl(8)."""
    if not _SYSCTL.fullmatch(knob.key) or ".." in knob.key:
        raise ChangeRefused(f"{knob.name}: {neutral(knob.key, 80)!r} cannot be the name of a sysctl")
    return "/proc/sys/" + (knob.key if "/" in knob.key else knob.key.replace(".", "/"))


def _point(knob: Knob) -> str:
    if not knob.mount.startswith("/") or neutral(knob.mount) != knob.mount:
        raise ChangeRefused(f"{knob.name}: {neutral(knob.mount, 80)!r}: write a mount point as an absolute path")
    return posixpath.normpath(knob.mount)
