# Reads /proc with mawk, gawk or busybox awk: one process as long as the probe runs, without fork and exec per tick.
# Environment: patterns regex port ports sockets nuls line_bytes round slow_round most_shares queue_round readable
# groups. A line of a process is sent only if it changed; `#cockpit there` lists all watched processes that exist.
# Memory (statm) is read only if stat has changed, and at intervals, because it seldom changes otherwise.
# While stat is unchanged, schedstat is read instead, at half the cost. As long as schedstat shows no run, only other
# processes can change a value (the parent exits, pages are reclaimed); the reads at intervals find such changes.
# schedstat covers the first thread only, so it is read only for processes with one thread.
#
# Arrays by PID: first_tick, last_tick: ticks at which the process was new, and last listed. stat_head: start of the
# stat line, `PID (NAME) `, of a watched process. stat, statm, cmdline, user, schedstat: last line sent; switched: the
# line of schedstat when its context switches were read.
# idle_schedstat: the line of schedstat while stat is unchanged. memory_due, pss_due: the process ran since its memory
# or PSS was read. pss_read: PSS was read.
# Arrays by place in the list of processes: pids, name, path, rest (see index_list).
BEGIN {
  n = split(ENVIRON["patterns"], words, "\n")
  for (i = 1; i <= n; i++) watched[words[i]] = i
  ports = ENVIRON["ports"]; upstream_paths = ENVIRON["sockets"]
  regex = ENVIRON["regex"]; port = ENVIRON["port"]; nuls = ENVIRON["nuls"]
  bytes = ENVIRON["line_bytes"] + 0; round = ENVIRON["round"] + 0; slow_round = ENVIRON["slow_round"] + 0
  most = ENVIRON["most_shares"] + 0; queue_round = ENVIRON["queue_round"] + 0
  readable = ENVIRON["readable"] " "
  ran_at["self"] = "self/schedstat"
  timed = run_time("self") != "none"
  if (n) read_logins()
  groups = ENVIRON["groups"]
  split("cpu io memory", resources, " ")
}

# Read login names by user ID; limited to 10,000.
function read_logins(   line, word, n) {
  for (n = 0; n < 10000 && (getline line < "/etc/passwd") > 0; n++)
    if (split(line, word, ":") > 2 && !(word[3] in login) && length(word[1]) <= 64) login[word[3]] = word[1]
  close("/etc/passwd")
}

function put(line) {
  out = out "\n" line
  if (length(out) > 4000) { print substr(out, 2); out = "" }
}

function send_all(path,   line) {
  while ((getline line < path) > 0) put("/proc/" path ":" line)
  close(path)
}

function send_system(   line) {
  send_all("uptime")
  while ((getline line < "stat") > 0)
    if (substr(line, 1, 4) != "intr" && substr(line, 1, 7) != "softirq") put("/proc/stat:" line)
  close("stat")
  send_loadavg()
  while ((getline line < "meminfo") > 0)
    if (line ~ /^(MemTotal|MemFree|MemAvailable|Buffers|Cached|SReclaimable|Shmem|SwapTotal|SwapFree):/)
      put("/proc/meminfo:" line)
    else if (line ~ /^(SwapCached|Active|Inactive|Dirty|Slab|Committed_AS):/) send_changed("meminfo", line)
  close("meminfo")
  while ((getline line < "diskstats") > 0)
    if (line !~ / 0 0 0 0 0 0 0 0 0 0 0/) put("/proc/diskstats:" line)
  close("diskstats")
  while ((getline line < "net/dev") > 0)
    if (line !~ /\|/) put("/proc/net/dev:" line)
  close("net/dev")
  send_all("self/stat")
  send_all(shell_stat)
  send_counters()
}

# Send loadavg, and note the last PID that the kernel assigned.
function send_loadavg(   line, word) {
  if ((getline line < "loadavg") > 0) { put("/proc/loadavg:" line); split(line, word, " "); last_pid = word[5] + 0 }
  close("loadavg")
}

