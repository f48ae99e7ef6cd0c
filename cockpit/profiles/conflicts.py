"""Keys of a load that contradict each other: models, logs, virtual users and chains. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.model.load import LoadPlan, Request

_CLOSED = "found beside a rate or a log; allowed: closed load, with concurrency in place of the rate"


def conflicts(plan: LoadPlan) -> Iterator[tuple[str, str]]:
    """Yield each key that contradicts another, with the problem."""
    if plan.requests_per_connection and not plan.keepalive:
        yield "load.requests_per_connection", "found without keep-alive; allowed: one of the two"
    if plan.replay is not None:
        yield from _beside_log(plan)
    if plan.open:
        closed = {"load.think_time": plan.think_time, "load.cookies": plan.cookies, "request.take": plan.chained}
        yield from ((key, _CLOSED) for key, given in closed.items() if given)
    yield from _of_users(plan)


def _beside_log(plan: LoadPlan) -> Iterator[tuple[str, str]]:
    named = {
        "rate": plan.rate is not None,
        "stages": plan.stages,
        "warmup": plan.warmup,
        "urls": plan.paths,
        "[[request]]": plan.mix,
        "method": plan.method != "GET",
        "body": plan.content,
    }
    found = ", ".join(name for name, given in named.items() if given)
    if found:
        yield "load.replay_log", f"found beside {found}; allowed: without, the log has its requests and times"


def _of_users(plan: LoadPlan) -> Iterator[tuple[str, str]]:
    headers = (*plan.headers, *(header for request in plan.mix for header in request.headers))
    if plan.cookies and any(name.lower() == "cookie" for name, _ in headers):
        yield "load.cookies", "found beside a header Cookie; allowed: one of the two"
    if plan.sockets_per_user > 1 and (plan.chained or not plan.cookies):
        yield "load.sockets_per_user", "found without cookies, or beside take; allowed: cookies of independent requests"
    if plan.chained:
        yield from _of_chain(plan.mix)


def _of_chain(chain: tuple[Request, ...]) -> Iterator[tuple[str, str]]:
    missing = {take.name for request in chain for take in request.take}
    for request in chain:
        if request.weight != 1:
            yield f"request {request.name}.weight", "found in a chain, whose requests are sent in order; leave it out"
        for name in sorted(missing):
            if _holds(request, f"{{{name}}}"):
                yield f"request {request.name}", f"found {{{name}}} before a request has taken it"
        missing -= {take.name for take in request.take}


def _holds(request: Request, text: str) -> bool:
    texts = (request.url, *(value for _, value in request.headers))
    return any(text in each for each in texts) or text.encode() in request.content
