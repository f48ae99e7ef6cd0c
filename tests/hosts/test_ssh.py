"""SSH connections: host keys, logins, hostnames, jump hosts."""

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from cockpit.hosts.feed import check_host
from cockpit.hosts.shell import SILENCE
from cockpit.hosts.ssh.offer import HOST_KEY_KINDS, offered_host_keys, without_common
from cockpit.hosts.ssh.settings import Destination, read_settings
from cockpit.hosts.ssh.shell import SshShell, connect
from cockpit.model.errors import AuthRefused, CredentialsRequired, HostError, HostKeyChanged, HostKeyUnknown, UsageError
from cockpit.model.host.samples import HostConfig
from tests.hosts.connecting import WEB, echo_hello, new_key, refusal, ssh_keygen
from tests.hosts.sshd import Sshd, locked, public


async def test_check_connects_and_returns_facts(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}
    connecting = asyncssh.connect
    monkeypatch.setattr(asyncssh, "connect", lambda **options: given.update(options) or connecting(**options))
    facts = await check_host(HostConfig(name="web1", ssh="web", processes=("sh",)), sshd.ssh_config)
    assert facts.hostname == socket.gethostname()
    # A dead connection is closed after this time.
    assert given["keepalive_interval"] * (given["keepalive_count_max"] + 1) == SILENCE
    sshd.known_hosts.write_text("")
    with pytest.raises(HostKeyUnknown):
        await check_host(WEB, sshd.ssh_config)


