"""Kinds of configuration files: the pieces of generated files, and the program's own answer which value it uses."""

import os
import re
import runpy
import shutil
import socket
import subprocess
import time
import tomllib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

INVALID = "invalid"
NOBODY = "65534"
Answer = str | None


class Question(NamedTuple):
    """Which value does the program use for `name` in `section` of the text?"""

    text: str
    name: str
    section: str | None


class Kind(NamedTuple):
    """A kind of file; see oracles.toml. `answer` answers all questions by using a folder."""

    title: str
    grammar: str
    asked: Sequence[tuple[str, str]]
    answer: str
    lines: Sequence[str]
    blocks: Sequence[Sequence[str]] = ()
    head: str = ""
    tail: str = ""
    new: str = "9"


def ask(kind: Kind, questions: Sequence[Question], folder: Path) -> list[Answer]:
    if kind.answer == "systemd":
        return systemd(questions, folder)

    def one(numbered: tuple[int, Question]) -> Answer:
        own = folder / str(numbered[0])
        shutil.rmtree(own, ignore_errors=True)
        own.mkdir()
        (own / "file").write_text(numbered[1].text)
        return ANSWERS[kind.answer](numbered[1], own / "file")

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, enumerate(questions)))


def run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    return subprocess.run(
        words,
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        env={"PATH": PATH} | environment,
    )


PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def last(found: Sequence[str]) -> Answer:
    return found[-1] if found else None


APACHE_SYNONYMS = {"maxclients": "maxrequestworkers", "maxrequestsperchild": "maxconnectionsperchild"}