# Send a line of counters if it changed since the last line of the file with the same first word. The file `named`
# consists of counters that the probe names itself: `NAME NUMBER`.
function send_changed(path, line,   key) {
  key = path " " substr(line, 1, index(line, " "))
  if (sent[key] == line) return
  sent[key] = line
  put("/proc/" path ":" line)
}

# Whether the shell could read a file: mawk fails on a file that can be opened but not read (disabled pressure).
function is_readable(path) {
  return index(readable, " " path " ")
}

function send_counters(   line) {
  if (is_readable("vmstat")) {
    while ((getline line < "vmstat") > 0)
      if (line ~ /^p(gpg|gf|gmajf|swp|gscan_|gsteal_)/)
        if (line ~ /(in|out|fault|free|kswapd|direct|khugepaged|proactive) /) send_changed("vmstat", line)
    close("vmstat")
  }
  if (is_readable("net/sockstat")) {
    while ((getline line < "net/sockstat") > 0) if (line !~ /^UDPLITE/) send_changed("net/sockstat", line)
    close("net/sockstat")
  }
  send_table("net/snmp", "Tcp:", " ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs OutSegs RetransSegs InErrs" \
    " OutRsts ")
  send_table("net/netstat", "TcpExt:", " ListenOverflows ListenDrops ")
  send_pressure("pressure/cpu"); send_pressure("pressure/io"); send_pressure("pressure/memory")
  if (is_readable("sys/fs/file-nr")) {
    if ((getline line < "sys/fs/file-nr") > 0) send_changed("named", "files.open " (line + 0))
    close("sys/fs/file-nr")
  }
  if (tick % queue_round == 1) send_queues()
}

# Send the changed columns of a table of two lines: names and numbers.
function send_table(path, head, wanted,   names, numbers, changed, word, n, i, at) {
  if (!is_readable(path)) return
  while ((getline names < path) > 0) if (index(names, head " ") == 1) break
  if ((getline numbers < path) <= 0) numbers = ""
  close(path)
  if (numbers == "") return
  if (names != names_of[path]) {
    names_of[path] = names
    columns[path] = 0
    n = split(names, word, " ")
    for (i = 2; i <= n; i++)
      if (index(wanted, " " word[i] " ")) {
        at = ++columns[path]
        column[path, at] = i; column_name[path, at] = word[i]
      }
  }
  names = changed = ""
  split(numbers, word, " ")
  for (i = 1; i <= columns[path]; i++) {
    n = word[column[path, i]] ""
    if (sent[path, i] "" == n) continue
    sent[path, i] = n
    names = names " " column_name[path, i]
    changed = changed " " n
  }
  if (names != "") { put("/proc/" path ":" head names); put("/proc/" path ":" head changed) }
}

# Send the time (us) for which some or all tasks waited, without the averages, which change all the time.
function send_pressure(path,   line, word) {
  if (!is_readable(path)) return
  while ((getline line < path) > 0) { split(line, word, " "); send_changed(path, word[1] " " word[5]) }
  close(path)
}

# Send the accept queue of each listening socket by port, both hexadecimal. The kernel lists these sockets first, but
# fills the rest of the first block from the table of all connections, which is expensive on a host with much memory.
function send_queues(   line, word, path, queues, sockets, at, i, n, idle) {
  queues = sockets = target_sockets = upstream_sockets = ""
  split("", idle)
  for (i = 1; i <= 2; i++) {
    n = 0
    path = i == 1 ? "net/tcp" : "net/tcp6"
    if (!is_readable(path)) continue
    getline line < path
    while ((getline line < path) > 0) {
      split(line, word, " ")
      if (word[4] != "0A" || n++ >= 4096) break
      at = substr(word[2], length(word[2]) - 3)
      if ((line = substr(word[5], 10)) !~ /^0+$/ || !idle[at]++) queues = queues " " at " " line
      sockets = sockets " " word[10]
      if (at == port "") target_sockets = target_sockets " " word[10]
      else if (index(ports, " " at " ")) upstream_sockets = upstream_sockets " " word[10]
    }
    close(path)
  }
  if (upstream_paths != "") find_unix_sockets()
  if (sockets != sent["sockets"]) { sent["sockets"] = sockets; send_backlogs() }
  if (queues != sent["queues"]) { sent["queues"] = queues; put("/proc/net/tcp:" queues) }
}

