"""`python -m tests.failure_recording`: record a run whose server is stopped, answers 503 and is killed.

The pictures of failures in `screenshots/` show this recording. It takes 42 s; the machine should be idle.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

TARGET = Path(__file__).parent / "recordings" / "failures.cockpit"
# Duration (s) of the run, and signals to the server with their times (s).
SECONDS = 40
SIGNALS = ((12, signal.SIGSTOP), (17, signal.SIGCONT), (26, signal.SIGUSR1), (34, signal.SIGKILL))

# Responds with 200 after 2 ms, and with 503 after SIGUSR1.
SERVER = """
import asyncio, signal

async def main():
    lines = [b"HTTP/1.1 200 OK"]
    asyncio.get_running_loop().add_signal_handler(
        signal.SIGUSR1, lambda: lines.__setitem__(0, b"HTTP/1.1 503 Service Unavailable")
    )

    async def serve(reader, writer):
        try:
            while True:
                await reader.readuntil(b"\\r\\n\\r\\n")
                await asyncio.sleep(0.002)
                writer.write(lines[0] + b"\\r\\nContent-Length: 2\\r\\n\\r\\nok")
        except (EOFError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


async def main() -> int:
    TARGET.unlink(missing_ok=True)
    server = await asyncio.create_subprocess_exec(sys.executable, "-c", SERVER, stdout=PIPE)
    assert server.stdout is not None
    try:
        url = f"http://127.0.0.1:{int(await server.stdout.readline())}/"
        flags = ("-c", "10", "-z", f"{SECONDS}s", "--no-tui", "--record", str(TARGET))
        load = await asyncio.create_subprocess_exec(sys.executable, "-m", "cockpit", "run", url, *flags)
        begun = asyncio.get_running_loop().time()
        for at, number in SIGNALS:
            await asyncio.sleep(begun + at - asyncio.get_running_loop().time())
            server.send_signal(number)
        return await load.wait()
    finally:
        if server.returncode is None:
            server.kill()
        await server.wait()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
