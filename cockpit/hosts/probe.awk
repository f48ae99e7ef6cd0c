# Reads /proc with mawk, gawk or busybox awk: one process for the whole life of the probe, no fork and no exec per tick.
# From the environment: patterns regex port ports sockets nuls line_bytes round slow_round most_shares.
# A process's line is sent if it differs from the line sent before; `there` lists the processes that still exist without
# a new line. Memory (statm) is read only if stat has changed, and at intervals, because it seldom changes otherwise.
# While stat is unchanged, schedstat is read instead, at half the cost. As long as schedstat shows no run, only other
# processes can change a value (the parent exits, pages are reclaimed), which the read at intervals shows. schedstat
# covers the first thread only, so it is read only for processes with a single thread.
BEGIN {
  n = split(ENVIRON["patterns"], words, "\n")
  for (i = 1; i <= n; i++) watched[words[i]] = i
  ports = ENVIRON["ports"]; sockets_behind = ENVIRON["sockets"]
  regex = ENVIRON["regex"]; port = ENVIRON["port"]; nuls = ENVIRON["nuls"]
  bytes = ENVIRON["line_bytes"] + 0; every = ENVIRON["round"] + 0; seldom = ENVIRON["slow_round"] + 0
  most = ENVIRON["most_shares"] + 0; queue_round = ENVIRON["queue_round"] + 0
  readable = ENVIRON["readable"] " "
  ran_at["self"] = "self/schedstat"
  timed = run_time("self") != "none"
  if (n) read_logins()
  groups = ENVIRON["groups"]
  split("cpu io memory", waits, " ")
}

# Login names by user number; limited to the number that a single host has.
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
  send_all("loadavg")
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
  send_all(shell)
  send_counters()
}

# Send a line of counters, found by its first word, if it changed.
function send_changed(path, line,   key) {
  key = path " " substr(line, 1, index(line, " "))
  if (sent[key] == line) return
  sent[key] = line
  put("/proc/" path ":" line)
}

# mawk fails if a file can be opened but not read (pressure that is switched off). Read only files that the shell
# could read.
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
  send_table("net/snmp", "Tcp:", " ActiveOpens PassiveOpens AttemptFails EstabResets InSegs OutSegs RetransSegs InErrs" \
    " OutRsts ")
  send_table("net/netstat", "TcpExt:", " ListenOverflows ListenDrops ")
  send_pressure("pressure/cpu"); send_pressure("pressure/io"); send_pressure("pressure/memory")
  if (tick % queue_round == 1) send_queues()
}

# Send the changed columns of a table with two lines, names and numbers.
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

# Time (us) that some or all tasks waited, without the averages, which change all the time.
function send_pressure(path,   line, word) {
  if (!is_readable(path)) return
  while ((getline line < path) > 0) { split(line, word, " "); send_changed(path, word[1] " " word[5]) }
  close(path)
}

# The accept queue of each listening socket by its port, both hexadecimal. The kernel lists these sockets first, but
# fills the rest of the first block from the table of all connections, which is expensive on a host with much memory.
function send_queues(   line, word, path, queues, sockets, at, i, n) {
  queues = sockets = serving = behind = ""
  n = 0
  for (i = 1; i <= 2; i++) {
    path = i == 1 ? "net/tcp" : "net/tcp6"
    if (!is_readable(path)) continue
    getline line < path
    while ((getline line < path) > 0) {
      split(line, word, " ")
      if (word[4] != "0A" || n++ >= 256) break
      at = substr(word[2], length(word[2]) - 3)
      queues = queues " " at " " substr(word[5], 10)
      sockets = sockets " " word[10]
      if (at == port "") serving = serving " " word[10]
      else if (index(ports, " " at " ")) behind = behind " " word[10]
    }
    close(path)
  }
  if (sockets_behind != "") find_sockets()
  if (sockets != sent["sockets"]) { sent["sockets"] = sockets; send_backlogs() }
  if (queues != sent["queues"]) { sent["queues"] = queues; put("/proc/net/tcp:" queues) }
}

