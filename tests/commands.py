"""`cockpit` commands in forks of a process that has imported everything.

Python with all imports takes 0.5 s of CPU time to start. A fork avoids that for hundreds of tests. Tests that send
signals or check the imports of a command start it as a user does.
"""

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from multiprocessing import forkserver
from pathlib import Path

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "asyncssh",
        "httpx",
        "cockpit.cli.live",
        "cockpit.cli.commands.check",
        "cockpit.cli.commands.tune",
        "cockpit.cli.commands.report",
        "cockpit.session.selectors",
        "cockpit.hosts.ssh.shell",
        "cockpit.load.pool",
        "cockpit.load.worker",
        "cockpit.tui.app",
        "cockpit.tui.start.screen",
        "tests.workers",
    ]
)


def share_fork_server() -> None:
    """Start the fork server, for this process and all that are forked from it: its imports take a second of CPU."""
    forkserver.ensure_running()
    # It waits for the server, which only the parent of the server can.
    forkserver._forkserver.ensure_running = lambda: None  # type: ignore[attr-defined]


def cockpit(
    *arguments: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    before: Callable[[], object] | None = None,
    timeout: float = 120.0,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end without input; `before` must be picklable and is called in its process first.

    Raises subprocess.TimeoutExpired.
    """
    command_line = [*map(str, arguments)]
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        process = FORKS.Process(
            target=_main,
            args=(command_line, cwd or Path.cwd(), dict(os.environ if env is None else env), out, err, before),
        )
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(command_line, timeout, out.read_bytes(), err.read_bytes())
        code = process.exitcode
        process.close()
        return subprocess.CompletedProcess(command_line, code, out.read_text(), err.read_text())


def _main(
    command_line: list[str], cwd: Path, env: dict[str, str], out: Path, err: Path, before: Callable[[], object] | None
) -> None:
    """Turn this process into the command: working directory, environment, output, and load workers that are forks."""
    from cockpit.cli import main
    from cockpit.load.workers import WorkerProcess
    from tests.workers import fork_worker_of_command

    WorkerProcess.spawn = fork_worker_of_command  # type: ignore[method-assign,assignment]
    for path, descriptor in ((out, 1), (err, 2)):
        with path.open("wb") as file:
            os.dup2(file.fileno(), descriptor)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["cockpit", *command_line]
    if before is not None:
        before()
    sys.exit(main())
