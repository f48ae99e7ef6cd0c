"""Counters in probe frames: unchanged ones are kept, invalid numbers are refused."""

from __future__ import annotations

import pytest

from cockpit.hosts.counters import CounterTable
from cockpit.hosts.frames import Frame

PROC = {
    "/proc/vmstat": b"nr_free_pages 77\npgfault 14493313\npgscan_direct_throttle 5\n",
    "/proc/meminfo": b"MemTotal: 24684084 kB\nSwapCached: 12 kB\nActive: 700 kB\nActive(anon): 1 kB\n",
    "/proc/stat": b"cpu 1 2 3\nctxt 12535533\nprocs_running 1\n",
    "/proc/loadavg": b"2.19 2.82 5.58 3/407 13134\n",
    "/proc/net/sockstat": b"sockets: used 65\nTCP: inuse 51 orphan 0 tw 49 alloc 245 mem 0\nFRAG: inuse 0 memory 0\n",
    "/proc/net/snmp": b"Ip: Forwarding DefaultTTL\nIp: 1 64\nTcp: MaxConn ActiveOpens\nTcp: -1 2637253\n",
    "/proc/net/netstat": b"TcpExt: TW ListenOverflows ListenDrops\nTcpExt: 9 7 8\nIpExt: InOctets\nIpExt: 1\n",
    "/proc/pressure/cpu": b"some avg10=64.68 avg60=65.93 avg300=71.27 total=1218504122\nfull avg10=0.00 total=3\n",
    "/proc/net/tcp": b"0050 00000003 01BB 00000000 0050 00000002\n",
    "/proc/net/backlog": b"80 511 443 128\n",
}
EXPECTED = {
    "pgfault": 14493313,
    "SwapCached": 12,
    "Active": 700,
    "ctxt": 12535533,
    "runnable": 3,
    "tasks": 407,
    "sockets.used": 65,
    "TCP.inuse": 51,
    "TCP.tw": 49,
    "FRAG.inuse": 0,
    "Tcp.ActiveOpens": 2637253,
    "TcpExt.ListenOverflows": 7,
    "TcpExt.ListenDrops": 8,
    "cpu.some": 1218504122,
}


def test_frames_update_counters() -> None:
    table = CounterTable()
    table.take(Frame(number=1, files=PROC))
    assert table.counters == EXPECTED
    assert table.accept == {80: 5, 443: 0}, "sockets of one port are added up"
    assert table.backlog == {80: 511, 443: 128}
    table.take(Frame(number=2, files={"/proc/vmstat": b"pgfault 14493400\n"}, pids=()))
    assert (table.counters, table.accept) == (EXPECTED | {"pgfault": 14493400}, {80: 5, 443: 0}), "a delta keeps others"
    table.take(Frame(number=3, files={"/proc/net/tcp": b"01BB 00000001\n"}, pids=()))
    assert table.accept == {443: 1}, "closed listeners are dropped"
    table.take(Frame(number=4, files={"/proc/vmstat": b"pgfree 4\n"}))
    assert (table.counters, table.accept, table.backlog) == ({"pgfree": 4}, {}, {}), "a full frame drops all others"


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/proc/vmstat", b"pgfault -1\n"),
        ("/proc/vmstat", b"pgfault 9223372036854775808\n"),
        ("/proc/net/snmp", b"Tcp: InSegs\nTcp: 1e9\n"),
        ("/proc/pressure/io", b"some total=x\n"),
        ("/proc/loadavg", b"1 1 1 9999999999999999999999/2 3\n"),
        ("/proc/net/tcp", b"g050 0\n"),
        ("/proc/net/tcp", b"50 -1\n"),
        ("/proc/net/backlog", b"65536 1\n"),
        ("/proc/net/backlog", b"80 99999999999\n"),
    ],
)
def test_invalid_number_is_refused_with_file_name(path: str, content: bytes) -> None:
    with pytest.raises(ValueError, match="/proc/"):
        CounterTable().take(Frame(number=1, files={path: content}))


@pytest.mark.parametrize("content", [b"", b"\n", b"Tcp:\n", b"Tcp: InSegs\n", b"some\n", b": :\n", b"\xff\xfe 1\n"])
def test_lines_without_counters_are_skipped(content: bytes) -> None:
    table = CounterTable()
    table.take(Frame(number=1, files=dict.fromkeys(PROC, content) | {"/proc/net/tcp": b"", "/proc/net/backlog": b""}))
    assert table.counters == {}


def test_number_of_ports_is_bounded() -> None:
    ports = b" ".join(b"%04X 00000000" % port for port in range(1, 3000))
    table = CounterTable()
    table.take(Frame(number=1, files={"/proc/net/tcp": ports}))
    assert len(table.accept) == 256