# Find the Unix sockets on which upstream servers accept connections.
function find_unix_sockets(   line, word, n) {
  if (!is_readable("net/unix")) return
  while (n++ < 4096 && (getline line < "net/unix") > 0)
    if (split(line, word, " ") == 8 && word[4] == "00010000" && index("\n" upstream_paths "\n", "\n" word[8] "\n"))
      upstream_sockets = upstream_sockets " " word[7]
  close("net/unix")
}

# Send the limit of each accept queue, which is not in /proc.
function send_backlogs(   command, line, word, backlogs) {
  backlogs = ""
  command = "PATH=$PATH:/usr/sbin:/sbin ss -Hltn 2>/dev/null"
  while ((command | getline line) > 0) {
    split(line, word, " ")
    if (word[1] != "LISTEN") continue
    sub(/.*:/, "", word[4])
    backlogs = backlogs " " word[4] " " word[3]
  }
  close(command)
  put("/proc/net/backlog:" backlogs)
}

# Send the watched processes that listen on the target's port or on its upstream addresses, found by the sockets among
# their files. Search again if the sockets changed or a found process ended, and at intervals until one is found.
function send_listeners(   command, line, pid, holder, last, listeners, n) {
  if ((port == "" && ports == "" && upstream_paths == "") || tick % queue_round != 1) return
  if (target_sockets upstream_sockets == searched)
    if (listener == "" ? tick % slow_round != 1 : listener in stat_head) return
  searched = target_sockets upstream_sockets
  listeners = listener = ""
  command = "ls -l stat"
  for (pid in stat_head) if (n++ < 1000) command = command " " pid "/fd"
  command = command " 2>/dev/null"
  while (target_sockets upstream_sockets != "" && n && (command | getline line) > 0) {
    if (line ~ /^[0-9]+\/fd:$/) holder = line + 0
    else if (match(line, / -> /)) {
      line = substr(line, RSTART + 4)
      if (line !~ /^socket:\[[0-9]+\]$/) continue
      line = " " substr(line, 9, length(line) - 9) " "
      if (index(target_sockets " ", line)) listener = holder
      else if (!index(upstream_sockets " ", line)) continue
      if (holder != last) listeners = listeners " " holder
      last = holder
    }
  }
  close(command)
  put("/proc/net/listeners:" listeners)
}

# Send CPU, memory, limits and waits of the server's control group (container, unit): the group of the process that
# listens on the target's port, else of the watched process with the lowest PID. Versions 1 and 2 of cgroups have
# different names, so the probe uses its own. KiB and microseconds.
function send_group(   line) {
  if (tick % queue_round == 1 || group_changed) find_group()
  if (group_version == 2) {
    send_group_cpu(cpu_group "/cpu.stat", "usage_usec")
    send_group_memory("memory.current", "inactive_file")
    if (is_readable("pressure/cpu")) for (line in resources) send_group_waits(resources[line])
  }
  else if (group_version == 1) {
    send_group_cpu(cpu_group "/cpu.stat", "")
    if ((line = first_line(usage_group "/cpuacct.usage")) != "") send_group_count("cpu", line, 3)
    send_group_memory("memory.usage_in_bytes", "total_inactive_file")
  }
}

