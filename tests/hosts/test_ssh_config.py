"""ssh_config and known_hosts are read as by OpenSSH; the results are compared with its client."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path

import asyncssh
import pytest

from cockpit.hosts.feed import check_host
from cockpit.hosts.ssh import connect
from cockpit.hosts.ssh_settings import Destination, read_settings
from cockpit.model.errors import CockpitError, HostKeyChanged, HostKeyUnknown, UsageError
from cockpit.profiles.reader import parse_profile
from cockpit.setup.doctor_host import diagnose_host
from tests.hosts.sshd import Sshd, public
from tests.hosts.test_ssh import WEB, echo_hello, openssh, ssh_keygen

needs_ssh = pytest.mark.skipif(not shutil.which("ssh"), reason="needs OpenSSH's client")

# Each sets a port and a user, depending on what applies to `web`.
CONFIGS = {
    "exec with an equals sign": 'Match exec "test 1 = 1"\n Port 2201\nMatch all\n User last\n',
    "exec that fails": 'Match exec "test 1 = 2"\n Port 2201\n',
    "exec with tokens": 'Host web\n HostName real\nMatch exec "test %h-%n-%p = real-web-22"\n Port 2201\n',
    "exec that is negated": "Match !exec false\n Port 2201\n",
    "exec after a criterion that fails": "Match originalhost other exec true\n Port 2201\n",
    "first value": "Host web\n Port 2201\nHost *\n Port 2202\n User somebody\n",
    "patterns": "Host *.org !web w?b\n Port 2201\nHost ?eb !other\n Port 2202\n",
    "spelling": 'hOsT=web\n\tPORT = "2201"   # why\n user  "some body"\n',
    "host and original host": "Host web\n HostName real\nMatch host real originalhost web\n Port 2201\n",
    "hostname with a token": "Host web\n HostName %h.example.org\nMatch host web.example.org\n Port 2201\n",
    "user": "Match user root\n Port 2201\n",
    "user that was set": "Host web\n User admin\nMatch user adm*,!root\n Port 2201\n",
    "final": "Match final host real\n Port 2201\nHost web\n HostName real\n",
    "include": "Host web\n Include part\n User after\nHost *\n Port 2202\n",
    "include where nothing applies": "Host other\n Include part\nHost *\n Port 2202\n",
    "include of nothing": "Include none/*\nPort 2201\n",
    "brackets": "Host we[b]\n Port 2201\n",
}


@needs_ssh
@pytest.mark.parametrize("config", CONFIGS)
def test_settings_match_ssh_g(tmp_path: Path, config: str) -> None:
    """`Match` and `Host` in every form."""
    # ssh(1) takes relative includes from the home of the user database, whatever HOME says.
    part = tmp_path / "part"
    part.write_text("Host nobody\n Port 1\nMatch all\n Port 2203\n")
    file = tmp_path / "config"
    file.write_text(CONFIGS[config].replace("Include part", f"Include {part}"))
    output = subprocess.run(["ssh", "-G", "-F", file, "web"], capture_output=True, text=True, timeout=60)
    assert output.returncode == 0, output.stderr
    expected = dict(line.split(" ", 1) for line in output.stdout.splitlines())
    found = read_settings(Destination("web"), file)
    assert (found.host, str(found.port), found.user) == (expected["hostname"], expected["port"], expected["user"])


def test_asyncssh_reads_config_without_openssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cockpit.hosts.ssh_config.PROGRAM", "no-such-ssh")
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


async def test_host_is_reached_without_openssh(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cockpit.hosts.ssh_config.PROGRAM", "no-such-ssh")
    assert await echo_hello(sshd) == "hello"


@needs_ssh
def test_destination_takes_precedence(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text('Match user admin exec "test %p-%r = 2222-admin"\n HostName real\nHost *\n Port 1\n User nobody\n')
    output = subprocess.run(
        ["ssh", "-G", "-F", file, "-p", "2222", "admin@web"], capture_output=True, text=True, timeout=60
    ).stdout
    assert "hostname real\n" in output
    found = read_settings(Destination("web", "admin", 2222), file)
    assert (found.host, found.port, found.user) == ("real", 2222, "admin")


async def test_match_exec_is_evaluated(sshd: Sshd) -> None:
    sshd.ssh_config.write_text('Match exec "test 1 = 1"\n' + sshd.ssh_config.read_text().replace("Host web\n", ""))
    assert await echo_hello(sshd) == "hello"


async def test_invalid_value_error_names_file_and_line(sshd: Sshd) -> None:
    included = sshd.directory / "included"
    included.write_text("# a comment\nCompression perhaps\n")
    sshd.ssh_config.write_text(f"Include {included}\n" + sshd.ssh_config.read_text())
    with pytest.raises(UsageError, match=f'{included} line 2: unsupported option "perhaps"'):
        await connect(WEB, sshd.ssh_config)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Match exec\n", "line 1: "),
        ("Host web\n Match nonsense x\n", "line 2: "),
        ('Port "22\n', "line 1: "),
    ],
)
def test_invalid_line_is_named(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(UsageError, match=f"{file}:? {problem}"):
        read_settings(Destination("web"), file)


def new_key() -> asyncssh.SSHKey:
    return asyncssh.generate_private_key("ssh-ed25519")


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


async def cockpit_trusts(sshd: Sshd) -> bool:
    try:
        await echo_hello(sshd)
    except CockpitError:
        return False
    return True


@needs_ssh
@pytest.mark.parametrize("alias", [False, True])
@pytest.mark.parametrize("with_port", ["nothing", "the key", "another key", "another kind"])
@pytest.mark.parametrize("without_port", ["nothing", "the key", "another key", "the key is revoked"])
async def test_known_hosts_trust_matches_ssh(sshd: Sshd, with_port: str, without_port: str, alias: bool) -> None:
    """An entry without port applies to another port only if `[host]:port` has no key."""
    entries = {
        "nothing": "",
        "the key": public(sshd.host_key),
        "another key": public(new_key()),
        "another kind": public(asyncssh.generate_private_key("ecdsa-sha2-nistp256")),
        "the key is revoked": public(sshd.host_key),
    }
    name = "the-web" if alias else "127.0.0.1"
    if alias:
        sshd.write_config(HostKeyAlias="the-web")
    lines = []
    if with_port != "nothing":
        lines.append(f"[{name}]:{sshd.port} {entries[with_port]}")
    if without_port != "nothing":
        marker = "@revoked " if without_port == "the key is revoked" else ""
        lines.append(f"{marker}{name} {entries[without_port]}")
    sshd.known_hosts.write_text("".join(f"{line}\n" for line in lines))
    trusted = await cockpit_trusts(sshd)
    if without_port == "the key is revoked":
        assert not trusted
    else:
        assert trusted == await ssh_trusts(sshd)


async def test_plain_entry_is_ignored_if_port_has_another_key(sshd: Sshd) -> None:
    other = public(new_key())
    sshd.known_hosts.write_text(f"127.0.0.1 {public(sshd.host_key)}\n[127.0.0.1]:{sshd.port} {other}\n")
    with pytest.raises(HostKeyChanged, match=f"CHANGED.*{sshd.known_hosts} line 2"):
        await echo_hello(sshd)


@pytest.mark.parametrize("plain", ["the authority", "another"])
async def test_authority_for_port_takes_precedence(sshd: Sshd, plain: str) -> None:
    authority, other = new_key(), new_key()
    await sshd.certify(authority)
    with_port, without = (other, authority) if plain == "the authority" else (authority, other)
    sshd.known_hosts.write_text(
        f"@cert-authority 127.0.0.1 {public(without)}\n@cert-authority [127.0.0.1]:{sshd.port} {public(with_port)}\n"
    )
    assert await cockpit_trusts(sshd) == (plain == "another")


@needs_ssh
@pytest.mark.parametrize("listed", ["the key", "another key", "the authority of its certificate"])
async def test_revoked_host_keys_are_refused(sshd: Sshd, listed: str) -> None:
    authority = new_key()
    if listed.startswith("the authority"):
        await sshd.certify(authority)
        sshd.known_hosts.write_text(f"@cert-authority [127.0.0.1]:{sshd.port} {public(authority)}\n")
    revoked = {"the key": sshd.host_key, "another key": new_key()}.get(listed, authority)
    file = sshd.directory / "revoked %h"
    file.write_text(f"# revoked in autumn\n\n{public(new_key())}\n{public(revoked)} a comment\n")
    file.rename(sshd.directory / "revoked 127.0.0.1")
    sshd.write_config(RevokedHostKeys=f'"{sshd.directory}/revoked %h"')
    if listed == "another key":
        assert await echo_hello(sshd) == "hello"
    else:
        with pytest.raises(HostKeyChanged, match=r"the host key of 127\.0\.0\.1.* was refused: .*revoked"):
            await echo_hello(sshd)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"SSHKRL\n\0\0\0\0\x01", "binary KRLs are not supported; list the public keys, one per line"),
        (b"nonsense\n", "line 1 is not a public key"),
        (None, "No such file or directory; ssh refuses every host key without it"),
    ],
)
async def test_unreadable_revoked_host_keys_refuse_all_keys(sshd: Sshd, content: bytes | None, problem: str) -> None:
    file = sshd.directory / "revoked"
    if content is not None:
        file.write_bytes(content)
    sshd.write_config(RevokedHostKeys=str(file))
    with pytest.raises(UsageError, match=f"^web1: RevokedHostKeys {file}: {problem}$"):
        await connect(WEB, sshd.ssh_config)


@openssh
async def test_binary_krl_is_refused(sshd: Sshd) -> None:
    (sshd.directory / "listed.pub").write_text(public(sshd.host_key) + "\n")
    krl = sshd.directory / "krl"
    await ssh_keygen("-q", "-k", "-f", str(krl), str(sshd.directory / "listed.pub"))
    sshd.write_config(RevokedHostKeys=str(krl))
    with pytest.raises(UsageError, match="binary KRLs are not supported"):
        await check_host(WEB, sshd.ssh_config)


async def test_doctor_warns_about_ignored_options(sshd: Sshd) -> None:
    sshd.write_config(KnownHostsCommand="/usr/bin/keys", RequiredRSASize="3072")
    profile = parse_profile(
        '[target]\nurl = "http://127.0.0.1/"\n[[host]]\nname = "web1"\nssh = "web"\n', "p", "p.toml"
    )
    findings = await diagnose_host(profile, profile.hosts[0], sshd.ssh_config)
    notes = [f"{finding.text}; {finding.fix}" for finding in findings if finding.level == "note"]
    assert notes == [
        "ssh_config: KnownHostsCommand /usr/bin/keys; not run by cockpit; put the host's key into known_hosts",
        "ssh_config: RequiredRSASize 3072; not checked by cockpit; remove shorter RSA keys from known_hosts and"
        " authorized_keys",
    ]


async def test_unknown_key_error_mentions_ignored_command(sshd: Sshd) -> None:
    sshd.write_config(KnownHostsCommand=f"/bin/echo {public(sshd.host_key)}")
    sshd.known_hosts.write_text("")
    with pytest.raises(HostKeyUnknown, match="KnownHostsCommand is not run by cockpit"):
        await echo_hello(sshd)


def test_ignored_options_are_listed(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text("Host web\n KnownHostsCommand /usr/bin/keys %H\n RequiredRSASize 3072\nHost *\n User root\n")
    assert [name for name, _ in read_settings(Destination("web"), file).unsupported] == [
        "KnownHostsCommand /usr/bin/keys %H",
        "RequiredRSASize 3072",
    ]
    assert read_settings(Destination("app"), file).unsupported == ()
