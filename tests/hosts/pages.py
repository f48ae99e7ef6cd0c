"""Status pages of real servers, shortened."""

APACHE = """\
localhost
ServerVersion: Apache/2.4.62 (Debian)
ServerMPM: event
Server Built: 2024-10-04T15:21:08
CurrentTime: Saturday, 21-Nov-2026 15:00:00 UTC
ParentServerConfigGeneration: 3
ParentServerMPMGeneration: 2
ServerUptimeSeconds: 61
ServerUptime: 1 minute 1 second
Load1: 0.42
Total Accesses: 1234
Total kBytes: 5678
Total Duration: 910
CPUUser: .11
CPUSystem: .07
Uptime: 61
ReqPerSec: 20.2295
BytesPerSec: 95316.4
BusyWorkers: 1
GracefulWorkers: 0
IdleWorkers: 49
Processes: 2
Stopping: 0
ConnsTotal: 1
ConnsAsyncWriting: 0
ConnsAsyncKeepAlive: 0
ConnsAsyncClosing: 0
Scoreboard: W_________________________________________________....
"""

NGINX = """\
Active connections: 291{}
server accepts handled requests
 16630948 16630947 31070465{}
Reading: 6 Writing: 179 Waiting: 106{}
""".replace("{}", " ")

SQUID_COUNTERS = """\
sample_time = 1795273200.123456 (Sat, 21 Nov 2026 15:00:00 GMT)
client_http.requests = 120
client_http.hits = 100
client_http.errors = 0
client_http.kbytes_in = 12
client_http.kbytes_out = 400
server.all.requests = 20
cpu_time = 0.500000
cd.memory = 0
aborted_requests = 0
"""

SQUID_INFO = """\
Squid Object Cache: Version 5.7
Build Info: Debian linux
Service Name: squid
Start Time:\tSat, 21 Nov 2026 14:00:00 GMT
Current Time:\tSat, 21 Nov 2026 15:00:00 GMT
Connection information for squid:
\tNumber of clients accessing cache:\t1
\tNumber of HTTP requests received:\t120
\tAverage HTTP requests per minute since start:\t2.0
\tSelect loop called: 1000 times, 3.600 ms avg
Cache information for squid:
\tHits as % of all requests:\t5min: 80.0%, 60min: 83.3%
\tHits as % of bytes sent:\t5min: -0.0%, 60min: 70.1%
\tStorage Swap size:\t1024 KB
\tStorage Swap capacity:\t 0.3% used, 99.7% free
Median Service Times (seconds)  5 min    60 min:
\tHTTP Requests (All):   0.00091  0.00091
Resource usage for squid:
\tUP Time:\t3600.123 seconds
\tCPU Usage:\t0.01%
File descriptor usage for squid:
\tNumber of file desc currently in use:   10
Internal Data Structures:
\t    52 StoreEntries
\t    52 StoreEntries with MemObjects
"""

TOMCAT = """\
<?xml version="1.0" encoding="utf-8"?><?xml-stylesheet type="text/xsl" href="/manager/xform.xsl" ?>
<status><jvm><memory free='60000000' total='128000000' max='256000000'/><memorypool name='G1 Eden Space'
type='Heap memory' usageInit='1' usageCommitted='2' usageMax='-1' usageUsed='3'/></jvm><connector
name='"http-nio-8080"'><threadInfo  maxThreads="200" currentThreadCount="10" currentThreadsBusy="1" /><requestInfo
maxTime="35" processingTime="100" requestCount="12" errorCount="1" bytesReceived="0" bytesSent="2048" /><workers>
</workers></connector><connector name='"ajp-nio-8009"'><threadInfo  maxThreads="200" currentThreadCount="5"
currentThreadsBusy="2" /><requestInfo  maxTime="40" processingTime="50" requestCount="8" errorCount="0"
bytesReceived="0" bytesSent="1000" /></connector></status>
"""

LIGHTTPD = """\
Total Accesses: 41
Total kBytes: 12
Uptime: 61
BusyServers: 2
IdleServers: 1022
Scoreboard: rW______________
"""

HAPROXY = """\
# pxname,svname,qcur,qmax,scur,smax,slim,stot,bin,bout,ereq,econ,eresp,wretr,status,act,rate,hrsp_5xx,req_tot,rtime,
web,FRONTEND,,,3,9,2000,120,9600,48000,1,,,,OPEN,,4,2,150,,
app,app1,0,1,2,5,,80,6400,32000,,0,0,1,UP,1,3,1,,12,
app,app2,0,0,0,0,,0,0,0,,4,0,0,DOWN,1,0,0,,0,
app,BACKEND,1,2,2,5,200,80,6400,32000,0,4,0,1,UP,1,3,1,,12,
stats,FRONTEND,,,1,1,2000,7,700,9000,0,,,,OPEN,,1,0,7,,
"""