# The group at the directory of a list of controllers, or at that of one of them: the kernel and the directory may have
# the list in another order.
function first_group(names, name, where, file,   group) {
  group = group_at(groups "/" names, where, file)
  return group == "" ? group_at(groups "/" name, where, file) : group
}

function find_group(   pid, first, line, at, names, where, two, nested, root) {
  cpu_group = usage_group = memory_group = two = first = ""
  if (listener in stat_head) first = listener
  else for (pid in stat_head) if (first == "" || pid + 0 < first) first = pid + 0
  while (first != "" && (getline line < (first "/cgroup")) > 0) {
    sub(/^[0-9]+:/, "", line)
    at = index(line, ":")
    names = substr(line, 1, at - 1)
    where = substr(line, at + 1)
    if (where ~ /(^|\/)\.\.(\/|$)/) where = "/"
    if (names == "") two = where
    if (names ~ /(^|,)cpu(,|$)/) nested = where != "/"
    if (names ~ /(^|,)cpu(,|$)/) cpu_group = first_group(names, "cpu", where, "cpu.cfs_quota_us")
    if (where == "/" && names ~ /(^|,)cpuacct(,|$)/) root["cpuacct"] = groups "/" names "/"
    if (where == "/" && names == "memory") root["memory"] = groups "/" names "/"
    if (names ~ /(^|,)cpuacct(,|$)/) usage_group = first_group(names, "cpuacct", where, "cpuacct.usage")
    if (names ~ /(^|,)memory(,|$)/) memory_group = group_at(groups "/" names, where, "memory.limit_in_bytes")
  }
  if (first != "") close(first "/cgroup")
  # In a nested group with a quota, the root's counters are those of the machine.
  if (nested && usage_group == root["cpuacct"]) usage_group = ""
  if (nested && memory_group == root["memory"]) memory_group = ""
  group_version = cpu_group == "" ? 0 : 1
  if (!group_version && (cpu_group = group_at(groups, two, "cgroup.type")) != "") {
    group_version = 2
    memory_group = cpu_group
  }
  group_changed = 0
  if (cpu_group != known_group) {
    # The counters of another group start anywhere, so all are sent again.
    for (line in sent) if (index(line, "named cgroup.") == 1) delete sent[line]
    group_changed = known_group != "" && cpu_group != ""
    known_group = cpu_group
    if (group_changed) group_version = 0
  }
  if (group_version) send_group_limits()
  send_changed("named", "cgroup.version " group_version)
}

# Return the directory of a group, if it has this file, which the machine's root group does not have. A container sees
# its own group as root.
function group_at(root, where, file) {
  if (first_line(root where "/" file) != "") return root where
  return first_line(root "/" file) != "" ? root : ""
}

function first_line(path,   line) {
  if ((getline line < path) <= 0) line = ""
  close(path)
  return line
}

# Send a number without its last digits: nanoseconds become microseconds.
function send_group_count(name, number, digits) {
  number = length(number) > digits ? substr(number, 1, length(number) - digits) : 0
  send_changed("named", "cgroup." name " " number)
}

function send_group_cpu(path, usage,   line, word) {
  while ((getline line < path) > 0) {
    split(line, word, " ")
    if (word[1] == usage) send_group_count("cpu", word[2], 0)
    else if (word[1] == "nr_periods") send_group_count("periods", word[2], 0)
    else if (word[1] == "nr_throttled") send_group_count("throttled", word[2], 0)
  }
  close(path)
}

# Send the memory without the inactive page cache, as in docker stats and kubectl top.
function send_group_memory(file, idle,   line, word, used) {
  if (memory_group == "" || (used = first_line(memory_group "/" file)) == "") return
  while ((getline line < (memory_group "/memory.stat")) > 0) {
    split(line, word, " ")
    if (word[1] == idle) { used -= word[2]; break }
  }
  close(memory_group "/memory.stat")
  send_group_count("memory", sprintf("%d", (used > 0 ? used : 0) / 1024), 0)
}

