"""ssh_config and known_hosts are read as by OpenSSH; in the lab, the results are compared with its client."""

import asyncio
import itertools
import subprocess
from collections.abc import Iterable
from pathlib import Path

import asyncssh
import pytest

from cockpit.hosts.ssh import config as ssh_config
from cockpit.hosts.ssh.aliases import aliases
from cockpit.hosts.ssh.known_hosts import KnownHosts, read_revoked
from cockpit.hosts.ssh.settings import Destination, read_settings
from cockpit.model.errors import HostKeyChanged, HostKeyUnknown, UsageError
from cockpit.profiles.reader import parse_profile
from cockpit.setup.doctor_host import diagnose_host
from tests.data import data_of
from tests.hosts.connecting import echo_hello, new_key, refusal
from tests.hosts.sshd import Sshd, public

DATA = data_of(__file__)

# Each sets a port and a user, depending on what applies to `web`.
CONFIGS = DATA["configs"]


@pytest.mark.lab
@pytest.mark.parametrize("options", [(), ("-p", "2222", "-l", "admin")], ids=["alias", "user and port"])
def test_settings_match_ssh_g(tmp_path: Path, options: tuple[str, ...]) -> None:
    """`Match` and `Host` in every form; the user and port of the destination take precedence."""
    # ssh(1) takes relative includes from the home of the user database, whatever HOME says.
    part, file = tmp_path / "part", tmp_path / "config"
    part.write_text("Host nobody\n Port 1\nMatch all\n Port 2203\n")
    for name, config in CONFIGS.items():
        file.write_text(config.replace("Include part", f"Include {part}"))
        output = subprocess.run(["ssh", "-G", "-F", file, *options, "web"], capture_output=True, text=True)
        assert output.returncode == 0, output.stderr
        expected = dict(line.split(" ", 1) for line in output.stdout.splitlines())
        found = read_settings(Destination("web", "admin", 2222) if options else Destination("web"), file)
        assert (found.host, str(found.port), found.user) == tuple(
            expected[key] for key in ("hostname", "port", "user")
        ), name


@pytest.mark.lab
async def test_match_exec_and_system_config_with_openssh(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_config, "PROGRAM", "ssh")
    ssh_config._defaults.cache_clear()
    system = sshd.directory / "system"
    monkeypatch.setattr("cockpit.hosts.ssh.settings.SYSTEM_CONFIG", str(system))
    config = sshd.ssh_config.read_text()
    sshd.ssh_config.write_text('Match exec "test 1 = 1"\n' + config.replace("Host web\n", ""))
    assert await echo_hello(sshd) == "hello"
    system.write_text(config)
    settings = read_settings(Destination("web"), None)
    assert (settings.port, settings.identities) == (sshd.port, (sshd.client_key,))
    included = sshd.directory / "included"
    for text, problem in (
        ("# a comment\nCompression perhaps\n", 'line 2: unsupported option "perhaps"'),
        ("Match exec\n", "line 1: "),
        ("Host web\n Match nonsense x\n", "line 2: "),
        ('Port "22\n', "line 1: "),
    ):
        included.write_text(text)
        sshd.ssh_config.write_text(f"Include {included}\n{config}")
        with pytest.raises(UsageError, match=f"ssh_config {sshd.ssh_config}: .*{included}:? {problem}"):
            await echo_hello(sshd)


def test_problems_that_ssh_reports_are_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, file = tmp_path / "ssh", tmp_path / "config"
    problems = f'"{file} line 2: bad" "{file} line 3: worse" "{file}: terminating, 2 bad"'
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" {problems} >&2\nexit 255\n')
    program.chmod(0o755)
    monkeypatch.setattr(ssh_config, "PROGRAM", str(program))
    with pytest.raises(UsageError, match=f"^ssh_config {file}: {file} line 2: bad; {file} line 3: worse$"):
        read_settings(Destination("web"), file)
    program.write_text("#!/bin/sh\nexit 255\n")
    with pytest.raises(UsageError, match="ssh -G: exit status 255"):
        read_settings(Destination("web"), file)
    program.write_text("#!/bin/sh\nexec sleep 1000\n")
    monkeypatch.setattr(ssh_config, "TIMEOUT", 0.1)
    with pytest.raises(UsageError, match=r"took longer than 0\.1 s"):
        read_settings(Destination("web"), file)


