"""`cockpit tune` as a user runs it: flags in any position, the history, undo by a change's name, what is active."""

from __future__ import annotations

import pytest

from cockpit.cli.arguments import make_parser


@pytest.mark.parametrize(
    "words",
    [
        "tune P set A=1 B=2 --dry-run --confirm-within 60s",
        "tune P set --dry-run A=1 --confirm-within 60s B=2",
        "tune --dry-run P --confirm-within 60s set A=1 B=2",
        "tune P --dry-run --confirm-within 60s set A=1 B=2",
        "tune P set --confirm-within=60s --dry-run A=1 B=2",
        "tune P set A=1 --confirm-within 60s B=2 --dry-run",
    ],
)
def test_flags_may_stand_in_any_position(words: str) -> None:
    options = make_parser().parse_args(words.split())
    assert (options.profile, options.action, options.names) == ("P", "set", ["A=1", "B=2"])
    assert (options.dry_run, options.confirm_within) == (True, 60.0)


@pytest.mark.parametrize("words", ["tune P set --dry-urn A=1", "tune P set --dry-run A=1 -x"])
def test_an_unknown_flag_is_refused_in_one_line(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        make_parser().parse_args(words.split())
    said = capsys.readouterr().err
    assert ended.value.code == 2 and "unrecognized arguments: -" in said and "tune --help" in said
