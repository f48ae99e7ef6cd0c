"""Servers found in the inventory of a host."""

from cockpit.servers import registry
from cockpit.servers.inventory import Inventory, parse_inventory
from cockpit.servers.kind import RunningServer


def parsed(text: str) -> Inventory:
    return parse_inventory(text, registry.FILES, registry.TEXTS)


def running(text: str) -> list[RunningServer]:
    return registry.running_servers(parsed(text))


def texts(file: str, content: str) -> str:
    """Lines of an inventory with the content of a file."""
    return "".join(f"text\t{file}\t{line}\n" for line in content.splitlines())