async def test_config_is_read_without_openssh(sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_config, "PROGRAM", "no-such-ssh")
    assert await echo_hello(sshd) == "hello"
    file = tmp_path / "config"
    file.write_text(
        "Host web\n HostName real\n Port 2201\n IdentitiesOnly yes\n ProxyJump a@jump\n UserKnownHostsFile /a /b\n"
    )
    found = read_settings(Destination("web", "admin"), file)
    assert (found.host, found.port, found.user) == ("real", 2201, "admin")
    assert found.known_hosts[:2] == (Path("/a"), Path("/b")) and found.options.is_on("identitiesonly")
    assert found.jumps == (Destination("jump", "a"),)
    assert "without OpenSSH's client" in found.unsupported[0][0]
    file.write_text("Host web\n Port many\n")
    with pytest.raises(UsageError, match=f"ssh_config {file}: {file} line 2: "):
        read_settings(Destination("web"), file)
    file.unlink()
    with pytest.raises(UsageError, match=f"ssh_config {file}: "):
        read_settings(Destination("web"), file)


WITH_PORT = ("nothing", "the key", "another key", "another kind")
WITHOUT_PORT = ("nothing", "the key", "another key", "the key is revoked")


def known_hosts_text(name: str, sshd: Sshd, with_port: str, without_port: str) -> str:
    entries = {
        "the key": public(sshd.host_key),
        "another key": public(new_key()),
        "another kind": public(new_key("ecdsa-sha2-nistp256")),
        "the key is revoked": public(sshd.host_key),
    }
    marker = "@revoked " if without_port == "the key is revoked" else ""
    lines = [f"[{name}]:{sshd.port} {entries[with_port]}\n"] if with_port in entries else []
    return "".join([*lines, f"{marker}{name} {entries[without_port]}\n" if without_port in entries else ""])


def is_trusted(with_port: str, without_port: str, alias: bool) -> bool:
    """An entry without port applies to another port only if `[host]:port` has no key; an alias has no port."""
    if without_port == "the key is revoked":
        return False
    return (with_port if with_port != "nothing" and not alias else without_port) == "the key"


@pytest.mark.parametrize("alias", [False, True])
async def test_known_hosts_trust(sshd: Sshd, alias: bool) -> None:
    name, key = "the-web" if alias else "127.0.0.1", public(sshd.host_key)
    for with_port, without_port in itertools.product(WITH_PORT, WITHOUT_PORT):
        sshd.known_hosts.write_text(known_hosts_text(name, sshd, with_port, without_port))
        known = KnownHosts([sshd.known_hosts], name, sshd.port, is_alias=alias)
        trusted, revoked = map(publics, (known.trusted, known.revoked))
        assert (key in trusted and key not in revoked) == is_trusted(with_port, without_port, alias), (
            with_port,
            without_port,
        )
    sshd.known_hosts.write_text(known_hosts_text("127.0.0.1", sshd, "another key", "the key"))
    assert f"{sshd.known_hosts} line 1" in await refusal(sshd, HostKeyChanged)


def publics(keys: Iterable[asyncssh.SSHKey]) -> set[str]:
    return {public(key) for key in keys}


@pytest.mark.lab
@pytest.mark.parametrize("alias", [False, True])
async def test_known_hosts_trust_matches_ssh(sshd: Sshd, alias: bool) -> None:
    if alias:
        sshd.write_config(HostKeyAlias="the-web")
    for with_port, without_port in itertools.product(WITH_PORT, WITHOUT_PORT[:3]):
        name = "the-web" if alias else "127.0.0.1"
        sshd.known_hosts.write_text(known_hosts_text(name, sshd, with_port, without_port))
        assert await ssh_trusts(sshd) == is_trusted(with_port, without_port, alias), (with_port, without_port)