# Send the quota in thousandths of a CPU and the memory limit in KiB; 0: no limit.
function send_group_limits(   line, word, most) {
  if (group_version == 2) {
    split(first_line(cpu_group "/cpu.max"), word, " ")
    most = first_line(memory_group "/memory.max")
  }
  else {
    word[1] = first_line(cpu_group "/cpu.cfs_quota_us"); word[2] = first_line(cpu_group "/cpu.cfs_period_us")
    most = memory_group == "" ? "" : first_line(memory_group "/memory.limit_in_bytes")
  }
  line = word[2] > 0 && word[1] > 0 ? int(1000 * word[1] / word[2]) : 0
  send_changed("named", "cgroup.quota " line)
  line = most ~ /^[0-9]+$/ && length(most) < 18 ? int(most / 1024) : 0
  send_changed("named", "cgroup.limit " line)
}

function send_group_waits(resource,   path, line, word) {
  path = cpu_group "/" resource ".pressure"
  while ((getline line < path) > 0) {
    split(line, word, " ")
    if (word[1] == "some") send_group_count("waits_" resource, substr(word[5], 7), 0)
  }
  close(path)
}

# Divide block devices into disks and devices layered on disks; repeat it when the kernel's list changes.
function sort_disks(   line, word, names, command) {
  names = ""
  while ((getline line < "diskstats") > 0) { split(line, word, " "); names = names " " word[3] }
  close("diskstats")
  if (names == listed_disks) return
  listed_disks = names
  disks = ""; layered = ""
  command = "cd /sys/block && for d in *; do [ -e $d/device ] && echo disk $d || echo layered $d; done"
  while ((command | getline line) > 0) {
    split(line, word, " ")
    if (word[1] == "disk") disks = disks " " word[2]; else layered = layered " " word[2]
  }
  close(command)
}

# Set hidden if other users' processes are not visible (hidepid): process 1 always exists.
function check_hidden(   line) {
  hidden = (getline line < "1/comm") <= 0
  close("1/comm")
}

function without_blanks(text) {
  gsub(/ /, "", text)
  return text
}

function begin_frame(number, extent, own, loop) {
  tick++
  open_frame = number
  if (own != shell_pid) { shell_pid = own; shell_stat = "./" own "/stat" }
  batched = !nuls && tick % slow_round == 0
  existing = ""; batch = ""; pss_count = 0
  if (full_list) list = ""
  if (extent == "all") {
    indexed = ""; split("", stat); split("", statm); split("", cmdline); split("", idle_schedstat)
    split("", schedstat); split("", switched)
    split("", sent); split("", user); searched = "all"; group_changed = 1
  }
  if (tick % round == 1) { sort_disks(); check_hidden() }
  put("")
  put("#cockpit begin " number)
  put("#cockpit disks" disks)
  put("#cockpit layered" layered)
  if (hidden) put("#cockpit hidden")
  send_system()
  send_speed(loop)
}

# Send the number of measuring loops and their total CPU time (us), which show the CPU's speed.
function send_speed(loop) {
  if (loop > 0) { loops++; loop_us += loop }
  if (!loops) return
  send_changed("named", "loops " loops)
  send_changed("named", "loop_us " loop_us)
}

# Append a process to the list, in parts, because appending to a long string is expensive.
function add_to_list(pid) {
  part = part " " pid
  if (length(part) > 4000) { list = list part; part = "" }
}

function end_frame(   i) {
  list = list part; part = ""
  if (full_list) note_reused()
  if (list != indexed) index_list()
  discovered = 0
  for (i = 1; i <= listed; i++) if (rest[i] != "" && is_idle(i)) add_existing(i); else read_process(i)
  # A child may have a lower PID than its parent, after the highest one.
  if (discovered) for (i = 1; i <= listed; i++) if (!(pids[i] in stat_head)) read_process(i)
  if (batch != "") send_cmdlines()
  send_listeners()
  send_group()
  put("#cockpit there" existing)
  put("#cockpit end " open_frame)
  print substr(out, 2); out = ""
  fflush()
  open_frame = ""
}

