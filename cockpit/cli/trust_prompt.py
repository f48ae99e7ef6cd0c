"""Confirmation before an untrusted profile runs a command or contacts a host."""

from __future__ import annotations

import shlex
import sys

from cockpit.cli.terminal import can_ask, confirmed
from cockpit.model.errors import UsageError
from cockpit.profiles.profile import Profile
from cockpit.profiles.trust import accept, is_trusted
from cockpit.profiles.uses import listing, owners, summary, uses_of


class NotTrusted(UsageError):
    """The user did not accept the profile."""


def require_trust(profile: Profile, given: str, *, accepted: bool) -> None:
    """Make sure that the profile is trusted: already, by --trust (`accepted`), or by an answer on the terminal.

    `given`: the profile as written on the command line. Raises NotTrusted.
    """
    if is_trusted(profile):
        return
    if not accepted:
        _ask(profile, given)
    accept(profile)


def _ask(profile: Profile, given: str) -> None:
    """List the commands, hosts and files of the profile, and ask. Raises NotTrusted for no, and without a terminal."""
    uses = uses_of(profile)
    if not can_ask():
        raise NotTrusted(
            f"{given}: not trusted yet, uses {summary(uses)}; list them: {doctor_command(given)}; accept "
            f"them: {doctor_command(given, '--trust')}"
        )
    print(
        "\n".join((f"{given} is not trusted yet, or was edited. It uses on", *listing(uses), *owners(profile))),
        file=sys.stderr,
    )
    if not confirmed(f"Trust it ({summary(uses)})?"):
        raise NotTrusted(f"{given}: not trusted; nothing was run and no host was contacted")


def doctor_command(given: str, *flags: str) -> str:
    """Return the command that lists a profile's commands, hosts and files without using them; --trust accepts them."""
    return shlex.join(("cockpit", "doctor", "--no-exec", *flags, given))