# Unix sockets on which the servers behind the target accept connections.
function find_sockets(   line, word, n) {
  if (!is_readable("net/unix")) return
  while (n++ < 4096 && (getline line < "net/unix") > 0)
    if (split(line, word, " ") == 8 && word[4] == "00010000" && index("\n" sockets_behind "\n", "\n" word[8] "\n"))
      behind = behind " " word[7]
  close("net/unix")
}

# Ask for the limit of each accept queue, which /proc lacks, if the listening sockets changed.
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

# Watched processes that listen on the target's port or behind it, found by the sockets among their files. Search again
# if the sockets changed or a found process ended, and at intervals while none is found.
function send_listeners(   command, line, pid, holder, last, listeners, n) {
  if ((port == "" && ports == "" && sockets_behind == "") || tick % queue_round != 1) return
  if (serving behind == asked && (listener == "" ? tick % seldom != 1 : listener in head)) return
  asked = serving behind
  listeners = listener = ""
  command = "ls -l stat"
  for (pid in head) if (n++ < 1000) command = command " " pid "/fd"
  command = command " 2>/dev/null"
  while (serving behind != "" && n && (command | getline line) > 0) {
    if (line ~ /^[0-9]+\/fd:$/) holder = line + 0
    else if (match(line, / -> /)) {
      line = substr(line, RSTART + 4)
      if (line !~ /^socket:\[[0-9]+\]$/) continue
      line = " " substr(line, 9, length(line) - 9) " "
      if (index(serving " ", line)) listener = holder
      else if (!index(behind " ", line)) continue
      if (holder != last) listeners = listeners " " holder
      last = holder
    }
  }
  close(command)
  put("/proc/net/listeners:" listeners)
}

# CPU, memory, limits and waits of the server's control group (container, unit): the group of the process that listens
# on the target's port, else of the watched process with the lowest PID. The names are the probe's own, because versions
# 1 and 2 differ. KiB and microseconds.
function send_group(   line) {
  if (tick % queue_round == 1 || group_changed) find_group()
  if (group_version == 2) {
    send_group_cpu(cpu_group "/cpu.stat", "usage_usec")
    send_group_memory("memory.current", "inactive_file")
    if (is_readable("pressure/cpu")) for (line in waits) send_group_waits(waits[line])
  }
  else if (group_version == 1) {
    send_group_cpu(cpu_group "/cpu.stat", "")
    if ((line = first_line(usage_group "/cpuacct.usage")) != "") send_group_count("cpu", line, 3)
    send_group_memory("memory.usage_in_bytes", "total_inactive_file")
  }
}

function find_group(   pid, first, line, at, names, where, two, nested, root) {
  cpu_group = usage_group = memory_group = two = first = ""
  if (listener in head) first = listener
  else for (pid in head) if (first == "" || pid + 0 < first) first = pid + 0
  while (first != "" && (getline line < (first "/cgroup")) > 0) {
    sub(/^[0-9]+:/, "", line)
    at = index(line, ":")
    names = substr(line, 1, at - 1)
    where = substr(line, at + 1)
    if (where ~ /(^|\/)\.\.(\/|$)/) where = "/"
    if (names == "") two = where
    if (names ~ /(^|,)cpu(,|$)/) nested = where != "/"
    if (names ~ /(^|,)cpu(,|$)/) cpu_group = group_at(groups "/" names, where, "cpu.cfs_quota_us")
    if (where == "/" && names ~ /(^|,)cpuacct(,|$)/) root["cpuacct"] = groups "/" names "/"
    if (where == "/" && names == "memory") root["memory"] = groups "/" names "/"
    if (names ~ /(^|,)cpuacct(,|$)/) usage_group = group_at(groups "/" names, where, "cpuacct.usage")
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
    # Counters of another group do not continue those of this one: forget what was sent.
    for (line in sent) if (index(line, "cgroup ") == 1) delete sent[line]
    group_changed = known_group != "" && cpu_group != ""
    known_group = cpu_group
    if (group_changed) group_version = 0
  }
  if (group_version) send_group_limits()
  send_changed("cgroup", "cgroup.version " group_version)
}

