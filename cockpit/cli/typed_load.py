"""Load typed on the screen with the flags of `cockpit run`: after a URL, or from the load form."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Sequence
from functools import cache
from typing import NoReturn

from cockpit.cli.load_arguments import LOAD
from cockpit.cli.load_plan import errors_name_flags, with_flags
from cockpit.cli.parser import CommandParser
from cockpit.model.errors import UsageError
from cockpit.model.load.checks import check_plan
from cockpit.model.load.plan import LoadPlan
from cockpit.profiles.plan import make_plan
from cockpit.profiles.profile import Profile
from cockpit.profiles.sections import LoadSection, TargetSection

# Start of argparse's errors about a flag: `argument -c/--connections: …`.
_ABOUT_A_FLAG = "argument -"


class _ScreenParser(CommandParser):
    """A parser that raises UsageError instead of ending the process."""

    def _refuse(self, message: str, prog: str) -> NoReturn:
        about, _, reason = message.partition(": ")
        if not reason or not about.startswith(_ABOUT_A_FLAG):
            raise UsageError(message)
        raise UsageError(reason, subject=about.split()[1].split("/")[0])


def profile_of(text: str) -> Profile:
    """Return the profile of `URL -c 20 -z 60s`. Raises UsageError."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(str(error).lower()) from None
    options = _parser(with_url=True).parse_args(words)
    with errors_name_flags():
        plan = make_plan(TargetSection(url=options.target), LoadSection())
    return Profile.of_url(_apply_flags(plan, options))


def plan_with(plan: LoadPlan, flags: Sequence[str]) -> LoadPlan:
    """Return the plan with these flags applied. Raises UsageError; its subject is the flag."""
    return _apply_flags(plan, _parser(with_url=False).parse_args(list(flags)))


@cache
def _parser(*, with_url: bool) -> _ScreenParser:
    parser = _ScreenParser(prog="cockpit run", add_help=False)
    parser.set_defaults(subcommand="")
    if with_url:
        parser.add_argument("target", metavar="URL")
    parser.add_table(LOAD)
    return parser


def _apply_flags(plan: LoadPlan, options: Namespace) -> LoadPlan:
    with errors_name_flags():
        changed = with_flags(plan, options)
        check_plan(changed)
        return changed
