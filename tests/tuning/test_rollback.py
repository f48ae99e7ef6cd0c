"""The outcome of a rollback, as a host reports it: every report ends in one line for a person."""

from __future__ import annotations

import pytest

from cockpit.hosts.shell import SH, Completed
from cockpit.model.errors import ChangeRolledBack
from cockpit.tuning.applied import ChangeFailed
from cockpit.tuning.change_options import ChangeOptions, Failure
from cockpit.tuning.plan import Plan
from cockpit.tuning.rollback import undo
from cockpit.tuning.tuner import Tuner
from tests.tuning.conftest import ORIGINAL, FaultyShell, Server

PLAN = Plan("web1", (), (), (), (), ())


class Reporting:
    """A host that answers each command with the next of these outputs."""

    def __init__(self, *outputs: bytes) -> None:
        self._outputs = iter(outputs)

    async def run(self, program: str, *, input: bytes = b"", timeout: float = 30, interpreter: str = SH) -> Completed:  # noqa: ASYNC109
        return Completed(0, next(self._outputs), b"")


async def ending(*outputs: bytes) -> BaseException:
    found = await undo(Reporting(*outputs), PLAN, "/c", ChangeOptions(), Failure("no new workers came"))
    assert isinstance(found, BaseException)
    return found


@pytest.mark.parametrize("number", ["0", "7", "999999999", "-1", "x"])
@pytest.mark.parametrize("word", ["reload", "test"])
async def test_a_failed_command_that_the_change_does_not_have_is_reported(word: str, number: str) -> None:
    found = await ending(f"{word} {number} 1 boom\nend\n".encode())
    assert f"the {word} fails with" in str(found) and "rolled back" in str(found)


async def test_a_confirmed_change_without_a_readable_record_is_reported() -> None:
    found = await ending(b"confirmed\n", b'/c/applied\0{"host":"we')
    assert isinstance(found, ChangeFailed)
    assert "it was confirmed, but /c/applied cannot be read" in str(found)


class Truncating(FaultyShell):
    """This machine's shell, whose connection is lost while the record of a change is sent."""

    async def run(self, program: str, *, input: bytes = b"", timeout: float = 30, interpreter: str = SH) -> Completed:  # noqa: ASYNC109
        sent = input[:20] if "ln -s confirmed" in program else input
        return await super().run(program, input=sent, timeout=timeout, interpreter=interpreter)


async def test_a_change_is_not_confirmed_by_a_truncated_record(server: Server) -> None:
    """Without its record, nobody could undo it."""
    shell = Truncating()
    with pytest.raises(ChangeRolledBack, match="its record arrived incomplete"):
        await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    await shell.close()
    assert server.bytes() == ORIGINAL


class Killing(FaultyShell):
    """This machine's shell, whose commit is killed right after it replaced the file."""

    async def run(self, program: str, *, input: bytes = b"", timeout: float = 30, interpreter: str = SH) -> Completed:  # noqa: ASYNC109
        done = await super().run(program, input=input, timeout=timeout, interpreter=interpreter)
        return Completed(-9, b"", b"") if "\nswap 0 " in program and "claim" not in program else done


async def test_a_file_that_a_killed_commit_replaced_is_rolled_back(server: Server) -> None:
    shell = Killing()
    with pytest.raises(ChangeRolledBack, match="rolled back"):
        await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    await shell.close()
    assert server.bytes() == ORIGINAL