async def test_unknown_host_key_is_refused(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    key, command = public(sshd.host_key), f"accept it with: ssh -F {sshd.ssh_config} -o StrictHostKeyChecking=ask"
    for entries in (
        "",
        f"# [127.0.0.1]:{sshd.port} {key}\n",
        f"[127.0.0.2]:{sshd.port} {key}\n",
        f"[127.0.0.1]:{sshd.port + 1} {key}\n",
        f"127.0.0.1 {public(new_key())}\n",
    ):
        sshd.known_hosts.write_text(entries)
        message = await refusal(sshd, HostKeyUnknown)
        assert sshd.host_key.get_fingerprint() in message and f"127.0.0.1:{sshd.port}" in message
        assert message.endswith(f"{command} web true")
    sshd.known_hosts.unlink()
    message = await refusal(sshd, HostKeyUnknown, HostConfig(name="web1", ssh=f"root@web:{sshd.port}"))
    assert message.endswith(f"{command} -p {sshd.port} root@web true")
    # No advice that cannot help: /dev/null keeps no key, and without OpenSSH's client there is no ssh to run.
    for file in ("/dev/null", "none"):
        sshd.write_config(UserKnownHostsFile=file)
        assert (await refusal(sshd, HostKeyUnknown)).endswith("names no file that can keep it; name one")
    sshd.write_config()
    monkeypatch.setattr("cockpit.hosts.ssh.config.PROGRAM", "/nowhere/ssh")
    assert (await refusal(sshd, HostKeyUnknown)).endswith("accept it on the screen of cockpit")


@pytest.mark.parametrize("strict", ["no", "off", "accept-new"])
async def test_unknown_host_keys_are_accepted_if_ssh_config_says_so(sshd: Sshd, strict: str) -> None:
    sshd.known_hosts.unlink()
    sshd.write_config(UserKnownHostsFile="/dev/null", StrictHostKeyChecking=strict)
    assert await echo_hello(sshd) == "hello"
    sshd.write_config(StrictHostKeyChecking=strict)
    assert await echo_hello(sshd) == "hello"
    assert sshd.known_hosts.read_text() == f"[127.0.0.1]:{sshd.port} {public(sshd.host_key)}\n"
    sshd.trust(new_key())
    await refusal(sshd, HostKeyChanged)
    sshd.known_hosts.write_text(f"@revoked [127.0.0.1]:{sshd.port} {public(sshd.host_key)}\n")
    assert "revoked" in await refusal(sshd, HostKeyChanged)


async def test_host_key_algorithms_of_both_sides_are_named(sshd: Sshd) -> None:
    sshd.write_config(HostKeyAlgorithms="rsa-sha2-512,rsa-sha2-256")
    assert (await refusal(sshd, HostError)).endswith(
        f"127.0.0.1:{sshd.port}: no common host key algorithm: the server offers ssh-ed25519; ssh_config accepts"
        " rsa-sha2-512,rsa-sha2-256; set HostKeyAlgorithms +ssh-ed25519 for this host in ssh_config".replace(",", ", ")
    )
    ours = ",".join(HOST_KEY_KINDS)
    assert "set HostKeyAlgorithms +ssh-rsa for" in str(without_common(["ssh-dss", "ssh-rsa"], ours, named=False))
    only_new = without_common(["ssh-dss"], f"+{ours}", named=False)
    assert str(only_new).endswith("add a HostKey made with ssh-keygen -t ed25519 to its sshd_config")
    assert without_common([], ours, named=False) is without_common(["ssh-ed25519"], ours, named=False) is None


@pytest.mark.parametrize(
    "answer", [b"", b"SSH-2.0-x\r\n", b"SSH-2.0-x\r\n\xff\xff\xff\xff\x04\x14", b"220 mail\r\n" * 60]
)
async def test_a_server_without_an_offer_has_none(answer: bytes) -> None:
    async def respond(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(respond, "127.0.0.1", 0) as server:
        assert await offered_host_keys("127.0.0.1", server.sockets[0].getsockname()[1], None) == ()


@pytest.mark.parametrize("most", [1, 2])
async def test_sessions_beyond_max_sessions_use_further_connections(sshd: Sshd, most: int) -> None:
    sshd.max_sessions = most
    shell = await connect(WEB, sshd.ssh_config)
    channels = await asyncio.gather(*(shell.open("echo hello; cat") for _ in range(4)))
    assert (await shell.run("echo hello")).stdout == b"hello\n"
    assert [await channel.readline() for channel in channels] == [b"hello\n"] * 4 and sshd.logins == -(-5 // most)
    await shell.close()
    assert await echo_hello(sshd) == "hello"


async def test_connections_are_closed_whichever_step_is_cancelled(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell that is closed while it logs in again, and closing connections one after the other."""
    sshd.max_sessions = 1
    opened: list[asyncssh.SSHClientConnection] = []
    connecting, logged_in = asyncssh.connect, asyncio.Event()

    async def connect_slowly(**options: Any) -> asyncssh.SSHClientConnection:
        opened.append(await connecting(**options))
        if len(opened) == 2:
            logged_in.set()
            await shell.wait_closed()
        return opened[-1]

    monkeypatch.setattr(asyncssh, "connect", connect_slowly)
    shell = await connect(WEB, sshd.ssh_config)
    channel, second = await shell.open("cat"), asyncio.create_task(shell.run("echo hello"))
    await logged_in.wait()
    channel.close()
    await shell.close()
    with pytest.raises(HostError, match="the shell was closed"):
        await second
    assert opened[1].is_closed()
    through = [(await connect(WEB, sshd.ssh_config))._connection for _ in range(2)]
    closing = asyncio.create_task(SshShell("web1", through[0], through[1:]).close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing])
    assert all(connection.is_closed() for connection in through)


async def test_a_missing_session_is_named_with_the_number_that_is_needed(sshd: Sshd) -> None:
    sshd.max_sessions = 1
    shell = await connect(WEB, sshd.ssh_config)
    channel = await shell.open("cat")
    sshd.client_key.unlink()
    (sshd.directory / "authorized_keys").write_text("")
    with pytest.raises(HostError, match="refused session 2 on this connection, and a further login failed: ") as caught:
        await shell.run("echo hello")
    assert str(caught.value).endswith("; or set MaxSessions 2 or more in its sshd_config")
    channel.close()
    await shell.close()
    sshd.max_sessions = 0
    await sshd.stop()
    sshd.authorize(new_key())
    await sshd.start()
    assert "sshd refuses all sessions; set MaxSessions 1 or more in its sshd_config" in await refusal(sshd, HostError)


async def test_changed_and_revoked_host_keys_are_refused(sshd: Sshd) -> None:
    for kind in ("ssh-ed25519", "ecdsa-sha2-nistp256"):
        old = new_key(kind)
        sshd.trust(old)
        message = await refusal(sshd, HostKeyChanged)
        assert "CHANGED" in message and sshd.host_key.get_fingerprint() in message
        assert f"{old.get_fingerprint()} ({sshd.known_hosts} line 1)" in message
        assert f"ssh-keygen -R '[127.0.0.1]:{sshd.port}' -f {sshd.known_hosts}" in message
    line = f"[127.0.0.1]:{sshd.port} {public(sshd.host_key)}\n"
    sshd.known_hosts.write_text(f"{line}@revoked {line}")
    assert "revoked" in await refusal(sshd, HostKeyChanged)


async def test_known_host_keys_are_trusted(sshd: Sshd) -> None:
    """One of several; without a port; beside invalid lines; in a file with tokens; under an alias."""
    sshd.trust(new_key("ecdsa-sha2-nistp256"), new_key(), sshd.host_key)
    sshd.known_hosts.write_text("nonsense\n@what is this\n|1|x|y z\n" + sshd.known_hosts.read_text())
    assert await echo_hello(sshd) == "hello"
    sshd.trust(sshd.host_key, name="127.0.0.1")
    assert await echo_hello(sshd) == "hello"
    sshd.known_hosts.rename(sshd.directory / "known_web_127.0.0.1")
    sshd.write_config(UserKnownHostsFile=f"{sshd.directory}/known_%n_%h")
    assert await echo_hello(sshd) == "hello"
    sshd.write_config(HostKeyAlias="the-web")
    sshd.trust(sshd.host_key, name="the-web")
    assert await echo_hello(sshd) == "hello"


@pytest.mark.lab
async def test_entries_hashed_by_ssh_keygen_and_its_removal_of_a_key(sshd: Sshd) -> None:
    await ssh_keygen("-H", "-f", str(sshd.known_hosts))
    assert "127.0.0.1" not in sshd.known_hosts.read_text()
    assert await echo_hello(sshd) == "hello"
    sshd.trust(new_key())
    await ssh_keygen("-H", "-f", str(sshd.known_hosts))
    message = await refusal(sshd, HostKeyChanged)
    remedy = message.rpartition("remove the old key: ")[2]
    process = await asyncio.create_subprocess_shell(f"{remedy} 2>/dev/null")
    assert await process.wait() == 0
    await refusal(sshd, HostKeyUnknown)


async def test_host_certificate_of_known_authority_is_trusted(sshd: Sshd) -> None:
    """An entry with the port takes precedence."""
    authority, other = public(key := new_key()), public(new_key())
    await sshd.certify(key)
    plain, with_port = "@cert-authority 127.0.0.1", f"@cert-authority [127.0.0.1]:{sshd.port}"
    for trusted, entries in (
        (True, f"{with_port} {authority}\n"),
        (False, f"{with_port} {other}\n"),
        (False, f"{plain} {authority}\n{with_port} {other}\n"),
        (True, f"{plain} {other}\n{with_port} {authority}\n"),
    ):
        sshd.known_hosts.write_text(entries)
        if trusted:
            assert await echo_hello(sshd) == "hello"
        else:
            assert key.get_fingerprint() in await refusal(sshd, HostKeyUnknown)


async def test_user_and_system_config_are_defaults(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's config is read after the user's, and not if another file is given."""
    home = Path(os.environ["HOME"]) / ".ssh"
    home.mkdir()
    (home / "config").write_text(f"Host web\n  HostName 127.0.0.1\n  Port {sshd.port}\n  User root\n")
    sshd.client_key.rename(home / "id_ed25519")
    sshd.known_hosts.rename(home / "known_hosts")
    await connected(None)
    (home / "known_hosts").rename(sshd.known_hosts)
    (home / "id_ed25519").rename(sshd.client_key)
    system = sshd.directory / "system"
    monkeypatch.setattr("cockpit.hosts.ssh.settings.SYSTEM_CONFIG", str(system))
    options = f"IdentityFile {sshd.client_key}\n  UserKnownHostsFile {sshd.known_hosts}\n"
    system.write_text(f"Host *\n  User nobody-of-that-name\n  Port 1\n  HashKnownHosts yes\n  {options}")
    await connected(None)
    settings = read_settings(Destination("web"), None)
    assert (settings.user, settings.port, settings.options.is_on("hashknownhosts")) == ("root", sshd.port, True)
    assert not read_settings(Destination("web"), sshd.ssh_config).options.is_on("hashknownhosts")


async def connected(config: Path | None) -> None:
    shell = await connect(WEB, config)
    assert (await shell.run("echo hello")).stdout == b"hello\n"
    await shell.close()


async def test_missing_wrong_and_encrypted_client_keys(sshd: Sshd) -> None:
    sshd.write_config(IdentityFile=f"{sshd.directory}/nowhere\n    IdentityFile {sshd.directory}/nor-here")
    assert await echo_hello(sshd) == "hello"
    sshd.write_config()
    sshd.client_key.write_bytes(locked(asyncssh.read_private_key(sshd.client_key), "secret"))
    message = await refusal(sshd, CredentialsRequired)
    assert f"no passphrase for {sshd.client_key}; enter it on the screen or start ssh-agent and add the key" in message
    new_key().write_private_key(sshd.client_key)
    message = await refusal(sshd, AuthRefused)
    assert str(sshd.client_key) in message and "no ssh agent" in message and "root's authorized_keys" in message


@pytest.mark.lab
async def test_agent_is_used_and_named(sshd: Sshd, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sock = tmp_path / "agent"
    agent = await asyncio.create_subprocess_exec("ssh-agent", "-D", "-a", str(sock), stdout=asyncio.subprocess.PIPE)
    try:
        assert agent.stdout
        await agent.stdout.readline()
        monkeypatch.setenv("SSH_AUTH_SOCK", str(sock))
        key = sshd.client_key.rename(tmp_path / "elsewhere")
        sshd.write_config(IdentitiesOnly="no")
        assert "the ssh agent's 0 keys" in await refusal(sshd, AuthRefused)
        adding = await asyncio.create_subprocess_exec("ssh-add", "-q", str(key))
        assert await adding.wait() == 0
        assert await echo_hello(sshd) == "hello"
    finally:
        agent.terminate()
        await agent.communicate()


async def test_unreachable_servers_are_reported(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    """A silent server, another protocol, a closed port, names that do not resolve."""
    with socket.create_server(("127.0.0.1", 0)) as silent, monkeypatch.context() as patch:
        patch.setattr("cockpit.hosts.ssh.login.CONNECT_TIMEOUT", 0.3)
        config = HostConfig(name="web1", ssh=f"web:{silent.getsockname()[1]}")
        assert "within 0.3 s; is it up" in await refusal(sshd, HostError, config)

    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        await refusal(sshd, HostError, HostConfig(name="web1", ssh=f"web:{server.sockets[0].getsockname()[1]}"))
    await sshd.stop()
    assert f"127.0.0.1:{sshd.port}: connection refused" in await refusal(sshd, HostError)
    for name in ("x" * 80, "a..b", "no-such-host.invalid"):
        assert name in await refusal(sshd, HostError, HostConfig(name="web1", ssh=name))


async def test_jump_host(sshd: Sshd, tmp_path: Path) -> None:
    directory = tmp_path / "inner"
    directory.mkdir()
    inner = await Sshd(directory).start()
    try:
        block = inner.ssh_config.read_text().replace("Host web\n", "Host inner\n    ProxyJump web\n")
        sshd.ssh_config.write_text(sshd.ssh_config.read_text() + block)
        config = HostConfig(name="web1", ssh="inner")
        assert await echo_hello(sshd, config) == "hello"
        assert inner.commands and not sshd.commands
        inner.trust(new_key())
        await refusal(sshd, HostKeyChanged, config)
        sshd.known_hosts.write_text("")
        assert "web1, jump host web: " in await refusal(sshd, HostKeyUnknown, config)
    finally:
        await inner.stop()
    sshd.ssh_config.write_text("Host web\n    ProxyJump other\nHost other\n    ProxyJump web\n")
    with pytest.raises(UsageError, match="circular"):
        await echo_hello(sshd)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("web1", Destination("web1")),
        ("root@web1", Destination("web1", "root")),
        ("root@10.0.0.5:2222", Destination("10.0.0.5", "root", 2222)),
        ("web1:22", Destination("web1", None, 22)),
        ("[::1]:2222", Destination("::1", None, 2222)),
        ("root@::1", Destination("::1", "root")),
        *((text, None) for text in ("", "-oProxyCommand=x", "web1 -p 22", "root@", "web1:0", "web1:65536", "web1:ssh")),
    ],
)
def test_destination_is_parsed_or_refused(text: str, expected: Destination | None) -> None:
    if expected is None:
        with pytest.raises(UsageError, match="write user@host"):
            Destination.parse(text)
    else:
        assert Destination.parse(text) == expected


def test_asyncssh_is_imported_only_for_ssh_hosts() -> None:
    code = "import sys, cockpit.hosts.feed; sys.exit('asyncssh' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