# The directory of a group with this file. The machine's root group lacks it; a container sees its own group as root.
function group_at(root, where, file) {
  if (first_line(root where "/" file) != "") return root where
  return first_line(root "/" file) != "" ? root : ""
}

function first_line(path,   line) {
  if ((getline line < path) <= 0) line = ""
  close(path)
  return line
}

# Drop the last digits: nanoseconds become microseconds.
function send_group_count(name, number, digits) {
  number = length(number) > digits ? substr(number, 1, length(number) - digits) : 0
  send_changed("cgroup", "cgroup." name " " number)
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

# Memory without the inactive page cache, as in docker stats and kubectl top.
function send_group_memory(file, idle,   line, word, used) {
  if (memory_group == "" || (used = first_line(memory_group "/" file)) == "") return
  while ((getline line < (memory_group "/memory.stat")) > 0) {
    split(line, word, " ")
    if (word[1] == idle) { used -= word[2]; break }
  }
  close(memory_group "/memory.stat")
  send_group_count("memory", sprintf("%d", (used > 0 ? used : 0) / 1024), 0)
}

# Quota in thousandths of a CPU, memory in KiB; 0: no limit.
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
  send_changed("cgroup", "cgroup.quota " line)
  line = most ~ /^[0-9]+$/ && length(most) < 18 ? int(most / 1024) : 0
  send_changed("cgroup", "cgroup.limit " line)
}

function send_group_waits(resource,   path, line, word) {
  path = cpu_group "/" resource ".pressure"
  while ((getline line < path) > 0) {
    split(line, word, " ")
    if (word[1] == "some") send_group_count("waits_" resource, substr(word[5], 7), 0)
  }
  close(path)
}

# Sort block devices into disks and devices layered on disks, again if the kernel lists other devices.
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

# Whether other users' processes are hidden (hidepid): process 1 always exists.
function check_hidden(   line) {
  hidden = (getline line < "1/comm") <= 0
  close("1/comm")
}

function bare(text) {
  gsub(/ /, "", text)
  return text
}

function begin(number, what, own, loop) {
  tick++
  busy = number
  if (own != owner) { owner = own; shell = "./" own "/stat" }
  batched = !nuls && tick % seldom == 0
  there = ""; batch = ""; parts = 0
  if (whole) list = ""
  if (what == "all") { placed = ""; split("", stat); split("", statm); split("", title); split("", still) }
  if (what == "all") { split("", sent); split("", user); asked = "all"; group_changed = 1 }
  if (tick % every == 1) { sort_disks(); check_hidden() }
  put("")
  put("#cockpit begin " number)
  put("#cockpit disks" disks)
  put("#cockpit layered" layered)
  if (hidden) put("#cockpit hidden")
  send_system()
  send_speed(loop)
}

# Send the number of loops that measured the CPU's speed, and their CPU time (us).
function send_speed(loop) {
  if (loop > 0) { loops++; loop_us += loop }
  if (!loops) return
  send_changed("speed", "loops " loops)
  send_changed("speed", "loop_us " loop_us)
}

# Add a process to the list, in parts: appending to a long string is expensive.
function add_to_list(pid) {
  part = part " " pid
  if (length(part) > 4000) { list = list part; part = "" }
}

function finish(   i) {
  list = list part; part = ""
  if (list != placed) place()
  for (i = 1; i <= listed; i++) if (rest[i] != "" && is_idle(i)) add(i); else read_process(i)
  if (batch != "") send_titles()
  send_listeners()
  send_group()
  put("#cockpit there" there)
  put("#cockpit end " busy)
  print substr(out, 2); out = ""
  fflush()
  busy = ""
}

