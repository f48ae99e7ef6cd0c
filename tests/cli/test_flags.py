"""Flags and arguments parse in any order."""

from __future__ import annotations

from itertools import permutations

import pytest

from cockpit.cli.arguments import make_parser

# Command lines as groups of arguments that stay together.
LINES = [
    ("tune P set", ("--dry-run",), ("K=V",), ("--json",), ("L=-1",)),
    ("run", ("http://h/",), ("-c", "5"), ("-n", "10"), ("-H", "A: 1")),
    ("check", ("P",), ("--threshold", "p99 < 1s"), ("-z", "5s")),
    ("autopilot", ("P",), ("--where", "p99 < 1s"), ("--knob", "A=1..5"), ("--no-restart",)),
    ("study", ("P",), ("--short",), ("-o", "out")),
    ("compare", ("a",), ("--json",), ("b",)),
    ("baseline set", ("x",), ("--runs", "2"), ("y",)),
    ("doctor", ("P",), ("--json",), ("--no-exec",)),
    ("replay", ("f.cockpit",), ("--at", "5s"), ("--paused",)),
    ("export", ("f.cockpit",), ("--format", "csv"), ("-o", "x")),
    ("ab", ("http://h/",), ("-n", "5"), ("-c", "2"), ("-k",)),
]


@pytest.mark.parametrize("line", LINES, ids=[line[0] for line in LINES])
def test_flags_and_arguments_in_any_order(line: tuple[str | tuple[str, ...], ...]) -> None:
    command, *pieces = line
    names = [piece for piece in pieces if not piece[0].startswith("-")]
    seen = set()
    for order in permutations(pieces):
        if [piece for piece in order if piece in names] != names:
            continue
        arguments = [*str(command).split(), *(word for piece in order for word in piece)]
        options = vars(make_parser().parse_args(arguments))
        options.pop("command")
        seen.add(str(sorted(options.items())))
    assert len(seen) == 1
    for name in (word for piece in names for word in piece):
        assert name in next(iter(seen))