async def ssh_trusts(sshd: Sshd) -> bool:
    """Whether ssh(1) accepts the server's key without a prompt."""
    client = await asyncio.create_subprocess_exec(
        *("ssh", "-F", sshd.ssh_config, "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "web", "true"),
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, output = await client.communicate()
    assert client.returncode == 0 or b"erification failed" in output or b"evoked" in output, output
    return client.returncode == 0


async def test_revoked_host_keys_are_refused(sshd: Sshd) -> None:
    authority = new_key()
    file = sshd.directory / "revoked 127.0.0.1"
    sshd.write_config(RevokedHostKeys=f'"{sshd.directory}/revoked %h"')
    file.write_text(f"# revoked in autumn\n\n{public(new_key())}\n{public(new_key())} a comment\n")
    assert await echo_hello(sshd) == "hello"
    for revoked in (sshd.host_key, authority):
        if revoked is authority:
            await sshd.certify(authority)
            sshd.write_config(RevokedHostKeys=f'"{sshd.directory}/revoked %h"')
            sshd.known_hosts.write_text(f"@cert-authority [127.0.0.1]:{sshd.port} {public(authority)}\n")
        file.write_text(f"{public(new_key())}\n{public(revoked)} a comment\n")
        message = await refusal(sshd, HostKeyChanged)
        assert "the host key of 127.0.0.1" in message and "was refused: " in message and "revoked" in message
    file.unlink()
    with pytest.raises(UsageError, match="No such file"):
        await echo_hello(sshd)


def test_unreadable_revoked_host_keys_refuse_all_keys(tmp_path: Path) -> None:
    file = tmp_path / "revoked"
    for content, problem in (
        (b"SSHKRL\n\0\0\0\0\x01", "binary KRLs are not supported; list the public keys, one per line"),
        (b"nonsense\n", "line 1 is not a public key"),
        (None, "No such file or directory; ssh refuses every host key without it"),
    ):
        file.unlink(missing_ok=True) if content is None else file.write_bytes(content)
        with pytest.raises(UsageError, match=f"^web1: RevokedHostKeys {file}: {problem}$"):
            read_revoked("web1", file)


async def test_ignored_options_are_reported(sshd: Sshd) -> None:
    """By doctor, and in the error about an unknown key."""
    sshd.write_config(KnownHostsCommand="/usr/bin/keys %H", RequiredRSASize="3072")
    profile = parse_profile(
        '[target]\nurl = "http://127.0.0.1/"\n[[host]]\nname = "web1"\nssh = "web"\n', "p", "p.toml"
    )
    findings = await diagnose_host(profile, profile.hosts[0], sshd.ssh_config)
    notes = [f"{finding.text}; {finding.fix}" for finding in findings if finding.level == "note"]
    assert notes == [
        "ssh_config: KnownHostsCommand /usr/bin/keys %H; not run by cockpit; put the host's key into known_hosts",
        "ssh_config: RequiredRSASize 3072; not checked by cockpit; remove shorter RSA keys from known_hosts and"
        " authorized_keys",
    ]
    sshd.known_hosts.write_text("")
    assert "KnownHostsCommand is not run by cockpit" in await refusal(sshd, HostKeyUnknown)
    sshd.write_config()
    assert read_settings(Destination("web"), sshd.ssh_config).unsupported == ()


def test_host_names_are_listed_once_without_patterns(tmp_path: Path) -> None:
    home = tmp_path / "home" / ".ssh"
    (home / "conf.d").mkdir(parents=True)
    (home / "conf.d" / "b.conf").write_text("Host db1\n  HostName 10.0.0.9\n")
    (home / "conf.d" / "a.conf").write_text("Host web1\nInclude config\n")
    (home / "config").write_text(
        "# Host never\nHost web1 web2 *.example.com !bad\n  User root\nhost=proxy1\nInclude conf.d/*.conf\n"
        'Match host x\nHost *\nHost "with space\n'
    )
    assert aliases(home / "config") == ["web1", "web2", "proxy1", "db1"]


def test_missing_file_has_no_names(tmp_path: Path) -> None:
    assert aliases(tmp_path / "none") == []