# Index the listed processes: PID (pids), PID as text (name), path of schedstat (path) and its last line (rest). These
# arrays are made by split(), because mawk reads their elements directly and hashes the keys of other arrays.
function index_list(   i, pid) {
  indexed = list
  listed = split(list, pids, " ")
  split(list, name, " "); split(list, path, " "); split(list, rest, " ")
  for (i = 1; i <= listed; i++) {
    pid = pids[i] += 0
    if (!(pid in last_tick)) { known++; first_tick[pid] = tick; make_paths(pid) }
    last_tick[pid] = tick
    path[i] = ran_at[pid]
    rest[i] = (pid in idle_schedstat) ? idle_schedstat[pid] : ""
  }
  if (listed < known) forget_ended()
}

# Make the paths of a process's files once: mawk stores the name of each opened file forever, but equal strings once.
function make_paths(pid) {
  comm_at[pid] = pid "/comm"; stat_at[pid] = pid "/stat"; statm_at[pid] = pid "/statm"
  ran_at[pid] = pid "/schedstat"; cmdline_at[pid] = pid "/cmdline"; rollup_at[pid] = pid "/smaps_rollup"
  status_at[pid] = pid "/status"
}

function forget_paths(pid) {
  delete comm_at[pid]; delete stat_at[pid]; delete statm_at[pid]
  delete ran_at[pid]; delete cmdline_at[pid]; delete rollup_at[pid]; delete status_at[pid]
}

# Treat listed processes as new if their PIDs were assigned since the listing before the last: an ended process may have
# had the same PID.
function note_reused(   pid) {
  for (pid in first_tick)
    if (assigned <= last_pid ? pid + 0 > assigned && pid + 0 <= last_pid : pid + 0 > assigned || pid + 0 <= last_pid)
      first_tick[pid] = tick
  assigned = assigned_next; assigned_next = last_pid
}

# Whether a newly assigned PID is a process, and not a thread, whose ID is from the same sequence. A listed one is
# already known, but may be another process than before.
function is_new(pid,   path, line) {
  if (pid in last_tick) { first_tick[pid] = tick; return 0 }
  path = pid "/status"
  while ((getline line < path) > 0) if (line ~ /^Tgid:/) break
  close(path)
  return line == "Tgid:\t" pid
}

# Whether an idle process has not run since the last tick; false at intervals, so that all its values are read.
function is_idle(i,   line, got) {
  if (batched || (tick + pids[i]) % slow_round == 0) return 0
  got = (getline line < path[i])
  close(path[i])
  return got > 0 && line == rest[i]
}

# Send a watched process. Check the name of other processes: in their first ticks, then every round, later every slow
# round.
function read_process(i,   pid, age) {
  pid = pids[i]
  if (pid in stat_head) { send_process(pid, i); return }
  age = tick - first_tick[pid]
  if (age < 3 || (tick + pid) % (age < slow_round ? round : slow_round) == 0) check_name(pid, i)
}

function is_watched(pid,   path, comm, got) {
  path = comm_at[pid]
  got = (getline comm < path)
  close(path)
  return got > 0 && (comm in watched || (regex != "" && comm ~ regex) || (comm ~ /^python/ && is_child(pid)))
}

# Whether a process is a child of a watched process: workers spawned by Python are named after the interpreter.
function is_child(pid,   path, line, word) {
  path = stat_at[pid]
  if ((getline line < path) > 0) { sub(/^.*\) /, "", line); split(line, word, " ") }
  close(path)
  return word[2] in stat_head
}

function check_name(pid, i) {
  if (!is_watched(pid)) return
  stat_head[pid] = ""
  discovered = 1
  send_process(pid, i)
}

