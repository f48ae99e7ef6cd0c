"""Prompts before a connection: passphrases, passwords and unknown host keys."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

import asyncssh
import pytest

from cockpit.hosts.prompts import Keyring, UnknownHostKey
from cockpit.hosts.ssh import connect
from cockpit.model.errors import AuthRefused, CredentialsRequired, HostError, HostKeyChanged, HostKeyUnknown
from cockpit.model.hosts import HostConfig
from tests.hosts.sshd import Sshd, locked, public

WEB = HostConfig(name="web1", ssh="web")
PASSPHRASE = "correct horse"
PASSWORD = "battery staple"


class ScriptedUser:
    """Gives its answers in order, then refuses; records all questions and host keys."""

    def __init__(self, *answers: str, trusts: bool = False) -> None:
        self.questions: list[str] = []
        self.keys: list[UnknownHostKey] = []
        self._answers = list(answers)
        self._trusts = trusts

    async def secret(self, host: str, question: str) -> str | None:
        self.questions.append(f"{host}: {question}")
        return self._answers.pop(0) if self._answers else None

    async def trust(self, host: str, key: UnknownHostKey) -> bool:
        self.keys.append(key)
        return self._trusts

    async def wanted(self, host: str) -> None:
        await asyncio.Event().wait()


async def echo_hello(sshd: Sshd, user: ScriptedUser, keyring: Keyring | None = None, config: HostConfig = WEB) -> str:
    """Output of `echo hello` on the host."""
    shell = await connect(config, sshd.ssh_config, user, keyring)
    try:
        return (await shell.run("echo hello")).stdout.decode().strip()
    finally:
        await shell.close()


async def refusal(sshd: Sshd, user: ScriptedUser, kind: type[HostError]) -> str:
    with pytest.raises(HostError) as caught:
        await echo_hello(sshd, user)
    assert caught.type is kind
    return str(caught.value)


def lock(sshd: Sshd, form: str = "openssh") -> None:
    """Encrypt the client's key with the passphrase; there is no public key file."""
    key = asyncssh.read_private_key(sshd.client_key)
    sshd.client_key.write_bytes(locked(key, PASSPHRASE, form))


@pytest.mark.parametrize("form", ["openssh", "pkcs8-pem"])
async def test_passphrase_is_prompted_once_and_key_stays_unlocked(sshd: Sshd, form: str) -> None:
    if form != "openssh":
        sshd.authorize(asyncssh.generate_private_key("ecdsa-sha2-nistp256"))
    lock(sshd, form)
    user, keyring = ScriptedUser(PASSPHRASE), Keyring()
    assert await echo_hello(sshd, user, keyring) == "hello"
    assert user.questions == [f"web1: passphrase of {sshd.client_key}"]
    assert await echo_hello(sshd, user, keyring) == "hello"
    assert len(user.questions) == 1


