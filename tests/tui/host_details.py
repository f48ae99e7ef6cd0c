"""Details below a host's metrics as lines of text, and draw contexts that show them."""

from msgspec.structs import replace

from cockpit.tui.draw_context import Detail, DrawContext
from cockpit.tui.hosts.details import draw_detail
from tests.tui.driving import context_of, plain
from tests.tui.topology import topology


def with_host(context: DrawContext, name: str, **values: object) -> DrawContext:
    """Return the context with fields of a host's state replaced."""
    changed = replace(context.state.hosts[name], **values)
    state = replace(context.state, hosts={**context.state.hosts, name: changed})
    return DrawContext(state=state, view=context.view, mode=context.mode)


def detail(context: DrawContext, width: int = 100, height: int = 20) -> list[str]:
    return plain(draw_detail(context.host, context, context.detail(context.host), "", width, height).lines)


def detail_context(kind: str, place: int = 0, **view: object) -> DrawContext:
    return context_of(topology(), details={"web1": Detail(kind, place)}, **view)  # type: ignore[arg-type]