PHP_FPM = (
    '{"pool":"www","process manager":"dynamic","start time":1763880000,"start since":75,"accepted conn":4312,'
    '"listen queue":2,"max listen queue":9,"listen queue len":511,"idle processes":1,"active processes":4,'
    '"total processes":5,"max active processes":5,"max children reached":1,"slow requests":0}'
)

MARIADB = """\
Aborted_clients\t0
Aborted_connects\t0
Bytes_received\t31415
Bytes_sent\t9265358
Com_delete\t0
Com_insert\t97
Com_select\t9323
Com_update\t84
Connections\t626
Created_tmp_disk_tables\t4
Innodb_buffer_pool_dump_status\t
Innodb_buffer_pool_load_status\tBuffer pool(s) load completed at 251123  8:00:00
Innodb_buffer_pool_pages_free\t7747
Innodb_buffer_pool_reads\t338
Innodb_row_lock_waits\t3
Max_used_connections\t27
Open_tables\t95
Opened_tables\t28
Queries\t84197
Slow_queries\t1
Threads_cached\t6
Threads_connected\t9
Threads_running\t3
Uptime\t9937
"""

VARNISH = """\
{
  "version": 1,
  "timestamp": "2026-11-23T08:00:00",
  "counters": {
    "MAIN.uptime": {
      "description": "Child process uptime",
      "flag": "c",
      "format": "d",
      "value": 75
    },
    "MAIN.client_req": {
      "description": "Good client requests received",
      "flag": "c",
      "format": "i",
      "value": 431
    },
    "MAIN.cache_hit": {
      "description": "Cache hits",
      "flag": "c",
      "format": "i",
      "value": 334
    },
    "MAIN.cache_miss": {
      "description": "Cache misses",
      "flag": "c",
      "format": "i",
      "value": 97
    },
    "MAIN.threads": {
      "description": "Total number of threads",
      "flag": "g",
      "format": "i",
      "value": 200
    },
    "SMA.s0.g_bytes": {
      "description": "Bytes outstanding",
      "flag": "g",
      "format": "B",
      "value": 31415
    },
    "VBE.boot.default.happy": {
      "description": "Happy health probes",
      "flag": "b",
      "format": "b",
      "value": 0
    },
    "VBE.boot.default.conn": {
      "description": "Concurrent connections used",
      "flag": "g",
      "format": "i",
      "value": 2
    },
    "VBE.boot.default.req": {
      "description": "Backend requests sent",
      "flag": "c",
      "format": "i",
      "value": 97
    },
    "LCK.ban.locks": {
      "description": "Lock Operations",
      "flag": "c",
      "format": "i",
      "value": 926
    }
  }
}
"""

CADDY = """\
# HELP caddy_http_requests_in_flight Number of requests currently handled by this server.
# TYPE caddy_http_requests_in_flight gauge
caddy_http_requests_in_flight{handler="encode",server="srv0"} 3
caddy_http_requests_in_flight{handler="file_server",server="srv0"} 2
caddy_http_requests_in_flight{handler="reverse_proxy",server="srv1"} 1
# TYPE caddy_http_requests_total counter
caddy_http_requests_total{handler="encode",server="srv0"} 12
caddy_http_requests_total{handler="file_server",server="srv0"} 5
caddy_http_requests_total{handler="file_server",server="srv1"} 4
caddy_http_requests_total{handler="static_response",server="srv1"} 3
# TYPE caddy_http_response_size_bytes histogram
caddy_http_response_size_bytes_bucket{code="200",handler="encode",method="GET",server="srv0",le="256"} 0
caddy_http_response_size_bytes_bucket{code="200",handler="encode",method="GET",server="srv0",le="+Inf"} 1
caddy_http_response_size_bytes_sum{code="200",handler="encode",method="GET",server="srv0"} 14970
caddy_http_response_size_bytes_count{code="200",handler="encode",method="GET",server="srv0"} 1
# TYPE caddy_reverse_proxy_upstreams_healthy gauge
caddy_reverse_proxy_upstreams_healthy{upstream="localhost:9"} 1
# TYPE go_gc_duration_seconds summary
go_gc_duration_seconds{quantile="0.5"} 0.000262001
go_gc_duration_seconds_sum 0.000334482
go_goroutines 16
process_cpu_seconds_total 0.25
process_open_fds 12
process_resident_memory_bytes 3.6519936e+07
process_virtual_memory_max_bytes 1.8446744073709552e+19
promhttp_metric_handler_requests_total{code="200"} 7
"""