function send_process(pid, i,   path, line, more, got, turn, slow, first, ran, renamed) {
  slow = (tick + pid) % slow_round == 0
  first = !(pid in pss_read) && tick - first_tick[pid] > 1 && pss_count < most
  rest[i] = ""
  if (pid in idle_schedstat) {
    ran = run_time(pid)
    if (ran != idle_schedstat[pid]) mark_active(pid)
  }
  path = stat_at[pid]
  got = (getline line < path)
  # The name of the process, at most 15 bytes, may contain line breaks.
  while (got > 0 && length(line) < 60 && (getline more < path) > 0) line = line " " more
  close(path)
  # The receiver forgets processes that are not listed: if a process is listed again, all its lines are sent again.
  if (got <= 0) { forget(pid); first_tick[pid] = tick; return }
  turn = slow || batched || ((tick + pid) % round == 0 && pid in memory_due)
  if (line != stat[pid]) {
    delete idle_schedstat[pid]
    mark_active(pid)
    if (stat_head[pid] == "" || substr(line, 1, length(stat_head[pid])) != stat_head[pid]) {
      if (stat_head[pid] != "" && !is_watched(pid)) { forget(pid); first_tick[pid] = tick; return }
      match(line, /.*\) /)
      stat_head[pid] = substr(line, 1, RLENGTH)
      renamed = 1
    }
    stat[pid] = line
    put("/proc/" path ":" line)
  }
  else {
    if (timed && pid in pss_read && has_one_thread(pid)) idle_schedstat[pid] = rest[i] = ran
    else delete idle_schedstat[pid]
    if (!turn && !first) { send_waits(pid, ran); add_existing(i); return }
  }
  send_waits(pid, ran)
  if (!(pid in user) && tick - first_tick[pid] > 1) send_user(pid)
  send_memory(pid)
  if (turn) delete memory_due[pid]
  if (renamed || !(pid in cmdline) || (nuls ? turn : batched)) read_cmdline(pid)
  if (first || slow && (pid in pss_due || (tick + pid) % (3 * slow_round) == 0)) send_pss(pid)
  add_existing(i)
}

# The process ran: read its memory and PSS at the next intervals.
function mark_active(pid) {
  memory_due[pid] = 1
  pss_due[pid] = 1
}

# Return the scheduler's run time and number of time slices; `none` if the kernel does not count them.
function run_time(pid,   path, line) {
  path = ran_at[pid]
  if ((getline line < path) <= 0 || line == "0 0 0") line = "none"
  close(path)
  return line
}

# Send the time that a process with one thread ran and waited for a CPU. `line`: its schedstat if it was read, else "".
# Its context switches are read at intervals, if it ran: their file has many lines.
function send_waits(pid, line) {
  if (!timed || !has_one_thread(pid)) return
  if (line == "") line = run_time(pid)
  if (line == "none") return
  if (line != schedstat[pid]) { schedstat[pid] = line; put("/proc/" ran_at[pid] ":" line) }
  if ((tick + pid) % queue_round == 0 && line != switched[pid]) { switched[pid] = line; send_switches(pid) }
}

function send_switches(pid,   path, line, switches) {
  path = status_at[pid]
  while ((getline line < path) > 0) if (sub(/^(non)?voluntary_ctxt_switches:/, "", line)) switches = switches line
  close(path)
  if (switches != "") put("/proc/" pid "/switches:" switches)
}

# Whether a process has one thread.
function has_one_thread(pid,   field) {
  split(substr(stat[pid], length(stat_head[pid]) + 1), field, " ")
  return field[18] == 1
}

