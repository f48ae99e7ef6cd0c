"""Events of a profiled run: stacks of Apache prefork, before and after a change that ends its forks."""

from collections.abc import Iterator, Mapping
from functools import cache

from msgspec.structs import replace

from cockpit.model import events as ev
from cockpit.model.host.samples import HostConfig, HostFacts
from cockpit.model.stacks import ProfilerChanged, StackSlice
from tests.analysis.test_segment_verdicts import toggled
from tests.model.hosts import process, reading

SYSCALL = "entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k]"
WORKER = "apache2;_start;main;ap_run_mpm;[mod_mpm_prefork.so];make_child"
CONNECTION = f"{WORKER};child_main;ap_process_http_connection"
REQUEST = f"{CONNECTION};ap_process_request;ap_run_handler"
SERVING: Mapping[str, int] = {
    f"{REQUEST};default_handler;apr_file_open;open64;{SYSCALL};do_sys_openat2_[k];path_openat_[k]": 21,
    f"{REQUEST};default_handler;ap_core_output_filter;writev;{SYSCALL};sock_write_iter_[k];tcp_sendmsg_[k]": 64,
    f"{REQUEST};ap_run_log_transaction;ap_default_log_writer;write;{SYSCALL};ext4_file_write_iter_[k]": 17,
    f"{CONNECTION};ap_read_request;apr_bucket_read;read;{SYSCALL};tcp_recvmsg_[k]": 30,
    f"{WORKER};child_main;apr_socket_accept;accept4;{SYSCALL};inet_csk_accept_[k]": 26,
    f"{REQUEST};default_handler;apr_palloc;__memset_avx2": 9,
}
FORKING: Mapping[str, int] = {
    f"{WORKER};fork;__libc_fork;{SYSCALL};kernel_clone_[k];copy_process_[k];dup_mm_[k];copy_page_range_[k]": 48,
    f"{WORKER};fork;__libc_fork;{SYSCALL};kernel_clone_[k];wake_up_new_task_[k]": 7,
    f"{WORKER};child_main;apr_pool_create_ex;mmap64;{SYSCALL};do_mmap_[k];mmap_region_[k]": 14,
    f"{WORKER};clean_child_exit;exit_group;{SYSCALL};do_exit_[k];exit_mmap_[k];unmap_vmas_[k]": 33,
}


def slice_of(t: float, stacks: Mapping[str, int], other: int = 0, host: str = "web1") -> StackSlice:
    """Return the slice of a host that ends at `t`."""
    samples = sum(stacks.values()) + other
    counts = {"stacks": dict(stacks), "other": other, "samples": samples}
    return StackSlice(t=t, start=t - 10, host=host, source="cpu-clock", hz=49, cost=0.031, **counts)  # type: ignore[arg-type]


@cache
def profiled(hostile: bool = False) -> tuple[ev.AnyEvent, ...]:
    """Return two segments of 60 s: the second has 30% more requests/s and no forks; `hostile`: odd names in it."""
    return tuple(sorted(_events(hostile), key=lambda event: event.t))


def _events(hostile: bool) -> Iterator[ev.AnyEvent]:
    for event in toggled((1000.0, 1300.0), 60):
        if isinstance(event, ev.SessionStarted):
            hosts = (HostConfig(name="web1"),)
            yield ev.SessionStarted(t=event.t, wall=event.wall, version=event.version, name=event.name, hosts=hosts)
            yield ProfilerChanged(t=0.0, host="web1", condition="running")
        else:
            yield event
    for at in range(1, 13):
        stacks = {**SERVING, **FORKING} if at <= 6 else {stack: 13 * n // 10 for stack, n in SERVING.items()}
        yield slice_of(10.0 * at, HOSTILE if hostile and at > 6 else stacks, other=3)


HOSTILE: Mapping[str, int] = {
    "php-fpm;[red]not markup[/red];[bold;[link=http://x/]here": 60,
    "php-fpm;" + ";".join(f"f{depth}" for depth in range(120)): 55,
    "php-fpm;日本語のタイトル;全角": 40,
    "php-fpm;operator<<(std::ostream&, <script>alert(1)</script>)": 30,
    **{f"php-fpm;main;f{at}": 1 for at in range(1_900)},
}


def profiled_on_two_hosts() -> tuple[ev.AnyEvent, ...]:
    """Return the events with a second host, whose profiles are those of the first."""
    events = [replace(event, host="web2") for event in profiled() if isinstance(event, StackSlice | ProfilerChanged)]
    started, *others = profiled()
    assert isinstance(started, ev.SessionStarted)
    hosts = (*started.hosts, HostConfig(name="web2"))
    return (replace(started, hosts=hosts), *sorted((*others, *events), key=lambda event: event.t))


def counted() -> tuple[ev.AnyEvent, ...]:
    """Return two segments of 60 s without profiles: half the context switches per request in the second one, no
    forks."""
    events = [event for event in profiled() if not isinstance(event, StackSlice | ProfilerChanged)]
    facts = HostFacts(hostname="web1", kernel="6.1", cpus=2, hz=100, page=4096)
    samples = [_sample(at) for at in range(121)]
    up = ev.HostChanged(t=0.0, host="web1", condition=ev.HostCondition.UP, facts=facts)
    started, *others = events
    return (started, up, *sorted((*others, *samples), key=lambda event: event.t))


def _sample(at: int) -> ev.HostSample:
    first, second = min(at, 60), max(0, at - 60)
    worker = replace(
        process(1, utime=50 * at),
        ran=500_000_000 * at,
        waited=250_000_000 * first,
        switches=8_000 * first + 5_200 * second,
        left=(6_000 * first + 5_000 * second, 2_000 * first + 200 * second),
    )
    return ev.HostSample(
        t=float(at),
        host="web1",
        round_trip=0.001,
        reading=reading(float(at), processes=(worker,), forks=100 + 10 * first, processes_cpu=50 * at),
    )