async def test_no_passphrase_prompt_for_unaccepted_key(sshd: Sshd, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(locked(asyncssh.generate_private_key("ssh-ed25519"), PASSPHRASE))
    sshd.write_config(IdentityFile=f"{other}\n    IdentityFile {sshd.client_key}")
    user = ScriptedUser()
    assert await echo_hello(sshd, user) == "hello"
    sshd.client_key.unlink()
    message = await refusal(sshd, user, AuthRefused)
    assert str(other) in message
    assert user.questions == []


async def test_unencrypted_keys_are_tried_first(sshd: Sshd, tmp_path: Path) -> None:
    under_passphrase = tmp_path / "locked"
    under_passphrase.write_bytes(locked(asyncssh.read_private_key(sshd.client_key), PASSPHRASE))
    sshd.write_config(IdentityFile=f"{under_passphrase}\n    IdentityFile {sshd.client_key}")
    user = ScriptedUser()
    assert await echo_hello(sshd, user) == "hello"
    assert user.questions == []


async def test_password_is_prompted_after_three_wrong_passphrases(sshd: Sshd) -> None:
    lock(sshd)
    sshd.password = PASSWORD
    user = ScriptedUser("no", "nor this", "", PASSWORD)
    assert await echo_hello(sshd, user) == "hello"
    assert [question.partition(" (")[2] for question in user.questions] == [
        "",
        "wrong; 2 attempts left)",
        "wrong; 1 attempt left)",
        "",
    ]
    assert user.questions[-1].startswith("web1: password of root@127.0.0.1:")
    user = ScriptedUser("no", "nor this", "nor that")
    sshd.password = None
    message = await refusal(sshd, user, CredentialsRequired)
    assert f"no passphrase for {sshd.client_key}" in message


async def test_password_is_prompted_after_all_keys_failed(sshd: Sshd) -> None:
    sshd.password = PASSWORD
    user = ScriptedUser()
    assert await echo_hello(sshd, user) == "hello"
    assert user.questions == []
    sshd.client_key.unlink()
    user = ScriptedUser("wrong", PASSWORD)
    assert await echo_hello(sshd, user) == "hello"
    assert sshd.tried_passwords == ["wrong", PASSWORD]
    assert [question.endswith("(wrong; 2 attempts left)") for question in user.questions] == [False, True]


async def test_login_fails_after_three_wrong_passwords(sshd: Sshd) -> None:
    sshd.client_key.unlink()
    sshd.password = PASSWORD
    user = ScriptedUser("a", "b", "c", "d")
    message = await refusal(sshd, user, CredentialsRequired)
    assert sshd.tried_passwords == ["a", "b", "c"]
    assert "login as root on" in message


async def test_keyboard_interactive_prompts_are_answered(sshd: Sshd) -> None:
    sshd.client_key.unlink()
    sshd.prompts = {"Password: ": PASSWORD, "One-time \x1b[31mcode: ": "123456"}
    user = ScriptedUser(PASSWORD, "123456")
    assert await echo_hello(sshd, user) == "hello"
    assert "password of root@" in user.questions[0]
    assert user.questions[1].endswith(f"127.0.0.1:{sshd.port} asks: One-time ·[31mcode:")


async def test_cancelled_prompt_fails_login(sshd: Sshd) -> None:
    lock(sshd)
    await refusal(sshd, ScriptedUser(), CredentialsRequired)
    sshd.client_key.unlink()
    sshd.password = PASSWORD
    await refusal(sshd, ScriptedUser(), CredentialsRequired)
    assert sshd.tried_passwords == []


async def test_hosts_sharing_key_prompt_once(sshd: Sshd) -> None:
    lock(sshd)
    user, keyring = ScriptedUser(PASSPHRASE), Keyring()
    assert await asyncio.gather(*(echo_hello(sshd, user, keyring) for _ in range(3))) == ["hello"] * 3
    assert len(user.questions) == 1


async def test_accepted_host_key_is_added_to_known_hosts(sshd: Sshd) -> None:
    sshd.known_hosts.unlink()
    sshd.write_config(UserKnownHostsFile=f"{sshd.directory}/new/known {sshd.known_hosts}")
    user = ScriptedUser(trusts=True)
    assert await echo_hello(sshd, user) == "hello"
    (key,) = user.keys
    assert (key.where, key.kind) == (f"127.0.0.1:{sshd.port}", "ssh-ed25519")
    assert key.fingerprint == sshd.host_key.get_fingerprint()
    assert key.fingerprint.startswith("SHA256:")
    assert key.line == f"[127.0.0.1]:{sshd.port} {public(sshd.host_key)}"
    added = sshd.directory / "new" / "known"
    assert key.file == added
    assert added.read_text() == f"{key.line}\n"
    assert added.stat().st_mode & 0o777 == 0o600
    assert await echo_hello(sshd, user) == "hello"
    assert len(user.keys) == 1


async def test_host_key_is_appended_to_existing_known_hosts(sshd: Sshd) -> None:
    sshd.known_hosts.write_text("# mine, without an end of line")
    assert await echo_hello(sshd, ScriptedUser(trusts=True)) == "hello"
    assert len(sshd.known_hosts.read_text().splitlines()) == 2


async def test_host_key_is_hashed_with_hash_known_hosts(sshd: Sshd) -> None:
    sshd.known_hosts.unlink()
    sshd.write_config(HashKnownHosts="yes")
    assert await echo_hello(sshd, ScriptedUser(trusts=True)) == "hello"
    assert sshd.known_hosts.read_text().startswith("|1|")
    if shutil.which("ssh-keygen"):
        assert await ssh_keygen_finds(sshd)


async def ssh_keygen_finds(sshd: Sshd) -> bool:
    """Whether OpenSSH finds the entry, too."""
    process = await asyncio.create_subprocess_exec(
        "ssh-keygen", "-F", f"[127.0.0.1]:{sshd.port}", "-f", str(sshd.known_hosts), stdout=asyncio.subprocess.DEVNULL
    )
    return await process.wait() == 0


@pytest.mark.parametrize("options", [{}, {"StrictHostKeyChecking": "yes"}, {"UserKnownHostsFile": "none"}])
async def test_unaccepted_unknown_host_key_is_refused(sshd: Sshd, options: dict[str, str]) -> None:
    sshd.known_hosts.write_text("")
    sshd.write_config(**options)
    user = ScriptedUser(trusts=bool(options))
    await refusal(sshd, user, HostKeyUnknown)
    assert len(user.keys) == (not options)
    assert sshd.known_hosts.read_text() == ""


@pytest.mark.parametrize("entry", ["changed", "revoked"])
async def test_changed_or_revoked_host_key_is_never_prompted(sshd: Sshd, entry: str) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519")
    known = {"changed": public(other), "revoked": public(sshd.host_key)}[entry]
    sshd.known_hosts.write_text(f"{'@revoked ' if entry == 'revoked' else ''}[127.0.0.1]:{sshd.port} {known}\n")
    user = ScriptedUser(trusts=True)
    message = await refusal(sshd, user, HostKeyChanged)
    assert user.keys == []
    assert entry == "revoked" or f"{sshd.known_hosts} line 1" in message


async def test_unwritable_known_hosts_is_reported(sshd: Sshd) -> None:
    sshd.write_config(UserKnownHostsFile="/proc/nowhere/known")
    assert "cannot be written to /proc/nowhere/known" in await refusal(sshd, ScriptedUser(trusts=True), HostError)


async def test_jump_hosts_prompt_too(sshd: Sshd, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    inner = await Sshd(tmp_path / "inner").start()
    try:
        blocks = (sshd.ssh_config.read_text(), "Host inner\n    ProxyJump web\n", *block(inner))
        sshd.ssh_config.write_text("\n".join(blocks))
        sshd.known_hosts.write_text("")
        inner.known_hosts.write_text("")
        lock(sshd)
        lock(inner)
        user = ScriptedUser(PASSPHRASE, PASSPHRASE, trusts=True)
        assert await echo_hello(sshd, user, config=HostConfig(name="app", ssh="inner")) == "hello"
        assert [key.where for key in user.keys] == [f"127.0.0.1:{sshd.port}", f"127.0.0.1:{inner.port}"]
        assert user.questions == [
            f"app, jump host web: passphrase of {sshd.client_key}",
            f"app: passphrase of {inner.client_key}",
        ]
    finally:
        await inner.stop()


def block(sshd: Sshd) -> Sequence[str]:
    """The lines of its ssh_config without the Host line."""
    return sshd.ssh_config.read_text().splitlines()[1:]
