"""Ctrl-C while cockpit starts."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["argparse", "cockpit.model.text", "cockpit.cli.arguments", "cockpit.cli.check"])
def test_ctrl_c_during_the_imports_is_silent(module: str) -> None:
    """Python prints the name of each imported module."""
    command = (sys.executable, "-X", "importtime", "-m", "cockpit", "check", "--help")
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.rstrip().endswith(f" {module}"):
                process.send_signal(signal.SIGINT)
                break
        rest = process.stderr.read()
    assert process.returncode in (-signal.SIGINT, 130, 0)
    assert "Traceback" not in rest and "KeyboardInterrupt" not in rest
