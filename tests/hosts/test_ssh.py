"""SSH connections: host keys, logins, hostnames, ssh_config."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from pathlib import Path

import asyncssh
import pytest

from cockpit.hosts.feed import check_host
from cockpit.hosts.ssh import connect
from cockpit.hosts.ssh_settings import Destination, read_settings
from cockpit.model.errors import AuthRefused, CredentialsRequired, HostError, HostKeyChanged, HostKeyUnknown, UsageError
from cockpit.model.hosts import HostConfig
from tests.hosts.sshd import Sshd, public

# For tests of hashed entries, encrypted keys and the agent.
openssh = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="needs ssh-keygen and ssh-agent")

WEB = HostConfig(name="web1", ssh="web")


async def echo_hello(sshd: Sshd, config: HostConfig = WEB) -> str:
    """Output of `echo hello` on the host."""
    shell = await connect(config, sshd.ssh_config)
    try:
        return (await shell.run("echo hello")).stdout.decode().strip()
    finally:
        await shell.close()


async def refusal(sshd: Sshd, kind: type[HostError], config: HostConfig = WEB) -> str:
    """The message of the error, which is of exactly this kind, on one line, and names the host."""
    with pytest.raises(HostError) as caught:
        await echo_hello(sshd, config)
    assert caught.type is kind
    assert caught.value.exit_code == 3
    message = str(caught.value)
    assert message.startswith("web1: ")
    assert "\n" not in message
    return message


def new_key(kind: str = "ssh-ed25519") -> asyncssh.SSHKey:
    return asyncssh.generate_private_key(kind)


async def test_login_with_key_and_known_host(sshd: Sshd) -> None:
    assert await echo_hello(sshd) == "hello"


async def test_check_returns_facts(sshd: Sshd) -> None:
    facts = await check_host(HostConfig(name="web1", ssh="web", processes=("sh",)), sshd.ssh_config)
    assert facts.hostname == socket.gethostname()


async def test_check_raises_connection_error(sshd: Sshd) -> None:
    sshd.known_hosts.write_text("")
    with pytest.raises(HostKeyUnknown):
        await check_host(WEB, sshd.ssh_config)


@pytest.mark.parametrize("entries", ["none", "comment", "other host", "other port", "no port", "no file"])
async def test_unknown_host_key_is_refused(sshd: Sshd, entries: str) -> None:
    other = public(new_key())
    lines = {
        "none": "",
        "comment": f"# [127.0.0.1]:{sshd.port} {public(sshd.host_key)}\n",
        "other host": f"[127.0.0.2]:{sshd.port} {public(sshd.host_key)}\n",
        "other port": f"[127.0.0.1]:{sshd.port + 1} {public(sshd.host_key)}\n",
        "no port": f"127.0.0.1 {other}\n",
    }
    if entries == "no file":
        sshd.known_hosts.unlink()
    else:
        sshd.known_hosts.write_text(lines[entries])
    message = await refusal(sshd, HostKeyUnknown)
    assert sshd.host_key.get_fingerprint() in message
    assert f"127.0.0.1:{sshd.port}" in message
    assert message.endswith(f"accept it with: ssh -F {sshd.ssh_config} -o StrictHostKeyChecking=ask web true")


async def test_accept_command_includes_user_and_port(sshd: Sshd) -> None:
    sshd.known_hosts.write_text("")
    message = await refusal(sshd, HostKeyUnknown, HostConfig(name="web1", ssh=f"root@web:{sshd.port}"))
    assert message.endswith(f"ssh -F {sshd.ssh_config} -o StrictHostKeyChecking=ask -p {sshd.port} root@web true")


@pytest.mark.parametrize("kind", ["ssh-ed25519", "ecdsa-sha2-nistp256", "ssh-rsa"])
async def test_changed_host_key_is_refused(sshd: Sshd, kind: str) -> None:
    old = new_key(kind)
    sshd.trust(old)
    message = await refusal(sshd, HostKeyChanged)
    assert "CHANGED" in message
    assert sshd.host_key.get_fingerprint() in message
    assert f"{old.get_fingerprint()} ({sshd.known_hosts} line 1)" in message
    assert f"ssh-keygen -R '[127.0.0.1]:{sshd.port}' -f {sshd.known_hosts}" in message


@openssh
async def test_changed_host_key_in_hashed_entry_is_refused(sshd: Sshd) -> None:
    sshd.trust(new_key())
    await ssh_keygen("-H", "-f", str(sshd.known_hosts))
    assert "127.0.0.1" not in sshd.known_hosts.read_text()
    await refusal(sshd, HostKeyChanged)


@openssh
async def test_hashed_entry_is_trusted(sshd: Sshd) -> None:
    await ssh_keygen("-H", "-f", str(sshd.known_hosts))
    assert "127.0.0.1" not in sshd.known_hosts.read_text()
    assert await echo_hello(sshd) == "hello"


@openssh
async def test_suggested_command_removes_changed_key(sshd: Sshd) -> None:
    sshd.trust(new_key())
    message = await refusal(sshd, HostKeyChanged)
    remedy = message.rpartition("remove the old key: ")[2]
    process = await asyncio.create_subprocess_shell(f"{remedy} 2>/dev/null")
    assert await process.wait() == 0
    await refusal(sshd, HostKeyUnknown)


async def test_revoked_known_key_is_refused(sshd: Sshd) -> None:
    line = f"[127.0.0.1]:{sshd.port} {public(sshd.host_key)}\n"
    sshd.known_hosts.write_text(f"{line}@revoked {line}")
    assert "revoked" in await refusal(sshd, HostKeyChanged)


async def test_one_matching_known_key_suffices(sshd: Sshd) -> None:
    sshd.trust(new_key("ecdsa-sha2-nistp256"), new_key(), sshd.host_key)
    assert await echo_hello(sshd) == "hello"


async def test_entry_without_port_is_trusted(sshd: Sshd) -> None:
    sshd.trust(sshd.host_key, name="127.0.0.1")
    assert await echo_hello(sshd) == "hello"


async def test_invalid_known_hosts_lines_are_skipped(sshd: Sshd) -> None:
    sshd.known_hosts.write_text("nonsense\n@what is this\n|1|x|y z\n" + sshd.known_hosts.read_text())
    assert await echo_hello(sshd) == "hello"


@pytest.mark.parametrize("value", ["none", "/dev/null"])
async def test_host_key_is_refused_without_known_hosts(sshd: Sshd, value: str) -> None:
    sshd.write_config(UserKnownHostsFile=value, StrictHostKeyChecking="no")
    await refusal(sshd, HostKeyUnknown)


async def test_tokens_in_known_hosts_file_are_expanded(sshd: Sshd) -> None:
    sshd.known_hosts.rename(sshd.directory / "known_web_127.0.0.1")
    sshd.write_config(UserKnownHostsFile=f"{sshd.directory}/known_%n_%h")
    assert await echo_hello(sshd) == "hello"


async def test_host_key_alias_is_used(sshd: Sshd) -> None:
    sshd.write_config(HostKeyAlias="the-web")
    sshd.trust(sshd.host_key, name="the-web")
    assert await echo_hello(sshd) == "hello"


async def test_user_ssh_directory_is_default(sshd: Sshd) -> None:
    home = Path(os.environ["HOME"]) / ".ssh"
    home.mkdir()
    (home / "config").write_text(f"Host web\n  HostName 127.0.0.1\n  Port {sshd.port}\n  User root\n")
    sshd.client_key.rename(home / "id_ed25519")
    sshd.known_hosts.rename(home / "known_hosts")
    shell = await connect(WEB)
    assert (await shell.run("echo hello")).stdout == b"hello\n"
    await shell.close()


async def test_system_config_is_read_after_user_config(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    system = sshd.directory / "system"
    monkeypatch.setattr("cockpit.hosts.ssh_settings.SYSTEM_CONFIG", str(system))
    home = Path(os.environ["HOME"]) / ".ssh"
    home.mkdir()
    (home / "config").write_text(f"Host web\n  HostName 127.0.0.1\n  Port {sshd.port}\n  User root\n")
    options = f"IdentityFile {sshd.client_key}\n  UserKnownHostsFile {sshd.known_hosts}\n"
    system.write_text(f"Host *\n  User nobody-of-that-name\n  Port 1\n  HashKnownHosts yes\n  {options}")
    shell = await connect(WEB)
    assert (await shell.run("echo hello")).stdout == b"hello\n"
    await shell.close()
    settings = read_settings(Destination("web"), None)
    assert (settings.user, settings.port, settings.options.is_on("hashknownhosts")) == ("root", sshd.port, True)
    assert not read_settings(Destination("web"), sshd.ssh_config).options.is_on("hashknownhosts")


async def test_invalid_system_config_is_named(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    system = sshd.directory / "system"
    system.write_text("Host *\n  Port many\n")
    monkeypatch.setattr("cockpit.hosts.ssh_settings.SYSTEM_CONFIG", str(system))
    with pytest.raises(UsageError, match=f"ssh_config {system}: "):
        await connect(WEB)


async def test_wrong_client_key_is_refused(sshd: Sshd) -> None:
    sshd.client_key.unlink()
    new_key().write_private_key(sshd.client_key)
    message = await refusal(sshd, AuthRefused)
    assert str(sshd.client_key) in message
    assert "no ssh agent" in message
    assert "root's authorized_keys" in message


@openssh
async def test_encrypted_key_error_asks_for_passphrase(sshd: Sshd) -> None:
    await ssh_keygen("-p", "-N", "secret", "-f", str(sshd.client_key))
    message = await refusal(sshd, CredentialsRequired)
    assert f"no passphrase for {sshd.client_key}; enter it on the screen or add the key with ssh-add" in message


@openssh
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


async def test_missing_identity_files_are_skipped(sshd: Sshd) -> None:
    sshd.write_config(IdentityFile=f"{sshd.directory}/nowhere\n    IdentityFile {sshd.directory}/nor-here")
    assert await echo_hello(sshd) == "hello"


async def test_closed_port_is_reported(sshd: Sshd) -> None:
    await sshd.stop()
    assert f"127.0.0.1:{sshd.port}: connection refused" in await refusal(sshd, HostError)


async def test_unknown_hostname_is_reported(sshd: Sshd) -> None:
    sshd.write_config(HostName="no-such-host.invalid")
    assert "no-such-host.invalid" in await refusal(sshd, HostError)


@pytest.mark.parametrize("name", ["x" * 80, "a..b"])
async def test_invalid_hostname_is_reported(sshd: Sshd, name: str) -> None:
    assert name in await refusal(sshd, HostError, HostConfig(name="web1", ssh=name))


async def test_non_ssh_server_is_reported(sshd: Sshd) -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await refusal(sshd, HostError, HostConfig(name="web1", ssh=f"web:{port}"))
    server.close()
    await server.wait_closed()


async def test_silent_server_times_out(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cockpit.hosts.ssh_login.CONNECT_TIMEOUT", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = HostConfig(name="web1", ssh=f"web:{silent.getsockname()[1]}")
        assert "within 0.3 s; is it up" in await refusal(sshd, HostError, config)


async def test_cyclic_jump_hosts_are_refused(sshd: Sshd) -> None:
    sshd.ssh_config.write_text("Host web\n    ProxyJump other\nHost other\n    ProxyJump web\n")
    with pytest.raises(UsageError, match="circular"):
        await echo_hello(sshd)


async def test_host_certificate_of_known_authority_is_trusted(sshd: Sshd) -> None:
    authority = new_key()
    await sshd.certify(authority)
    sshd.known_hosts.write_text(f"@cert-authority [127.0.0.1]:{sshd.port} {public(authority)}\n")
    assert await echo_hello(sshd) == "hello"
    other = new_key()
    sshd.known_hosts.write_text(f"@cert-authority [127.0.0.1]:{sshd.port} {public(other)}\n")
    assert authority.get_fingerprint() in await refusal(sshd, HostKeyUnknown)


async def test_jump_host(sshd: Sshd, tmp_path: Path) -> None:
    directory = tmp_path / "inner"
    directory.mkdir()
    inner = await Sshd(directory).start()
    try:
        sshd.ssh_config.write_text(
            sshd.ssh_config.read_text()
            + inner.ssh_config.read_text().replace("Host web\n", "Host inner\n    ProxyJump web\n")
        )
        config = HostConfig(name="web1", ssh="inner")
        assert await echo_hello(sshd, config) == "hello"
        assert inner.commands
        assert not sshd.commands
        inner.trust(new_key())
        await refusal(sshd, HostKeyChanged, config)
        sshd.known_hosts.write_text("")
        with pytest.raises(HostKeyUnknown, match="web1, jump host web: "):
            await echo_hello(sshd, config)
    finally:
        await inner.stop()


@pytest.mark.parametrize("config", ["nowhere", "Host web\n    Port many\n"])
async def test_unreadable_ssh_config_is_named(sshd: Sshd, config: str) -> None:
    if config == "nowhere":
        sshd.ssh_config.unlink()
    else:
        sshd.ssh_config.write_text(config)
    with pytest.raises(UsageError, match=f"ssh_config {sshd.ssh_config}: "):
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
    ],
)
def test_destination_is_parsed(text: str, expected: Destination) -> None:
    assert Destination.parse(text) == expected


@pytest.mark.parametrize("text", ["", "-oProxyCommand=x", "web1 -p 22", "root@", "web1:0", "web1:99999", "web1:ssh"])
def test_invalid_destination_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="write user@host"):
        Destination.parse(text)


async def ssh_keygen(*arguments: str) -> None:
    process = await asyncio.create_subprocess_exec(
        "ssh-keygen", *arguments, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    assert await process.wait() == 0
