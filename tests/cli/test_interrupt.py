"""Ctrl-C while cockpit starts."""

import asyncio
import signal
import subprocess
import sys

import pytest

from cockpit.cli.tune_output import await_change


@pytest.mark.parametrize("module", ["argparse", "cockpit.model.text", "cockpit.cli.arguments", "cockpit.cli"])
def test_ctrl_c_during_the_imports_is_silent(module: str) -> None:
    """Python prints the name of each imported module; after the last one the command begins."""
    command = (sys.executable, "-X", "importtime", "-m", "cockpit", "check", "--help")
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.rstrip().endswith(f" {module}"):
                process.send_signal(signal.SIGINT)
                break
        else:
            pytest.fail(f"{module} is not imported")
        rest = process.stderr.read()
    assert process.returncode in (-signal.SIGINT, 130, 0)
    assert "Traceback" not in rest and "KeyboardInterrupt" not in rest


async def test_rollback_of_an_interrupted_change_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    task = asyncio.create_task(await_change(asyncio.Event().wait()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert capsys.readouterr().err == "cockpit: interrupted; the change under way was rolled back\n"
    earlier = asyncio.get_running_loop().create_future()
    earlier.cancel("interrupted; the new values stay on web1")
    with pytest.raises(asyncio.CancelledError):
        await await_change(earlier)
    assert capsys.readouterr().err.startswith("cockpit: interrupted; the new values stay on web1; the change under way")
