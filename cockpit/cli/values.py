"""Parsers for flag values; argparse prints their errors."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cockpit.model.units import parse_count, parse_duration, parse_rate


def _typed(parse: Callable[[str], Any], text: str) -> Any:
    try:
        value = parse(text.removeprefix("-"))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if value <= 0 or text.startswith("-"):
        raise argparse.ArgumentTypeError(f"{text!r}: must be more than 0")
    return value


def positive(text: str) -> int:
    return int(_typed(parse_count, text))


def count(text: str) -> int:
    if text.isdecimal():
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number, 0 or more")


def wait(text: str) -> float:
    """Seconds, or 0 for none."""
    return 0.0 if text == "0" else float(_typed(parse_duration, text))


def age(text: str) -> float:
    """Seconds; days as well."""
    days = text.removesuffix("d")
    return 86_400 * float(_typed(float, days)) if days != text else seconds(text)


def workers(text: str) -> int | str:
    return text if text == "auto" else positive(text)


def seed(text: str) -> int:
    try:
        if int(text) >= 0:
            return int(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number, 0 or more")


def rate(text: str) -> float:
    return float(_typed(parse_rate, text))


def statuses(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(status) for status in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: write statuses as 200 or 200,204") from None


def seconds(text: str) -> float:
    return float(_typed(parse_duration, text))


def cpus(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(cpu) for cpu in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: write CPU numbers as 1 or 1,2") from None


def recording(text: str) -> Path:
    """A file, or a recording in the library by its name."""
    from cockpit.recording.library import find

    return find(text)
