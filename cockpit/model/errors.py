"""What a user can cause, as exceptions that carry an exit code. Each message is one line.

CockpitError
├── UsageError (2)            a flag, an expression or a value that makes no sense
│   ├── ProfileError          a profile that does not read
│   │   └── NoProfile         one that is not there
│   └── RecordingError        a recording that cannot be written or read
├── OutOfReach (3)            target or host cannot be talked to
│   ├── TargetError           the load's target
│   └── HostError             a watched server
│       ├── HostKeyUnknown    its key is in no known_hosts file
│       ├── HostKeyChanged    its key differs from the known one
│       └── AuthRefused       it refused every key offered
│           └── Unanswered    it may let somebody in who gives a passphrase or password
├── ChangeUndone (5)          a change that was put back; the reason is in the message
└── ChangeRefused (5)         a change that was not begun
"""


class CockpitError(Exception):
    """One line that names the thing and the way out; `exit_code` is what the process ends with."""

    exit_code = 1


class UsageError(CockpitError):
    exit_code = 2


class ProfileError(UsageError):
    pass


class NoProfile(ProfileError):
    pass


class RecordingError(UsageError):
    pass


class OutOfReach(CockpitError):
    exit_code = 3


class TargetError(OutOfReach):
    pass


class HostError(OutOfReach):
    pass


class HostKeyUnknown(HostError):
    pass


class HostKeyChanged(HostError):
    pass


class AuthRefused(HostError):
    pass


class Unanswered(AuthRefused):
    pass


class ChangeUndone(CockpitError):
    exit_code = 5


class ChangeRefused(CockpitError):
    exit_code = 5


# Exit codes that are results, not errors.
EXIT_GOOD = 0
EXIT_BUG = 1
EXIT_USAGE = 2
EXIT_UNSTEADY = 4
EXIT_THRESHOLD = 99
EXIT_INTERRUPTED = 130
