"""How failures and rollbacks are reported: in one line for a person."""

import json

import pytest

from cockpit.hosts.shell import SH, Completed
from cockpit.model.errors import ChangeRolledBack
from cockpit.tuning import tuner
from cockpit.tuning.applied import ChangeFailed
from cockpit.tuning.change_options import ChangeOptions, Failure
from cockpit.tuning.effect import failure_line
from cockpit.tuning.pending import TIMEOUTS, PendingChange
from cockpit.tuning.plan import Plan
from cockpit.tuning.reason import last_part, useful_line
from cockpit.tuning.rollback import undo
from cockpit.tuning.tuner import Tuner
from tests.data import data_of
from tests.tuning.conftest import ORIGINAL, FaultyShell, Server

DATA = data_of(__file__)

APACHE = DATA["apache"].encode()


@pytest.mark.parametrize(
    ("stderr", "stdout", "line"),
    [
        (
            APACHE,
            b"",
            "AH00526: Syntax error on line 12 of /etc/apache2/mods-enabled/mpm_prefork.conf: "
            "MaxSpareServers takes one argument, Maximum number of idle children",
        ),
        (b"nginx: [warn] old\nnginx: [emerg] no such thing in /a:1\n", b"", "nginx: [emerg] no such thing in /a:1"),
        (b"reading ...\nsh: 1: foo: not found\n", b"", "sh: 1: foo: not found"),
        (b"reading ...\ndone\n", b"", "reading ..."),
        (b"\n \n", b"error: on stdout\n", "error: on stdout"),
        (b"warning: only this", b"", "warning: only this"),
        (b"Error:\n", b"", "Error:"),
        (b"", b"Restarting: apache2 failed!\nPort 80 is taken.\n", "Restarting: apache2 failed! Port 80 is taken."),
        (b"error \x1b[31mred\r\n", b"", "error ·[31mred"),
        (b"", b"", ""),
        (b"error " + b"x" * 1000, b"", "error " + "x" * 393 + "…"),
    ],
)  # fmt: skip
def test_useful_line_of_command_output(stderr: bytes, stdout: bytes, line: str) -> None:
    assert useful_line(stderr, stdout) == line


def test_last_part_of_complaint() -> None:
    assert last_part("cp: cannot create regular file '/etc/x': Read-only file system") == "Read-only file system"
    assert last_part("it is not a regular file") == "it is not a regular file" and last_part("") == ""


_APACHE = "[Mon Nov 23 11:41:48.636126 2026] [{}:alert] [pid 26178:tid 26178] {}\n"


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        # A user ID without a name: the server still starts.
        (_APACHE.format("unixd", "AH02155: getpwuid: couldn't determine user name from uid 4294967295"), ""),
        (_APACHE.format("core", "AH00050: Child 7 returned a Fatal error"), "AH00050: Child 7 returned a Fatal error"),
        (
            _APACHE.format("unixd", "AH02155: getpwuid: x") + _APACHE.format("unixd", "AH02162: setuid: y"),
            "AH02162: setuid: y",
        ),
        ("2026/11/23 11:00:00 [emerg] 7#7: bind() failed\n", "bind() failed"),
    ],
)
def test_fatal_startup_error_is_found_in_log(log: str, reason: str) -> None:
    assert failure_line(log) == reason


PLAN = Plan("web1", (), (), (), (), ())


class Reporting:
    """A host that answers each command with the next of these outputs."""

    def __init__(self, *outputs: bytes) -> None:
        self._outputs = iter(outputs)

    async def run(self, program: str, *, input: bytes = b"", timeout: float = 30, interpreter: str = SH) -> Completed:  # noqa: ASYNC109
        return Completed(0, next(self._outputs), b"")


async def ending(*outputs: bytes) -> BaseException:
    found = await undo(
        PLAN, PendingChange(Reporting(*outputs), "/c", TIMEOUTS), ChangeOptions(), Failure("no new workers came")
    )
    assert isinstance(found, BaseException)
    return found


def test_an_entry_of_the_history_with_an_impossible_time_is_left_out() -> None:
    facts = {"who": "x", "when": 1e300, "settings": [], "places": []}
    lines = [f"/c\tapplied\t\t{json.dumps(facts | {'when': when})}" for when in (1.0, 1e300)]
    first, second = map(tuner._past, lines)
    assert first is not None and second is None


@pytest.mark.parametrize("number", ["0", "7", "999999999", "-1", "x"])
@pytest.mark.parametrize("word", ["reload", "test"])
async def test_a_failed_command_that_the_change_does_not_have_is_reported(word: str, number: str) -> None:
    found = await ending(f"{word} {number} 1 boom\nend\n".encode())
    assert f"the {word} fails with" in str(found) and "rolled back" in str(found)


async def test_a_confirmed_change_without_a_readable_record_is_reported() -> None:
    found = await ending(b"confirmed\n", b'/c/applied\0{"host":"we')
    assert isinstance(found, ChangeFailed)
    assert "it was confirmed, but /c/applied cannot be read" in str(found)


async def test_a_change_is_not_confirmed_by_a_truncated_record(server: Server, shell: FaultyShell) -> None:
    """Without its record, which a lost connection truncates, nobody could undo it."""
    shell.sent = lambda program, input: input[:20] if "ln -s confirmed" in program else input
    with pytest.raises(ChangeRolledBack, match="its record arrived incomplete"):
        await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    assert server.bytes() == ORIGINAL


async def test_a_file_that_a_killed_commit_replaced_is_rolled_back(server: Server, shell: FaultyShell) -> None:
    killed = Completed(-9, b"", b"")
    shell.received = lambda program, done: killed if "\nswap 0 " in program and "claim" not in program else done
    with pytest.raises(ChangeRolledBack, match="rolled back"):
        await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    assert server.bytes() == ORIGINAL
