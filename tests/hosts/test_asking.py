"""Prompts before a connection: passphrases, passwords and unknown host keys."""

import asyncio
from pathlib import Path

import asyncssh
import pytest

from cockpit.hosts.ssh.errors import LoginClient
from cockpit.hosts.ssh.prompts import Keyring, UnknownHostKey
from cockpit.model.errors import AuthRefused, CredentialsRequired, HostError, HostKeyChanged, HostKeyUnknown
from cockpit.model.host.samples import HostConfig
from tests.hosts.connecting import echo_hello, new_key, refusal
from tests.hosts.sshd import Sshd, locked, public

PASSPHRASE = "correct horse"
PASSWORD = "battery staple"


class ScriptedUser:
    """Gives its answers in order, then refuses; records all questions and host keys."""

    closed = False

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

    async def wait_until_allowed(self, host: str) -> None:
        await asyncio.Event().wait()

    @property
    def hints(self) -> list[str]:
        """The text in parentheses of each question."""
        return [question.partition(" (")[2].rstrip(")") for question in self.questions]


def lock(sshd: Sshd, form: str = "openssh") -> None:
    """Encrypt the client's key with the passphrase; there is no public key file."""
    key = asyncssh.read_private_key(sshd.client_key)
    sshd.client_key.write_bytes(locked(key, PASSPHRASE, form))


@pytest.mark.parametrize("form", ["openssh", "pkcs8-pem"])
async def test_passphrase_is_prompted_once_and_key_stays_unlocked(sshd: Sshd, form: str) -> None:
    """Also if several hosts with that key connect at once."""
    if form != "openssh":
        sshd.authorize(new_key("ecdsa-sha2-nistp256"))
    lock(sshd, form)
    user, keyring = ScriptedUser(PASSPHRASE), Keyring()
    connections = (echo_hello(sshd, user=user, keyring=keyring) for _ in range(3))
    assert await asyncio.gather(*connections) == ["hello"] * 3
    assert await echo_hello(sshd, user=user, keyring=keyring) == "hello"
    assert user.questions == [f"web1: passphrase of {sshd.client_key}"]


async def test_only_needed_passphrases_are_prompted(sshd: Sshd, tmp_path: Path) -> None:
    """Unencrypted keys are tried first, and no passphrase is prompted for a key that the server rejects."""
    other, same = tmp_path / "other", tmp_path / "same"
    other.write_bytes(locked(new_key(), PASSPHRASE))
    same.write_bytes(locked(asyncssh.read_private_key(sshd.client_key), PASSPHRASE))
    user = ScriptedUser()
    for first in (same, other):
        sshd.write_config(IdentityFile=f"{first}\n    IdentityFile {sshd.client_key}")
        assert await echo_hello(sshd, user=user) == "hello"
    sshd.client_key.unlink()
    assert str(other) in await refusal(sshd, AuthRefused, user=user)
    assert user.questions == []


async def test_password_is_prompted_after_three_wrong_passphrases(sshd: Sshd) -> None:
    lock(sshd)
    sshd.password = PASSWORD
    user = ScriptedUser("no", "nor this", "", PASSWORD)
    assert await echo_hello(sshd, user=user) == "hello"
    assert user.hints == ["", "Incorrect passphrase; 2 attempts left", "Incorrect passphrase; 1 attempt left", ""]
    assert user.questions[-1].startswith("web1: password of root@127.0.0.1:")
    sshd.password = None
    user = ScriptedUser("no", "nor this", "nor that")
    assert f"no passphrase for {sshd.client_key}" in await refusal(sshd, CredentialsRequired, user=user)


async def test_password_is_prompted_after_all_keys_failed(sshd: Sshd) -> None:
    """At most three times."""
    sshd.password = PASSWORD
    user = ScriptedUser()
    assert await echo_hello(sshd, user=user) == "hello"
    assert user.questions == []
    sshd.client_key.unlink()
    user = ScriptedUser("wrong", PASSWORD)
    assert await echo_hello(sshd, user=user) == "hello"
    assert (sshd.tried_passwords, user.hints) == (["wrong", PASSWORD], ["", "wrong; 2 attempts left"])
    sshd.tried_passwords.clear()
    message = await refusal(sshd, CredentialsRequired, user=ScriptedUser("a", "b", "c", "d"))
    assert sshd.tried_passwords == ["a", "b", "c"] and "login as root on" in message


async def test_keyboard_interactive_prompts_are_answered(sshd: Sshd) -> None:
    sshd.client_key.unlink()
    sshd.prompts = {"Password: ": PASSWORD, "One-time \x1b[31mcode: ": "123456"}
    user = ScriptedUser(PASSWORD, "123456")
    assert await echo_hello(sshd, user=user) == "hello"
    assert "password of root@" in user.questions[0]
    assert user.questions[1].endswith(f"127.0.0.1:{sshd.port} asks: One-time ·[31mcode:")


