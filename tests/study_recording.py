"""`python -m tests.study_recording`: record the study whose result `make screenshots` shows.

It takes about four minutes on the demo's server. The machine should be idle: other load affects the recorded metrics.
"""

import asyncio
import re
import sys
import tempfile
from pathlib import Path

from cockpit.demo.servers import DemoServers
from cockpit.model.events import AnyEvent, decode, encode
from cockpit.recording.reader import Recording
from tests.bench.crowded import recorded
from tests.data import data_of

DATA = data_of(__file__)

TARGET = Path(__file__).parent / "recordings" / "study" / "1.cockpit"
STUDY = DATA["study"]


async def main() -> int:
    """Run the study, and save its recording without paths of this machine."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with DemoServers() as world:
            (folder / "demo.toml").write_text(world.profile_toml() + STUDY)
            process = await asyncio.create_subprocess_exec(
                *(
                    sys.executable,
                    "-m",
                    "cockpit",
                    "study",
                    "--trust",
                    str(folder / "demo.toml"),
                    "--short",
                    "--no-tui",
                ),
                *("--ssh-config", str(world.ssh_config), "-o", str(folder / "out")),
            )
            code = await process.wait()
            paths = {str(world.directory): "/run/demo", sys.executable: "python3"}
        if code not in (0, 4):
            return code
        with Recording(folder / "out" / "1.cockpit") as recording:
            events = [_anonymized(event, paths) for event in recording.events()]
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.unlink(missing_ok=True)
    recorded(TARGET, events)
    return 0


def _anonymized(event: AnyEvent, paths: dict[str, str]) -> AnyEvent:
    text = encode(event).decode()
    for path, name in paths.items():
        text = text.replace(path, name)
    return decode(re.sub(r"/tmp/[\w/.-]+", "/run/demo", text))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