# Index the listed processes: PID, printed name, path of schedstat and its last line. mawk reads an element of an array
# made by split() directly, but hashes the keys of other arrays, for each process in each tick.
function place(   i, pid) {
  placed = list
  listed = split(list, pids, " ")
  split(list, name, " "); split(list, path, " "); split(list, rest, " ")
  for (i = 1; i <= listed; i++) {
    pid = pids[i] += 0
    if (!(pid in seen)) { known++; met[pid] = tick; make_paths(pid) }
    seen[pid] = tick
    path[i] = ran_at[pid]
    rest[i] = (pid in still) ? still[pid] : ""
  }
  if (listed < known) forget_ended()
}

# Make the paths of a process's files once: mawk keeps each opened name forever, but equal strings only once.
function make_paths(pid) {
  comm_at[pid] = pid "/comm"; stat_at[pid] = pid "/stat"; statm_at[pid] = pid "/statm"
  ran_at[pid] = pid "/schedstat"; title_at[pid] = pid "/cmdline"; parts_at[pid] = pid "/smaps_rollup"
  status_at[pid] = pid "/status"
}

function forget_paths(pid) {
  delete comm_at[pid]; delete stat_at[pid]; delete statm_at[pid]
  delete ran_at[pid]; delete title_at[pid]; delete parts_at[pid]; delete status_at[pid]
}

# Whether the number is an unknown process: threads take numbers from the same sequence.
function is_new(pid,   path, line) {
  if (pid in seen) return 0
  path = pid "/status"
  while ((getline line < path) > 0) if (line ~ /^Tgid:/) break
  close(path)
  return line == "Tgid:\t" pid
}

# Whether an idle process has not run since the last tick; false at intervals, so that it is read.
function is_idle(i,   line, got) {
  if (batched || (tick + pids[i]) % seldom == 0) return 0
  got = (getline line < path[i])
  close(path[i])
  return got > 0 && line == rest[i]
}

function read_process(i,   pid) {
  pid = pids[i]
  if (pid in head) send_process(pid, i)
  else if (tick - met[pid] < 3 || (tick + pid) % (tick - met[pid] < seldom ? every : seldom) == 0) consider(pid, i)
}

function wanted(pid,   path, comm, got) {
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
  return word[2] in head
}

function consider(pid, i) {
  if (!wanted(pid)) return
  head[pid] = ""
  send_process(pid, i)
}

function send_process(pid, i,   path, line, got, turn, slow, first, ran, named) {
  slow = (tick + pid) % seldom == 0
  first = !(pid in parted) && tick - met[pid] > 1 && parts < most
  rest[i] = ""
  if (pid in still) {
    ran = run_time(pid)
    if (ran != still[pid]) mark_active(pid)
  }
  path = stat_at[pid]
  got = (getline line < path)
  close(path)
  # The reader forgets processes that are not listed: if one returns, all its lines are sent again.
  if (got <= 0) { forget(pid); met[pid] = tick; return }
  turn = slow || batched || ((tick + pid) % every == 0 && pid in moved)
  if (line != stat[pid]) {
    delete still[pid]
    mark_active(pid)
    if (head[pid] == "" || substr(line, 1, length(head[pid])) != head[pid]) {
      if (head[pid] != "" && !wanted(pid)) { forget(pid); met[pid] = tick; return }
      match(line, /.*\) /)
      head[pid] = substr(line, 1, RLENGTH)
      named = 1
    }
    stat[pid] = line
    put("/proc/" path ":" line)
  }
  else {
    if (timed && pid in parted && single(pid)) still[pid] = rest[i] = ran; else delete still[pid]
    if (!turn && !first) { add(i); return }
  }
  if (!(pid in user) && tick - met[pid] > 1) send_user(pid)
  send_memory(pid)
  if (turn) delete moved[pid]
  if (named || !(pid in title) || (nuls ? turn : batched)) read_title(pid)
  if (first || slow && (pid in active || (tick + pid) % (3 * seldom) == 0)) send_shares(pid)
  add(i)
}