# Send a process's proportional set size (PSS). The kernel walks all pages for it, so it is read seldom: for an idle
# process in every third slow round, for a new process soon (not at once, while it still copies pages), and for few
# processes per tick. Processes without memory (defunct, kernel threads) have no PSS.
function send_pss(pid,   path, line) {
  delete pss_due[pid]
  pss_read[pid] = 1
  pss_count++
  send_user(pid)
  if (statm[pid] == "" || statm[pid] ~ /^0 /) return
  path = rollup_at[pid]
  while ((getline line < path) > 0) if (line ~ /^Pss:/) { put("/proc/" path ":" line); break }
  close(path)
}

# Send the effective user. A worker changes its user soon after its start, so read it some ticks later.
function send_user(pid,   path, line, word) {
  path = status_at[pid]
  while ((getline line < path) > 0) if (line ~ /^Uid:/) break
  close(path)
  if (line !~ /^Uid:/) return
  split(line, word, "\t")
  line = (word[3] in login) ? login[word[3]] : word[3]
  if (line == user[pid]) return
  user[pid] = line
  put("/proc/" path ":" line)
}

function add_existing(i) {
  existing = existing " " name[i]
  if (length(existing) > 4000) { put("#cockpit there" existing); existing = "" }
}

function send_memory(pid,   path, line) {
  path = statm_at[pid]
  if ((getline line < path) > 0 && line != statm[pid]) { statm[pid] = line; put("/proc/" path ":" line) }
  close(path)
}

function read_cmdline(pid,   path, line, more, n) {
  if (!nuls) {
    cmdline[pid] = cmdline[pid]
    batch = batch " " pid "/cmdline"
    if (length(batch) > 4000) send_cmdlines()
    return
  }
  path = cmdline_at[pid]
  line = ""
  while (n++ < 1000 && length(line) < bytes && (getline more < path) > 0) line = line (n > 1 ? " " : "") more
  close(path)
  line = substr(line, 1, bytes)
  gsub(/\000/, " ", line)
  sub(/ +$/, "", line)
  send_cmdline(pid, line)
}

function send_cmdline(pid, line) {
  if (line == cmdline[pid]) return
  cmdline[pid] = line
  put("/proc/" pid "/cmdline:" line)
}

# Read command lines for an awk without NUL support: grep prints the file's name before each argument.
function send_cmdlines(   command, line, at, pid, found) {
  command = "grep -aHsz -m 1000 '' " batch " | tr '\\n\\000' ' \\n'"
  while ((command | getline line) > 0) {
    at = index(line, "/")
    pid = substr(line, 1, at - 1)
    line = substr(line, at + 9)
    if (!(pid in found)) found[pid] = line
    else if (length(found[pid]) < bytes) found[pid] = found[pid] " " line
  }
  close(command)
  for (pid in found) send_cmdline(pid, substr(found[pid], 1, bytes))
  batch = ""
}

function forget(pid) {
  delete stat_head[pid]; delete stat[pid]; delete statm[pid]; delete cmdline[pid]; delete idle_schedstat[pid]
  delete memory_due[pid]; delete pss_due[pid]; delete pss_read[pid]; delete user[pid]; delete schedstat[pid]
  delete switched[pid]
}

function forget_ended(   pid) {
  for (pid in last_tick) if (last_tick[pid] != tick) {
    forget(pid); forget_paths(pid); delete first_tick[pid]; delete last_tick[pid]; known--
  }
}

# Input, one word per line: `list NUMBER EXTENT OWN LOOP`, all PIDs, `end`; or `more NUMBER EXTENT OWN LOOP`, PIDs that
# may be new processes, `end`. EXTENT is `all` or `changes`, OWN the PID of the probe's shell, LOOP the CPU time (us) of
# the measuring loop, or 0.
/[0-9]/ { if (open_frame != "" && (full_list || is_new($0 + 0))) add_to_list($0 + 0); next }
/list|more/ {
  full_list = ($0 ~ /list/)
  getline number; getline extent; getline own; getline loop
  begin_frame(number + 0, without_blanks(extent), without_blanks(own), loop + 0)
  next
}
/end/ { if (open_frame != "") end_frame() }
