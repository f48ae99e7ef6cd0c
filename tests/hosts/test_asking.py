"""What a person is asked before a connection stands: passphrases, passwords, unknown host keys. Nothing else is."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

import asyncssh
import pytest

from cockpit.hosts.prompts import Keyring, OfferedKey
from cockpit.hosts.ssh import connect
from cockpit.model.errors import AuthRefused, HostError, HostKeyChanged, HostKeyUnknown, Unanswered
from cockpit.model.hosts import HostConfig
from tests.hosts.sshd import Sshd, locked, public

WEB = HostConfig(name="web1", ssh="web")
PASSPHRASE = "correct horse"
PASSWORD = "battery staple"


class Person:
    """Answers in order what it was given to answer; runs out: no. Remembers what it was asked."""

    def __init__(self, *answers: str, trusts: bool = False) -> None:
        self.questions: list[str] = []
        self.keys: list[OfferedKey] = []
        self._answers = list(answers)
        self._trusts = trusts

    async def secret(self, host: str, question: str) -> str | None:
        self.questions.append(f"{host}: {question}")
        return self._answers.pop(0) if self._answers else None

    async def trust(self, host: str, key: OfferedKey) -> bool:
        self.keys.append(key)
        return self._trusts

    async def wanted(self, host: str) -> None:
        await asyncio.Event().wait()


async def answer(sshd: Sshd, person: Person, keyring: Keyring | None = None, config: HostConfig = WEB) -> str:
    """What `echo hello` says there."""
    shell = await connect(config, sshd.ssh_config, person, keyring)
    try:
        return (await shell.run("echo hello")).stdout.decode().strip()
    finally:
        await shell.close()


async def refusal(sshd: Sshd, person: Person, kind: type[HostError]) -> str:
    with pytest.raises(HostError) as caught:
        await answer(sshd, person)
    assert caught.type is kind
    return str(caught.value)


def lock(sshd: Sshd, form: str = "openssh") -> None:
    """Puts the client's key under the passphrase; without its public half beside it."""
    key = asyncssh.read_private_key(sshd.client_key)
    sshd.client_key.write_bytes(locked(key, PASSPHRASE, form))


@pytest.mark.parametrize("form", ["openssh", "pkcs8-pem"])
async def test_passphrase_is_asked_for_and_the_key_kept_unlocked(sshd: Sshd, form: str) -> None:
    if form != "openssh":
        sshd.let_in(asyncssh.generate_private_key("ecdsa-sha2-nistp256"))
    lock(sshd, form)
    person, keyring = Person(PASSPHRASE), Keyring()
    assert await answer(sshd, person, keyring) == "hello"
    assert person.questions == [f"web1: passphrase of {sshd.client_key}"]
    assert await answer(sshd, person, keyring) == "hello"
    assert len(person.questions) == 1