async def test_time_for_an_answer_is_unlimited() -> None:
    async def ask(prompt: str) -> str:
        assert client.limit is not None and client.limit.when() is None
        return prompt

    client = LoginClient(60.0, None, ask)
    async with asyncio.timeout(60) as client.limit:
        assert await client.kbdint_challenge_received("", "", "", [("code: ", True)]) == ["code: "]
        assert client.limit.when() is not None


async def test_cancelled_prompt_fails_login(sshd: Sshd) -> None:
    lock(sshd)
    await refusal(sshd, CredentialsRequired, user=ScriptedUser())
    sshd.client_key.unlink()
    sshd.password = PASSWORD
    await refusal(sshd, CredentialsRequired, user=ScriptedUser())
    assert sshd.tried_passwords == []


async def test_accepted_host_key_is_added_to_known_hosts(sshd: Sshd) -> None:
    sshd.known_hosts.unlink()
    sshd.write_config(UserKnownHostsFile=f"{sshd.directory}/new/known {sshd.known_hosts}")
    user = ScriptedUser(trusts=True)
    assert await echo_hello(sshd, user=user) == "hello"
    (key,) = user.keys
    assert (key.where, key.kind) == (f"127.0.0.1:{sshd.port}", "ssh-ed25519")
    assert key.fingerprint == sshd.host_key.get_fingerprint() and key.fingerprint.startswith("SHA256:")
    assert key.line == f"[127.0.0.1]:{sshd.port} {public(sshd.host_key)}"
    added = sshd.directory / "new" / "known"
    assert (key.file, added.read_text(), added.stat().st_mode & 0o777) == (added, f"{key.line}\n", 0o600)
    assert await echo_hello(sshd, user=user) == "hello"
    assert len(user.keys) == 1
    added.write_text("# mine, without an end of line")
    assert await echo_hello(sshd, user=user) == "hello"
    assert added.read_text() == f"# mine, without an end of line\n{key.line}\n"


@pytest.mark.parametrize("by_openssh", [False, pytest.param(True, marks=pytest.mark.lab)])
async def test_host_key_is_hashed_with_hash_known_hosts(sshd: Sshd, by_openssh: bool) -> None:
    sshd.known_hosts.unlink()
    sshd.write_config(HashKnownHosts="yes")
    assert await echo_hello(sshd, user=ScriptedUser(trusts=True)) == "hello"
    assert sshd.known_hosts.read_text().startswith("|1|")
    assert await echo_hello(sshd) == "hello"
    if by_openssh:
        find = ("ssh-keygen", "-F", f"[127.0.0.1]:{sshd.port}", "-f", str(sshd.known_hosts))
        process = await asyncio.create_subprocess_exec(*find, stdout=asyncio.subprocess.DEVNULL)
        assert await process.wait() == 0


@pytest.mark.parametrize("options", [{}, {"StrictHostKeyChecking": "yes"}, {"UserKnownHostsFile": "none"}])
async def test_unaccepted_unknown_host_key_is_refused(sshd: Sshd, options: dict[str, str]) -> None:
    sshd.known_hosts.write_text("")
    sshd.write_config(**options)
    user = ScriptedUser(trusts=bool(options))
    await refusal(sshd, HostKeyUnknown, user=user)
    assert len(user.keys) == (not options)
    assert sshd.known_hosts.read_text() == ""


async def test_changed_or_revoked_host_key_is_never_prompted(sshd: Sshd) -> None:
    user = ScriptedUser(trusts=True)
    sshd.trust(new_key())
    assert f"{sshd.known_hosts} line 1" in await refusal(sshd, HostKeyChanged, user=user)
    sshd.known_hosts.write_text(f"@revoked [127.0.0.1]:{sshd.port} {public(sshd.host_key)}\n")
    await refusal(sshd, HostKeyChanged, user=user)
    assert user.keys == []
    sshd.write_config(UserKnownHostsFile="/proc/nowhere/known")
    with pytest.raises(HostError, match="cannot be written to /proc/nowhere/known"):
        await echo_hello(sshd, user=user)
    assert len(user.keys) == 1


async def test_jump_hosts_prompt_too(sshd: Sshd, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    inner = await Sshd(tmp_path / "inner").start()
    try:
        block = inner.ssh_config.read_text().replace("Host web\n", "Host inner\n    ProxyJump web\n")
        sshd.ssh_config.write_text(sshd.ssh_config.read_text() + block)
        for server in (sshd, inner):
            server.known_hosts.write_text("")
            lock(server)
        user = ScriptedUser(PASSPHRASE, PASSPHRASE, trusts=True)
        assert await echo_hello(sshd, HostConfig(name="app", ssh="inner"), user) == "hello"
        assert [key.where for key in user.keys] == [f"127.0.0.1:{sshd.port}", f"127.0.0.1:{inner.port}"]
        assert user.questions == [
            f"app, jump host web: passphrase of {sshd.client_key}",
            f"app: passphrase of {inner.client_key}",
        ]
    finally:
        await inner.stop()