def apache(question: Question, file: Path) -> Answer:
    """Read the directives of the section in what mod_info prints: conditions are decided there."""
    done = run("apache2", "-t", "-D", "DUMP_CONFIG", "-d", file.parent, "-f", file)
    if done.returncode:
        return INVALID
    within: list[str] = []
    found: Answer = None
    for line in done.stdout.splitlines():
        # A section without content is not closed.
        within = within[: (len(line) - len(line.lstrip())) // 2]
        if line.lstrip()[:1] == "<":
            within.append(line.strip(" <>"))
        elif line and not line.lstrip().startswith("#"):
            name, _, value = line.strip().partition(" ")
            same = APACHE_SYNONYMS.get(name.lower(), name.lower()) == question.name.lower()
            found = (
                value.strip().strip("\"'") if same and within == [question.section][: bool(question.section)] else found
            )
    return found


def lighttpd(question: Question, file: Path) -> Answer:
    done = run("lighttpd", "-p", "-f", file)
    if done.returncode:
        return INVALID
    within, found = ["config {"], None
    for line in map(str.strip, done.stdout.splitlines()[1:]):
        if line.endswith("{"):
            within.append(line)
        elif line.startswith("}"):
            within.pop()
        elif match := re.fullmatch(rf"{re.escape(question.name)}\s*= (\S+)", line):
            found = match[1].strip('"') if " ".join(within[1:]) == (question.section or "") else found
    return found


def squid(question: Question, file: Path) -> Answer:
    done = run("squid", "-k", "parse", "-f", file)
    if done.returncode:
        return INVALID
    return last(re.findall(rf"\| Processing: {question.name}\s+(\d+)\b", done.stderr))


def php(question: Question, file: Path) -> Answer:
    done = run("php-fpm8.2", "-c", file, "-i", PHP_INI_SCAN_DIR="")
    if "syntax error" in done.stdout + done.stderr:
        return INVALID
    found = last(re.findall(rf"(?m)^{re.escape(question.name)} => [^\n]* => (.*)$", done.stdout))
    return None if found == "60" else found


def php_fpm(question: Question, file: Path) -> Answer:
    done = run("php-fpm8.2", "-tt", "-n", "-y", file)
    if done.returncode:
        return INVALID
    pool = done.stderr.partition(f"[{question.section or 'www'}]\n")[2].partition("NOTICE:  \n")[0]
    found = last(re.findall(rf"(?m)\t{re.escape(question.name)} = (.*)$", pool))
    return None if found == "0" else found


def mariadb(question: Question, file: Path) -> Answer:
    done = run(
        "my_print_defaults", f"--defaults-file={file}", "mysqld", "server", "mariadb", "mariadbd", "mysqld-10.11"
    )
    if done.returncode:
        return INVALID
    same = question.name.replace("_", "[-_]")
    return last(re.findall(rf"(?m)^--(?:loose[-_])?{same}=(.*)$", done.stdout))


def environment_file(question: Question, file: Path) -> Answer:
    """Read the file as systemd does: its generator for environment.d prints what it has read."""
    folder = file.parent / "environment.d"
    folder.mkdir(exist_ok=True)
    shutil.copy(file, folder / "a.conf")
    program = "/usr/lib/systemd/user-environment-generators/30-systemd-environment-d-generator"
    done = run(program, XDG_CONFIG_HOME=str(file.parent), HOME=str(file.parent))
    return last(re.findall(rf"(?m)^{question.name}=(.*)$", done.stdout))


def shell(question: Question, file: Path) -> Answer:
    script = 'unset A; . "$1" >/dev/null 2>&1; printf %s "${A-unset}"'
    done = run("sh", "-c", script, "sh", file)
    return INVALID if done.returncode else None if done.stdout == "unset" else done.stdout


def python(question: Question, file: Path) -> Answer:
    try:
        found = runpy.run_path(str(file)).get(question.name)
    except Exception:
        return INVALID
    return None if found is None else str(found)


def haproxy(question: Question, file: Path) -> Answer:
    """Run HAProxy and ask it by its socket."""
    path = file.parent / "socket"
    text = question.text.replace("SOCKET", str(path))
    file.write_text(text)
    process = subprocess.Popen(
        ["haproxy", "-db", "-f", file], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={"PATH": PATH}
    )
    try:
        command, pattern = {
            "maxconn": (b"show info\n", r"(?m)^Maxconn: (.*)$"),
            "nbthread": (b"show info\n", r"(?m)^Nbthread: (.*)$"),
        }[question.name]
        if question.section != "global":
            command, pattern = b"show stat\n", r"(?m)^web,FRONTEND,(?:[^,]*,){4}(\d+),"
        output = _exchange(process, path, command)
        found = INVALID if output is None else last(re.findall(pattern, output))
        return None if found == str(os.cpu_count()) or (found and found.isdecimal() and int(found) > 1000) else found
    finally:
        process.kill()
        process.wait()


def nginx(question: Question, file: Path) -> Answer:
    """Run nginx, and read the time that it announces in its response to the host of the section."""
    path = file.parent / "socket"
    file.write_text(question.text.replace("SOCKET", str(path)).replace("FOLDER", str(file.parent)))
    process = subprocess.Popen(
        ["nginx", "-c", file, "-g", "daemon off; master_process off;"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"PATH": PATH},
    )
    try:
        host = re.search(r"server_name=(\w+)", question.section or "")
        request = f"GET / HTTP/1.1\r\nHost: {host[1] if host else 'a'}\r\n\r\n".encode()
        output = _exchange(process, path, request, b"\r\n\r\n")
        return INVALID if output is None else last(re.findall(r"(?m)^Keep-Alive: timeout=(\d+)", output))
    finally:
        process.kill()
        process.wait()


def _exchange(process: subprocess.Popen[bytes], path: Path, request: bytes, end: bytes = b"") -> str | None:
    """Send a request to the socket of a program as soon as it listens; None if the program ends before."""
    while process.poll() is None:
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(str(path))
            except OSError:
                time.sleep(0.002)
                continue
            client.sendall(request)
            output = b""
            while (part := client.recv(65536)) and not (end and end in output + part):
                output += part
            return (output + part).decode()
    return None


def systemd(questions: Sequence[Question], folder: Path) -> list[Answer]:
    """Let a manager load all units, and read its state. It refuses to run as root."""
    for number, question in enumerate(questions):
        (folder / f"u{number}.service").write_text(question.text)
    names = "\n".join(f"Wants=u{number}.service" for number in range(len(questions)))
    (folder / "all.target").write_text(f"[Unit]\nDefaultDependencies=no\n{names}\n")
    done = run(
        *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
        *("/lib/systemd/systemd", "--test", "--system", "--unit=all.target"),
        SYSTEMD_UNIT_PATH=str(folder),
        HOME="/nonexistent",
        XDG_RUNTIME_DIR=str(folder),
    )
    units = dict(re.findall(r"(?ms)^\t-> Unit (u\d+\.service):\n(.*?)(?=^\t-> Unit |\Z)", done.stdout))
    return [_of_unit(units.get(f"u{number}.service", ""), question.name) for number, question in enumerate(questions)]


def _of_unit(dump: str, name: str) -> Answer:
    if "Unit Load State: loaded" not in dump:
        return INVALID
    if name.startswith("-"):
        command = re.sub(r'"[^"]*"', "", last(re.findall(r"Command Line: (.*)", dump)) or "")
        return last(re.findall(rf" {name}[ =](\S+)", command))
    if name.isupper():
        return last(re.findall(rf"\tEnvironment: {name}=(.*)", dump))
    found = last(re.findall(rf"\t{name}: (.*)", dump))
    return None if found == "0" else found


ANSWERS: dict[str, Callable[[Question, Path], Answer]] = {
    answer.__name__: answer
    for answer in (
        *(apache, nginx, haproxy, squid, lighttpd, php, php_fpm, mariadb),
        *(environment_file, shell, python),
    )
}
KINDS: dict[str, Kind] = {}
for _title, _fields in tomllib.loads(Path(__file__).with_name("oracles.toml").read_text()).items():
    _like = KINDS[_fields.pop("like")]._asdict() if "like" in _fields else {"answer": _fields["grammar"]}
    KINDS[_title] = Kind(**_like | _fields | {"title": _title})