# The process ran: read its memory at the next interval.
function mark_active(pid) {
  moved[pid] = 1
  active[pid] = 1
}

# The scheduler's run time and number of time slices; `none` if the kernel does not count them.
function run_time(pid,   path, line) {
  path = ran_at[pid]
  if ((getline line < path) <= 0 || line == "0 0 0") line = "none"
  close(path)
  return line
}

# Whether a process has one thread.
function single(pid,   field) {
  split(substr(stat[pid], length(head[pid]) + 1), field, " ")
  return field[18] == 1
}

# Send a process's proportional share of its shared pages (PSS). The kernel walks all pages for it, so it is read
# seldom: for an idle process at every third slow interval, for a new one soon (not at once, while it still copies
# pages), and for few processes per tick. Processes without memory (defunct, kernel threads) have none.
function send_shares(pid,   path, line) {
  delete active[pid]
  parted[pid] = 1
  parts++
  send_user(pid)
  if (statm[pid] == "" || statm[pid] ~ /^0 /) return
  path = parts_at[pid]
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

function add(i) {
  there = there " " name[i]
  if (length(there) > 4000) { put("#cockpit there" there); there = "" }
}

function send_memory(pid,   path, line) {
  path = statm_at[pid]
  if ((getline line < path) > 0 && line != statm[pid]) { statm[pid] = line; put("/proc/" path ":" line) }
  close(path)
}

function read_title(pid,   path, line, more, n) {
  if (!nuls) {
    title[pid] = title[pid]
    batch = batch " " pid "/cmdline"
    if (length(batch) > 4000) send_titles()
    return
  }
  path = title_at[pid]
  line = ""
  while (n++ < 1000 && length(line) < bytes && (getline more < path) > 0) line = line (n > 1 ? " " : "") more
  close(path)
  line = substr(line, 1, bytes)
  gsub(/\000/, " ", line)
  sub(/ +$/, "", line)
  send_title(pid, line)
}

function send_title(pid, line) {
  if (line == title[pid]) return
  title[pid] = line
  put("/proc/" pid "/cmdline:" line)
}

# For an awk without support of NUL: grep prints the file's name before each argument.
function send_titles(   command, line, at, pid, found) {
  command = "grep -aHsz -m 1000 '' " batch " | tr '\\n\\000' ' \\n'"
  while ((command | getline line) > 0) {
    at = index(line, "/")
    pid = substr(line, 1, at - 1)
    line = substr(line, at + 9)
    if (!(pid in found)) found[pid] = line
    else if (length(found[pid]) < bytes) found[pid] = found[pid] " " line
  }
  close(command)
  for (pid in found) send_title(pid, substr(found[pid], 1, bytes))
  batch = ""
}

function forget(pid) {
  delete head[pid]; delete stat[pid]; delete statm[pid]; delete title[pid]; delete still[pid]; delete moved[pid]
  delete active[pid]; delete parted[pid]; delete user[pid]
}

function forget_ended(   pid) {
  for (pid in seen) if (seen[pid] != tick) { forget(pid); forget_paths(pid); delete met[pid]; delete seen[pid]; known-- }
}

# Input, one word per line: `list NUMBER WHAT OWN LOOP`, all processes, `end`; or `more …`, possibly new ones, `end`.
/[0-9]/ { if (busy != "" && (whole || is_new($0 + 0))) add_to_list($0 + 0); next }
/list|more/ {
  whole = ($0 ~ /list/)
  getline number; getline what; getline own; getline loop
  begin(number + 0, bare(what), bare(own), loop + 0)
  next
}
/end/ { if (busy != "") finish() }