async def test_a_key_that_the_server_would_not_take_is_not_asked_about(sshd: Sshd, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(locked(asyncssh.generate_private_key("ssh-ed25519"), PASSPHRASE))
    sshd.write_config(IdentityFile=f"{other}\n    IdentityFile {sshd.client_key}")
    person = Person()
    assert await answer(sshd, person) == "hello"
    sshd.client_key.unlink()
    said = await refusal(sshd, person, AuthRefused)
    assert str(other) in said
    assert person.questions == []


async def test_plain_keys_come_first(sshd: Sshd, tmp_path: Path) -> None:
    under_passphrase = tmp_path / "locked"
    under_passphrase.write_bytes(locked(asyncssh.read_private_key(sshd.client_key), PASSPHRASE))
    sshd.write_config(IdentityFile=f"{under_passphrase}\n    IdentityFile {sshd.client_key}")
    person = Person()
    assert await answer(sshd, person) == "hello"
    assert person.questions == []


async def test_a_wrong_passphrase_is_told_three_times_then_the_password_is_asked_for(sshd: Sshd) -> None:
    lock(sshd)
    sshd.password = PASSWORD
    person = Person("no", "nor this", "", PASSWORD)
    assert await answer(sshd, person) == "hello"
    assert [question.partition(" (")[2] for question in person.questions] == [
        "",
        "that was wrong; 2 more)",
        "that was wrong; 1 more)",
        "",
    ]
    assert person.questions[-1].startswith("web1: password of root@127.0.0.1:")
    person = Person("no", "nor this", "nor that")
    sshd.password = None
    said = await refusal(sshd, person, Unanswered)
    assert f"the passphrase of {sshd.client_key}" in said


async def test_password_after_the_keys(sshd: Sshd) -> None:
    sshd.password = PASSWORD
    person = Person()
    assert await answer(sshd, person) == "hello"
    assert person.questions == []
    sshd.client_key.unlink()
    person = Person("wrong", PASSWORD)
    assert await answer(sshd, person) == "hello"
    assert sshd.tried == ["wrong", PASSWORD]
    assert [question.endswith("(that was wrong; 2 more)") for question in person.questions] == [False, True]


async def test_three_wrong_passwords_are_enough(sshd: Sshd) -> None:
    sshd.client_key.unlink()
    sshd.password = PASSWORD
    person = Person("a", "b", "c", "d")
    said = await refusal(sshd, person, Unanswered)
    assert sshd.tried == ["a", "b", "c"]
    assert "does not let root in" in said


async def test_password_and_code_asked_by_the_server(sshd: Sshd) -> None:
    sshd.client_key.unlink()
    sshd.prompts = {"Password: ": PASSWORD, "One-time \x1b[31mcode: ": "123456"}
    person = Person(PASSWORD, "123456")
    assert await answer(sshd, person) == "hello"
    assert "password of root@" in person.questions[0]
    assert person.questions[1].endswith(f"127.0.0.1:{sshd.port} asks: One-time ·[31mcode:")


async def test_a_person_who_thinks_better_of_it(sshd: Sshd) -> None:
    lock(sshd)
    await refusal(sshd, Person(), Unanswered)
    sshd.client_key.unlink()
    sshd.password = PASSWORD
    await refusal(sshd, Person(), Unanswered)
    assert sshd.tried == []


async def test_two_hosts_with_one_key_ask_once(sshd: Sshd) -> None:
    lock(sshd)
    person, keyring = Person(PASSPHRASE), Keyring()
    assert await asyncio.gather(*(answer(sshd, person, keyring) for _ in range(3))) == ["hello"] * 3
    assert len(person.questions) == 1


async def test_unknown_key_that_is_vouched_for_is_known_from_then_on(sshd: Sshd) -> None:
    sshd.known_hosts.unlink()
    sshd.write_config(UserKnownHostsFile=f"{sshd.directory}/new/known {sshd.known_hosts}")
    person = Person(trusts=True)
    assert await answer(sshd, person) == "hello"
    (key,) = person.keys
    assert (key.where, key.kind) == (f"127.0.0.1:{sshd.port}", "ssh-ed25519")
    assert key.fingerprint == sshd.host_key.get_fingerprint()
    assert key.fingerprint.startswith("SHA256:")
    assert key.line == f"[127.0.0.1]:{sshd.port} {public(sshd.host_key)}"
    kept = sshd.directory / "new" / "known"
    assert key.file == kept
    assert kept.read_text() == f"{key.line}\n"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert await answer(sshd, person) == "hello"
    assert len(person.keys) == 1


async def test_a_line_is_added_to_what_is_there(sshd: Sshd) -> None:
    sshd.known_hosts.write_text("# mine, without an end of line")
    assert await answer(sshd, Person(trusts=True)) == "hello"
    assert len(sshd.known_hosts.read_text().splitlines()) == 2


async def test_hashed_where_known_hosts_are_hashed(sshd: Sshd) -> None:
    sshd.known_hosts.unlink()
    sshd.write_config(HashKnownHosts="yes")
    assert await answer(sshd, Person(trusts=True)) == "hello"
    assert sshd.known_hosts.read_text().startswith("|1|")
    if shutil.which("ssh-keygen"):
        assert await finds(sshd)


async def finds(sshd: Sshd) -> bool:
    """Whether OpenSSH finds the entry too."""
    process = await asyncio.create_subprocess_exec(
        "ssh-keygen", "-F", f"[127.0.0.1]:{sshd.port}", "-f", str(sshd.known_hosts), stdout=asyncio.subprocess.DEVNULL
    )
    return await process.wait() == 0


@pytest.mark.parametrize("options", [{}, {"StrictHostKeyChecking": "yes"}, {"UserKnownHostsFile": "none"}])
async def test_unknown_key_that_nobody_may_or_will_vouch_for(sshd: Sshd, options: dict[str, str]) -> None:
    sshd.known_hosts.write_text("")
    sshd.write_config(**options)
    person = Person(trusts=bool(options))
    await refusal(sshd, person, HostKeyUnknown)
    assert len(person.keys) == (not options)
    assert sshd.known_hosts.read_text() == ""


@pytest.mark.parametrize("entry", ["changed", "revoked"])
async def test_a_key_that_is_known_to_be_wrong_is_never_asked_about(sshd: Sshd, entry: str) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519")
    known = {"changed": public(other), "revoked": public(sshd.host_key)}[entry]
    sshd.known_hosts.write_text(f"{'@revoked ' if entry == 'revoked' else ''}[127.0.0.1]:{sshd.port} {known}\n")
    person = Person(trusts=True)
    said = await refusal(sshd, person, HostKeyChanged)
    assert person.keys == []
    assert entry == "revoked" or f"{sshd.known_hosts} line 1" in said


async def test_where_the_key_cannot_be_kept(sshd: Sshd) -> None:
    sshd.write_config(UserKnownHostsFile="/proc/nowhere/known")
    assert "cannot be written to /proc/nowhere/known" in await refusal(sshd, Person(trusts=True), HostError)


async def test_jump_hosts_are_asked_about_as_well(sshd: Sshd, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    inner = await Sshd(tmp_path / "inner").start()
    try:
        blocks = (sshd.ssh_config.read_text(), "Host inner\n    ProxyJump web\n", *block(inner))
        sshd.ssh_config.write_text("\n".join(blocks))
        sshd.known_hosts.write_text("")
        inner.known_hosts.write_text("")
        lock(sshd)
        lock(inner)
        person = Person(PASSPHRASE, PASSPHRASE, trusts=True)
        assert await answer(sshd, person, config=HostConfig(name="app", ssh="inner")) == "hello"
        assert [key.where for key in person.keys] == [f"127.0.0.1:{sshd.port}", f"127.0.0.1:{inner.port}"]
        assert person.questions == [
            f"app, jump host web: passphrase of {sshd.client_key}",
            f"app: passphrase of {inner.client_key}",
        ]
    finally:
        await inner.stop()


def block(sshd: Sshd) -> Sequence[str]:
    """What its ssh_config says, without the line of the host."""
    return sshd.ssh_config.read_text().splitlines()[1:]
