"""The lab by hand: `python -m tests.lab up [HOST...] | down | status`."""

import argparse
import sys

from tests.lab import quotas, state
from tests.lab.cpus import generator_cpu
from tests.lab.errors import LabError
from tests.lab.hosts import HOSTS, NAMES
from tests.lab.lab import Lab
from tests.lab.requirements import missing


def describe(lab: Lab) -> str:
    """Return the hosts of a lab with a URL of each, and commands to copy."""
    pin = f"taskset -c {generator_cpu()} "
    cockpit = f"{pin}.venv/bin/cockpit run profiles/spare-servers.toml --ssh-config {lab.ssh_config}"
    served = {spec.name: ", ".join(service.name for service in spec.services) for spec in HOSTS}
    lines = [f"  {host.name:7}  {host.url:36}  {served[host.name]}, sshd" for host in lab.hosts.values()]
    lines += ["", f"{lab.cpus}, the generator belongs on CPU {generator_cpu()}:", ""]
    if "web1" in lab.hosts:
        lines += [f"  {cockpit} --target {lab.web1.url}", f"  {pin}ab -c 20 -n 10000 {lab.web1.url}"]
    lines += [f"  ssh -F {lab.ssh_config} {name}" for name in lab.hosts]
    return "\n".join([*lines, "", "take it down with: make lab-down"])


def up(names: list[str]) -> int:
    """Bring up the named hosts (default all)."""
    lab = Lab.by_hand()
    if lab is not None:
        print(f"the lab is already up\n{describe(lab)}")
        return 0
    absent = missing()
    if absent:
        print(f"the lab cannot run here; missing: {', '.join(absent)}", file=sys.stderr)
        return 1
    lab = Lab.start(*(names or NAMES), stay=True, share=quotas.SHARE)
    print(f"the lab is up\n{describe(lab)}")
    return 0


def down() -> int:
    """Take down the lab brought up by hand, and remove remains of dead labs; labs of running tests stay."""
    lab = Lab.by_hand()
    if lab is None:
        print("no lab is up")
    else:
        lab.stop()
        print("the lab is down; nothing of it is left")
    for number in state.known():
        state.clear(number)
    return 0


def status() -> int:
    """Return 0 if a lab is up by hand, otherwise 1."""
    lab = Lab.by_hand()
    print("the lab is not up" if lab is None else f"the lab is up\n{describe(lab)}")
    return int(lab is None)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab", description="The lab, by hand.")
    parser.add_argument("action", choices=("up", "down", "status"))
    parser.add_argument("host", nargs="*", help="with up: hosts to bring up (default all)")
    options = parser.parse_args()
    actions = {"up": lambda: up(options.host), "down": down, "status": status}
    try:
        return actions[options.action]()
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
