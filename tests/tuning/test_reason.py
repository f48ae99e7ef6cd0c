"""The line of a failed command's output that is shown."""

from __future__ import annotations

import pytest

from cockpit.tuning.effect import failure_line
from cockpit.tuning.reason import last_part, useful_line

APACHE = b"""\
AH00558: apache2: Could not reliably determine the server's fully qualified domain name, using 10.0.0.1. Set the \
'ServerName' directive globally to suppress this message
AH00526: Syntax error on line 12 of /etc/apache2/mods-enabled/mpm_prefork.conf:
MaxSpareServers takes one argument, Maximum number of idle children
Action '-t' failed.
The Apache error log may have more information.
"""


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


@pytest.mark.parametrize(
    ("complaint", "reason"),
    [
        ("cp: cannot create regular file '/etc/x': Read-only file system", "Read-only file system"),
        ("it is not a regular file", "it is not a regular file"),
        ("", ""),
    ],
)
def test_last_part_of_complaint(complaint: str, reason: str) -> None:
    assert last_part(complaint) == reason


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
