"""The load of each variant of a study at each load level. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from cockpit.model.load import LoadPlan
from cockpit.model.study import Study, Variant


def load_of(study: Study, variant: Variant, level: float | None) -> LoadPlan:
    """Return the load of a variant at a load level (None: that of the plan and the variant)."""
    plan = at_target(study.plan, variant.url) if variant.url else study.plan
    given: dict[str, Any] = {
        name: value
        for name in ("concurrency", "rate", "keepalive", "paths")
        if (value := getattr(variant, name)) is not None
    }
    if variant.mix:
        given["mix"] = tuple(request for request in plan.mix if request.name in variant.mix)
    if level is not None:
        given |= {"rate": level} if plan.open else {"concurrency": int(level)}
    return located(replace(plan, **given), dict(study.addresses))


def warm_up_of(study: Study, variant: Variant) -> LoadPlan:
    """Return the load that follows a set-up: the variant's highest level, for the study's warm-up."""
    plan = load_of(study, variant, max(study.levels, default=None))
    return replace(plan, requests=None, warmup=0.0, duration=study.warm_up)


def at_target(plan: LoadPlan, url: str) -> LoadPlan:
    """Return the plan at another target: its URL, and the requests of a mix at that server."""
    to = urlsplit(url)
    mix = tuple(
        replace(one, url=urlsplit(one.url)._replace(scheme=to.scheme, netloc=to.netloc).geturl()) for one in plan.mix
    )
    return replace(plan, url=url, mix=mix)


def located(plan: LoadPlan, addresses: Mapping[str, str]) -> LoadPlan:
    """Return the plan with its connections made to the address of its URL's name, if that is known."""
    parts = urlsplit(plan.url)
    address = addresses.get(parts.hostname or "")
    if not address or plan.connect_to or plan.unix:
        return plan
    shown = f"[{address}]" if ":" in address else address
    return replace(plan, connect_to=f"{shown}:{parts.port or (443 if parts.scheme == 'https' else 80)}")


def names_of(study: Study) -> tuple[str, ...]:
    """Return the servers' names in the URLs of all variants."""
    urls = [study.plan.url, *(variant.url for variant in study.variants if variant.url)]
    return tuple(dict.fromkeys(name for url in urls if (name := urlsplit(url).hostname)))
