"""What stands below a host's figures, as lines of text."""

from __future__ import annotations

from msgspec.structs import replace

from cockpit.tui.draw_context import Detail, DrawContext
from cockpit.tui.hosts.details import draw_detail
from tests.tui.driving import plain, scene_of
from tests.tui.topology import topology


def with_host(scene: DrawContext, name: str, **values: object) -> DrawContext:
    """The scene with some of a host's state put in the place of what the fold made."""
    changed = replace(scene.state.hosts[name], **values)
    state = replace(scene.state, hosts={**scene.state.hosts, name: changed})
    return DrawContext(state=state, view=scene.view, mode=scene.mode)


def detail(scene: DrawContext, width: int = 100, height: int = 20) -> list[str]:
    assert scene.host is not None
    return plain(draw_detail(scene.host, scene, "", width, height).lines)


def looking_at(kind: str, place: int = 0, **view: object) -> DrawContext:
    return scene_of(topology(), details={"web1": Detail(kind, place)}, **view)  # type: ignore[arg-type]
