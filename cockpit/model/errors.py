"""Errors that a user can cause, as exceptions with an exit code. Each message is one line.

CockpitError
├── UsageError (2)            an invalid flag, expression or value
│   ├── ExtraRequired         a package of an extra that is not installed
│   ├── ProfileError          an invalid profile
│   │   └── UnknownProfile    an unknown profile
│   └── RecordingError        a recording that cannot be written or read
├── UnreachableError (3)      target or host unreachable
│   ├── TargetError           the load's target
│   └── HostError             a host or generator
│       ├── NotInstalled      no cockpit on a generator, or another version
│       ├── HostKeyUnknown    host key not in known_hosts
│       ├── HostKeyChanged    host key differs from known_hosts
│       └── AuthRefused       all keys refused
│           └── CredentialsRequired  a passphrase or password may be accepted
├── ChangeRolledBack (5)      a change that was rolled back, with the reason
└── ChangeRefused (5)         a change that was not started
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class CockpitError(Exception):
    """A one-line error: `subject: problem`, or the problem alone. `exit_code`: exit code of the process."""

    exit_code = 1

    def __init__(self, problem: str = "", subject: str = "") -> None:
        super().__init__(problem, subject)

    @property
    def subject(self) -> str:
        """The host, file or knob that the problem is about; "" if the problem names it."""
        return str(self.args[1])

    @property
    def problem(self) -> str:
        """The message without the subject, for places that show the subject themselves."""
        return str(self.args[0])

    @property
    def is_loss(self) -> bool:
        """Whether it is the loss of a host, or was caused by one."""
        cause = self.__cause__
        return isinstance(self, HostError) or (isinstance(cause, CockpitError) and cause.is_loss)

    def __str__(self) -> str:
        problem, subject = self.args
        return f"{subject}: {problem}" if subject else str(problem)


class UsageError(CockpitError):
    exit_code = 2


@contextmanager
def naming(path: Path, verb: str, kind: type[UsageError] = UsageError) -> Iterator[None]:
    """Raise an OSError of the block as `kind`, with the path: `PATH: cannot be read: No such file or directory`."""
    try:
        yield
    except OSError as error:
        raise kind(f"{path}: cannot {verb}: {error.strerror}") from None


class ExtraRequired(UsageError):
    """A feature needs an extra of the installation."""

    def __init__(self, subject: str, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; install the extra {extra!r}: see cockpit help install", subject)


class ProfileError(UsageError):
    pass


class UnknownProfile(ProfileError):
    pass


class RecordingError(UsageError):
    pass


class UnreachableError(CockpitError):
    exit_code = 3


class TargetError(UnreachableError):
    pass


class HostError(UnreachableError):
    pass


class NotInstalled(HostError):
    """Cockpit is missing on a generator, or its version differs."""


class HostKeyUnknown(HostError):
    pass


class HostKeyChanged(HostError):
    pass


class AuthRefused(HostError):
    pass


class CredentialsRequired(AuthRefused):
    pass


class ChangeRolledBack(CockpitError):
    exit_code = 5


class ChangeRefused(CockpitError):
    exit_code = 5


# Exit codes that are results, not errors.
EXIT_GOOD = 0
EXIT_BUG = 1
EXIT_USAGE = 2
EXIT_ALL_FAILED = 3
EXIT_UNSTABLE = 4
EXIT_THRESHOLD = 99
EXIT_INTERRUPTED = 130
