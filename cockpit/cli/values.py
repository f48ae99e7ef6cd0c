"""Parsers for flag values; argparse prints their errors."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from cockpit.model.load.plan import FASTEST
from cockpit.model.stacks import DEFAULT_HZ, MAX_HZ
from cockpit.model.units import parse_count, parse_duration, parse_ramp, parse_rate, parse_share

_HOST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def _positive_value(parse: Callable[[str], Any], text: str) -> Any:
    try:
        value = parse(text.removeprefix("-"))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if value <= 0 or text.startswith("-"):
        raise argparse.ArgumentTypeError(f"{text!r}: must be greater than 0")
    return value


def positive(text: str) -> int:
    return int(_positive_value(parse_count, text))


def connections(text: str) -> tuple[int, float | None]:
    return parse_ramp(text, partial(_positive_value, parse_count))


def count(text: str) -> int:
    if text.isdecimal():
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number, 0 or more")


def port(text: str) -> int:
    if text.isdecimal() and int(text) < 65536:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r}: invalid port; write 1 to 65535, or 0 for any free port")


def rate(text: str) -> tuple[float, float | None]:
    return parse_ramp(text, partial(_positive_value, parse_rate))


class Sampling(NamedTuple):
    """Samples/s of a CPU profile, and how perf finds callers; None: as in the profile."""

    hz: int
    call_graph: Literal["fp", "dwarf"] | None = None


def sampling(text: str) -> Sampling:
    hz, _, graph = (f"{DEFAULT_HZ},{text}" if text == "dwarf" else text).partition(",")
    if hz.isdecimal() and 1 <= int(hz) <= MAX_HZ and graph in ("", "dwarf"):
        return Sampling(int(hz), "dwarf" if graph else None)
    raise argparse.ArgumentTypeError(f"{text!r}: write samples/s from 1 to {MAX_HZ}, dwarf, or both: 49,dwarf")


def factor(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if 0 < value <= FASTEST:
        return value
    raise argparse.ArgumentTypeError(f"{text!r}: write a number above 0, e.g. 2 or 0.5")


def seconds(text: str) -> float:
    return float(_positive_value(parse_duration, text))


def wait(text: str) -> float:
    return 0.0 if text == "0" else seconds(text)


def age(text: str) -> float:
    """Parse seconds, or days as in 30d."""
    days = text.removesuffix("d")
    return 86_400 * float(_positive_value(float, days)) if days != text else seconds(text)


def names(text: str) -> tuple[str, ...]:
    """Parse names separated by commas, each once."""
    distinct_names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not distinct_names:
        raise argparse.ArgumentTypeError(f"{text!r}: write names separated by commas, e.g. gen1,gen2")
    return distinct_names


def share(text: str) -> float:
    try:
        return parse_share(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def workers(text: str) -> int | str:
    return text if text == "auto" else positive(text)


def _numbers(text: str, example: str) -> tuple[int, ...]:
    try:
        return tuple(map(int, text.split(",")))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: write {example}") from None


def statuses(text: str) -> tuple[int, ...]:
    return _numbers(text, "statuses as 200 or 200,204")


def cpus(text: str) -> tuple[int, ...]:
    return _numbers(text, "CPU numbers as 1 or 1,2")


def recording(text: str) -> Path:
    """Return the path of a file, or of a recording in the library."""
    from cockpit.recording.library import find

    return find(text)


def day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: write a day as 2026-11-24") from None


def instant(text: str) -> float:
    """Return the seconds since the epoch of a time in ISO 8601; without an offset it is local time."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!r}: write a time as 2026-11-24T14:05") from None


def utc_offset(text: str) -> float:
    """Return the seconds of `+01:00`."""
    match = re.fullmatch(r"([+-])(\d\d):([0-5]\d)", text)
    if not match or int(match[2]) > 14:
        raise argparse.ArgumentTypeError(f"{text!r}: write it as +01:00")
    seconds = 3600.0 * int(match[2]) + 60 * int(match[3])
    return -seconds if match[1] == "-" else seconds


def named_file(text: str) -> tuple[str, Path]:
    name, _, file = text.partition("=")
    if not _HOST_NAME.fullmatch(name) or not file:
        raise argparse.ArgumentTypeError(
            f"{text!r}: write NAME=FILE, e.g. web1=sadf.json; NAME has letters, digits, - and _"
        )
    return name, Path(file)
