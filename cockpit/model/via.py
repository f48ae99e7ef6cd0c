"""Commands that reach a host: `docker exec -i web1`, or a short name, `docker:web1`. Pure."""

from __future__ import annotations

import re
import shlex

from cockpit.model.errors import UsageError

# Enters all namespaces of the main process of a unit, which is the first argument ($0).
_ENTER_UNIT = (
    'p=$(systemctl show -P MainPID "$0"); [ "${p:-0}" != 0 ] || { echo "unit $0 is not running" >&2; exit 1; }; '
    'exec nsenter -a -t "$p" "$@"'
)
# Command of each kind of short name.
_SHORT = {
    "docker": "docker exec -i {}",
    "podman": "podman exec -i {}",
    "lxc": "lxc exec {} --",
    "incus": "incus exec {} --",
    # As root with its HOME. Background programs of a command, such as the guard of a change, outlive the command.
    "machine": "systemd-run -M {} --uid=root -p KillMode=process --pipe --wait --collect -q",
    "unit": f"sh -c {shlex.quote(_ENTER_UNIT.replace('{', '{{').replace('}', '}}'))} {{}}",
}
_POD = re.compile(r"kubectl:(?:(?P<namespace>[^/]+)/)?(?P<pod>[^/]+)(?:/(?P<container>[^/]+))?")
# A name that is not an option (no leading -).
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@:-]*")


def command_of(via: str) -> str:
    """Return the sh command line that runs its arguments on the host. Raises UsageError."""
    kind, colon, name = via.partition(":")
    if pod := _POD.fullmatch(via):
        parts = {key: _checked(via, text) for key, text in pod.groupdict().items() if text}
        namespace = f"-n {shlex.quote(parts['namespace'])} " if "namespace" in parts else ""
        container = f" -c {shlex.quote(parts['container'])}" if "container" in parts else ""
        return f"kubectl exec -i {namespace}{shlex.quote(parts['pod'])}{container} --"
    if colon and kind == "kubectl":
        raise UsageError(f"via = {via!r} is not a pod; write it as kubectl:NAMESPACE/POD/CONTAINER")
    if colon and kind in _SHORT:
        return _SHORT[kind].format(shlex.quote(_checked(via, name)))
    try:
        words = shlex.split(via)
    except ValueError as error:
        raise UsageError(f"via = {via!r}: {error}") from None
    if not words or not via.isprintable():
        raise UsageError(f"via = {via!r} is not a command; write it as 'docker exec -i web1' or docker:web1")
    return shlex.join(words)


def name_of(via: str) -> str:
    """Return the name of the container, pod or unit in a short name; "" for a command."""
    kind, _, name = via.partition(":")
    if pod := _POD.fullmatch(via):
        return pod["pod"]
    return name if kind in _SHORT else ""


def split_chain(destination: str) -> tuple[str | None, str]:
    """Split `root@vm1/docker:web1` into the SSH destination (None: no SSH) and the short name ("": none)."""
    if name_of(destination):
        return None, destination
    ssh, slash, via = destination.partition("/")
    if slash and ssh and name_of(via):
        return ssh, via
    return destination, ""


def _checked(via: str, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise UsageError(f"via = {via!r}: invalid name {name!r}; use letters, digits and _ . @ : -")
    return name
