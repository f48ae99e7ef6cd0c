# The reading of /proc, for mawk, gawk or busybox awk: one process for as long as the probe lives, no fork and no exec
# for a tick. From the environment: patterns regex port ports sockets nuls line_bytes round slow_round most_shares.
# A process's line is sent when it differs from the one sent before; `there` lists those that are still there. Memory
# (statm) is read only if stat has changed, or in turn: it hardly changes without that. Of a process whose stat stays as
# it is, schedstat is read instead, for half the cost: as long as that shows no run, only others change something about
# it (a parent that exits, pages taken away), and that is seen in turn. It covers the first thread alone, so it is read
# only for processes that have no other.
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

# Login names by user number, for as many as a host of its own has.
function read_logins(   line, word, n) {
  for (n = 0; n < 10000 && (getline line < "/etc/passwd") > 0; n++)
    if (split(line, word, ":") > 2 && !(word[3] in login) && length(word[1]) <= 64) login[word[3]] = word[1]
  close("/etc/passwd")
}

function put(line) {
  out = out "\n" line
  if (length(out) > 4000) { print substr(out, 2); out = "" }
}

function say_all(path,   line) {
  while ((getline line < path) > 0) put("/proc/" path ":" line)
  close(path)
}

function say_system(   line) {
  say_all("uptime")
  while ((getline line < "stat") > 0)
    if (substr(line, 1, 4) != "intr" && substr(line, 1, 7) != "softirq") put("/proc/stat:" line)
  close("stat")
  say_all("loadavg")
  while ((getline line < "meminfo") > 0)
    if (line ~ /^(MemTotal|MemFree|MemAvailable|Buffers|Cached|SReclaimable|Shmem|SwapTotal|SwapFree):/)
      put("/proc/meminfo:" line)
    else if (line ~ /^(SwapCached|Active|Inactive|Dirty|Slab|Committed_AS):/) say_changed("meminfo", line)
  close("meminfo")
  while ((getline line < "diskstats") > 0)
    if (line !~ / 0 0 0 0 0 0 0 0 0 0 0/) put("/proc/diskstats:" line)
  close("diskstats")
  while ((getline line < "net/dev") > 0)
    if (line !~ /\|/) put("/proc/net/dev:" line)
  close("net/dev")
  say_all("self/stat")
  say_all(shell)
  say_counters()
}

# A line of counters by its first word, if it changed.
function say_changed(path, line,   key) {
  key = path " " substr(line, 1, index(line, " "))
  if (told[key] == line) return
  told[key] = line
  put("/proc/" path ":" line)
}

# mawk fails where a file can be opened but not read (pressure that is switched off), so only those are read that the
# shell could read.
function is_readable(path) {
  return index(readable, " " path " ")
}

function say_counters(   line) {
  if (is_readable("vmstat")) {
    while ((getline line < "vmstat") > 0)
      if (line ~ /^p(gpg|gf|gmajf|swp|gscan_|gsteal_)/)
        if (line ~ /(in|out|fault|free|kswapd|direct|khugepaged|proactive) /) say_changed("vmstat", line)
    close("vmstat")
  }
  if (is_readable("net/sockstat")) {
    while ((getline line < "net/sockstat") > 0) if (line !~ /^UDPLITE/) say_changed("net/sockstat", line)
    close("net/sockstat")
  }
  say_table("net/snmp", "Tcp:", " ActiveOpens PassiveOpens AttemptFails EstabResets InSegs OutSegs RetransSegs InErrs" \
    " OutRsts ")
  say_table("net/netstat", "TcpExt:", " ListenOverflows ListenDrops ")
  say_pressure("pressure/cpu"); say_pressure("pressure/io"); say_pressure("pressure/memory")
  if (tick % queue_round == 1) say_queues()
}

# Of a table of two lines, names and numbers, the columns that changed.
function say_table(path, head, wanted,   names, numbers, changed, word, n, i, at) {
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
    if (told[path, i] "" == n) continue
    told[path, i] = n
    names = names " " column_name[path, i]
    changed = changed " " n
  }
  if (names != "") { put("/proc/" path ":" head names); put("/proc/" path ":" head changed) }
}

# How long (us) some, or all, tasks waited, without the averages that change all the time.
function say_pressure(path,   line, word) {
  if (!is_readable(path)) return
  while ((getline line < path) > 0) { split(line, word, " "); say_changed(path, word[1] " " word[5]) }
  close(path)
}

# The accept queue of each listening socket by its port, both hexadecimal. The kernel lists these sockets first, but
# walks the table of all connections for the rest of the first block: on a host with much memory that is dear.
function say_queues(   line, word, path, queues, sockets, at, i, n) {
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
  if (sockets != told["sockets"]) { told["sockets"] = sockets; say_backlogs() }
  if (queues != told["queues"]) { told["queues"] = queues; put("/proc/net/tcp:" queues) }
}

# The Unix sockets on which servers behind the target's accept connections.
function find_sockets(   line, word, n) {
  if (!is_readable("net/unix")) return
  while (n++ < 4096 && (getline line < "net/unix") > 0)
    if (split(line, word, " ") == 8 && word[4] == "00010000" && index("\n" sockets_behind "\n", "\n" word[8] "\n"))
      behind = behind " " word[7]
  close("net/unix")
}

# The limit of each accept queue, which is not in /proc: asked when there are other listening sockets than before.
function say_backlogs(   command, line, word, backlogs) {
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

# The watched processes that listen on the target's port or behind it, by the sockets among their files. Looked up when
# the sockets are others than before or the process found before is gone, and in turn while none is found.
function say_listeners(   command, line, pid, holder, last, listeners, n) {
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

# CPU, memory, limits and waits of the control group (container, unit) of the server: that of the process that listens on
# the target's port, else of the watched one with the lowest PID. Told by names of ours, as versions 1 and 2 have others.
# KiB and microseconds.
function say_group(   line) {
  if (tick % queue_round == 1 || group_anew) find_group()
  if (group_version == 2) {
    say_group_cpu(cpu_group "/cpu.stat", "usage_usec")
    say_group_memory("memory.current", "inactive_file")
    if (is_readable("pressure/cpu")) for (line in waits) say_group_waits(waits[line])
  }
  else if (group_version == 1) {
    say_group_cpu(cpu_group "/cpu.stat", "")
    if ((line = first_line(usage_group "/cpuacct.usage")) != "") say_group_count("cpu", line, 3)
    say_group_memory("memory.usage_in_bytes", "total_inactive_file")
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
  # Of a group that has a quota, not what the machine uses.
  if (nested && usage_group == root["cpuacct"]) usage_group = ""
  if (nested && memory_group == root["memory"]) memory_group = ""
  group_version = cpu_group == "" ? 0 : 1
  if (!group_version && (cpu_group = group_at(groups, two, "cgroup.type")) != "") {
    group_version = 2
    memory_group = cpu_group
  }
  group_anew = 0
  if (cpu_group != known_group) {
    # What another group has counted is continued by none of its own, and what was told of it is forgotten.
    for (line in told) if (index(line, "cgroup ") == 1) delete told[line]
    group_anew = known_group != "" && cpu_group != ""
    known_group = cpu_group
    if (group_anew) group_version = 0
  }
  if (group_version) say_group_limits()
  say_changed("cgroup", "cgroup.version " group_version)
}

# The directory of a group that has this file, which the root of all has not: a container sees its own as the root.
function group_at(root, where, file) {
  if (first_line(root where "/" file) != "") return root where
  return first_line(root "/" file) != "" ? root : ""
}

function first_line(path,   line) {
  if ((getline line < path) <= 0) line = ""
  close(path)
  return line
}

# Without the last digits: nanoseconds become microseconds.
function say_group_count(name, number, digits) {
  number = length(number) > digits ? substr(number, 1, length(number) - digits) : 0
  say_changed("cgroup", "cgroup." name " " number)
}

function say_group_cpu(path, usage,   line, word) {
  while ((getline line < path) > 0) {
    split(line, word, " ")
    if (word[1] == usage) say_group_count("cpu", word[2], 0)
    else if (word[1] == "nr_periods") say_group_count("periods", word[2], 0)
    else if (word[1] == "nr_throttled") say_group_count("throttled", word[2], 0)
  }
  close(path)
}

# Without the cache that the kernel would give up first, as docker stats and kubectl top.
function say_group_memory(file, idle,   line, word, used) {
  if (memory_group == "" || (used = first_line(memory_group "/" file)) == "") return
  while ((getline line < (memory_group "/memory.stat")) > 0) {
    split(line, word, " ")
    if (word[1] == idle) { used -= word[2]; break }
  }
  close(memory_group "/memory.stat")
  say_group_count("memory", sprintf("%d", (used > 0 ? used : 0) / 1024), 0)
}

# Thousandths of a CPU, and KiB; 0: no limit.
function say_group_limits(   line, word, most) {
  if (group_version == 2) {
    split(first_line(cpu_group "/cpu.max"), word, " ")
    most = first_line(memory_group "/memory.max")
  }
  else {
    word[1] = first_line(cpu_group "/cpu.cfs_quota_us"); word[2] = first_line(cpu_group "/cpu.cfs_period_us")
    most = memory_group == "" ? "" : first_line(memory_group "/memory.limit_in_bytes")
  }
  line = word[2] > 0 && word[1] > 0 ? int(1000 * word[1] / word[2]) : 0
  say_changed("cgroup", "cgroup.quota " line)
  line = most ~ /^[0-9]+$/ && length(most) < 18 ? int(most / 1024) : 0
  say_changed("cgroup", "cgroup.limit " line)
}

function say_group_waits(resource,   path, line, word) {
  path = cpu_group "/" resource ".pressure"
  while ((getline line < path) > 0) {
    split(line, word, " ")
    if (word[1] == "some") say_group_count("waits_" resource, substr(word[5], 7), 0)
  }
  close(path)
}

# Which block devices are disks and which lie upon disks; looked up anew when the kernel lists others than before.
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

# Whether the processes of others are hidden from this one: process 1 always is there.
function see_hiding(   line) {
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
  if (what == "all") { split("", told); split("", user); asked = "all"; group_anew = 1 }
  if (tick % every == 1) { sort_disks(); see_hiding() }
  put("")
  put("#cockpit begin " number)
  put("#cockpit disks" disks)
  put("#cockpit layered" layered)
  if (hidden) put("#cockpit hidden")
  say_system()
  say_speed(loop)
}

# The loops that measured how fast the CPU is, and the CPU time (us) that they took.
function say_speed(loop) {
  if (loop > 0) { loops++; loop_us += loop }
  if (!loops) return
  say_changed("speed", "loops " loops)
  say_changed("speed", "loop_us " loop_us)
}

# Adds a process to the list, by parts: a long text is dear to add to.
function enlist(pid) {
  part = part " " pid
  if (length(part) > 4000) { list = list part; part = "" }
}

function finish(   i) {
  list = list part; part = ""
  if (list != placed) place()
  for (i = 1; i <= listed; i++) if (rest[i] != "" && rests(i)) add(i); else look(i)
  if (batch != "") say_titles()
  say_listeners()
  say_group()
  put("#cockpit there" there)
  put("#cockpit end " busy)
  print substr(out, 2); out = ""
  fflush()
  busy = ""
}

# Lays the listed processes out: number, what to print, where to look, what that said. mawk finds a place in what
# split() made at once; for a key of any other array it searches, and that for each process in each tick.
function place(   i, pid) {
  placed = list
  listed = split(list, pids, " ")
  split(list, name, " "); split(list, path, " "); split(list, rest, " ")
  for (i = 1; i <= listed; i++) {
    pid = pids[i] += 0
    if (!(pid in seen)) { known++; met[pid] = tick; find(pid) }
    seen[pid] = tick
    path[i] = ran_at[pid]
    rest[i] = (pid in still) ? still[pid] : ""
  }
  if (listed < known) forget_the_gone()
}

# The paths of a process's files, made once: mawk keeps every name that it opened for ever, but the same text only once.
function find(pid) {
  comm_at[pid] = pid "/comm"; stat_at[pid] = pid "/stat"; statm_at[pid] = pid "/statm"
  ran_at[pid] = pid "/schedstat"; title_at[pid] = pid "/cmdline"; parts_at[pid] = pid "/smaps_rollup"
  status_at[pid] = pid "/status"
}

function lose(pid) {
  delete comm_at[pid]; delete stat_at[pid]; delete statm_at[pid]
  delete ran_at[pid]; delete title_at[pid]; delete parts_at[pid]; delete status_at[pid]
}

# Whether that is a process, and not known: threads have their numbers from the same row.
function born(pid,   path, line) {
  if (pid in seen) return 0
  path = pid "/status"
  while ((getline line < path) > 0) if (line ~ /^Tgid:/) break
  close(path)
  return line == "Tgid:\t" pid
}

# Whether one that rested did not run since; in turn it is looked at all the same.
function rests(i,   line, got) {
  if (batched || (tick + pids[i]) % seldom == 0) return 0
  got = (getline line < path[i])
  close(path[i])
  return got > 0 && line == rest[i]
}

function look(i,   pid) {
  pid = pids[i]
  if (pid in head) say_process(pid, i)
  else if (tick - met[pid] < 3 || (tick + pid) % (tick - met[pid] < seldom ? every : seldom) == 0) meet(pid, i)
}

function wanted(pid,   path, comm, got) {
  path = comm_at[pid]
  got = (getline comm < path)
  close(path)
  return got > 0 && (comm in watched || (regex != "" && comm ~ regex) || (comm ~ /^python/ && is_child(pid)))
}

# Whether it is a child of a watched process: workers that Python spawns have the name of its interpreter.
function is_child(pid,   path, line, word) {
  path = stat_at[pid]
  if ((getline line < path) > 0) { sub(/^.*\) /, "", line); split(line, word, " ") }
  close(path)
  return word[2] in head
}

function meet(pid, i) {
  if (!wanted(pid)) return
  head[pid] = ""
  say_process(pid, i)
}

function say_process(pid, i,   path, line, got, turn, slow, first, ran, named) {
  slow = (tick + pid) % seldom == 0
  first = !(pid in parted) && tick - met[pid] > 1 && parts < most
  rest[i] = ""
  if (pid in still) {
    ran = run_time(pid)
    if (ran != still[pid]) stir(pid)
  }
  path = stat_at[pid]
  got = (getline line < path)
  close(path)
  # What is not told to be there is forgotten at the other end too: should it come back, all of it is told anew.
  if (got <= 0) { forget(pid); met[pid] = tick; return }
  turn = slow || batched || ((tick + pid) % every == 0 && pid in moved)
  if (line != stat[pid]) {
    delete still[pid]
    stir(pid)
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
  if (!(pid in user) && tick - met[pid] > 1) say_user(pid)
  say_memory(pid)
  if (turn) delete moved[pid]
  if (named || !(pid in title) || (nuls ? turn : batched)) see_title(pid)
  if (first || slow && (pid in stirred || (tick + pid) % (3 * seldom) == 0)) say_shares(pid)
  add(i)
}

# It did something: what it has of memory is read in turn.
function stir(pid) {
  moved[pid] = 1
  stirred[pid] = 1
}

# How long it ran and how often, as the scheduler has it; `none` where the kernel does not count that.
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

# A process's part of the pages it shares. The kernel walks all its pages for that, so it is asked seldom; one without
# memory (defunct, or the kernel's own) has no answer. Of one that rests it is asked in every third such turn, and soon
# of one that is new (not at once: it still takes pages for itself), but of few in a tick.
function say_shares(pid,   path, line) {
  delete stirred[pid]
  parted[pid] = 1
  parts++
  say_user(pid)
  if (statm[pid] == "" || statm[pid] ~ /^0 /) return
  path = parts_at[pid]
  while ((getline line < path) > 0) if (line ~ /^Pss:/) { put("/proc/" path ":" line); break }
  close(path)
}

# The effective user. A worker changes its user soon after its start, so it is read some ticks later.
function say_user(pid,   path, line, word) {
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

function say_memory(pid,   path, line) {
  path = statm_at[pid]
  if ((getline line < path) > 0 && line != statm[pid]) { statm[pid] = line; put("/proc/" path ":" line) }
  close(path)
}

function see_title(pid,   path, line, more, n) {
  if (!nuls) {
    title[pid] = title[pid]
    batch = batch " " pid "/cmdline"
    if (length(batch) > 4000) say_titles()
    return
  }
  path = title_at[pid]
  line = ""
  while (n++ < 1000 && length(line) < bytes && (getline more < path) > 0) line = line (n > 1 ? " " : "") more
  close(path)
  line = substr(line, 1, bytes)
  gsub(/\000/, " ", line)
  sub(/ +$/, "", line)
  say_title(pid, line)
}

function say_title(pid, line) {
  if (line == title[pid]) return
  title[pid] = line
  put("/proc/" pid "/cmdline:" line)
}

# For an awk that knows no NUL: grep puts the file's name before each argument.
function say_titles(   command, line, at, pid, found) {
  command = "grep -aHsz -m 1000 '' " batch " | tr '\\n\\000' ' \\n'"
  while ((command | getline line) > 0) {
    at = index(line, "/")
    pid = substr(line, 1, at - 1)
    line = substr(line, at + 9)
    if (!(pid in found)) found[pid] = line
    else if (length(found[pid]) < bytes) found[pid] = found[pid] " " line
  }
  close(command)
  for (pid in found) say_title(pid, substr(found[pid], 1, bytes))
  batch = ""
}

function forget(pid) {
  delete head[pid]; delete stat[pid]; delete statm[pid]; delete title[pid]; delete still[pid]; delete moved[pid]
  delete stirred[pid]; delete parted[pid]; delete user[pid]
}

function forget_the_gone(   pid) {
  for (pid in seen) if (seen[pid] != tick) { forget(pid); lose(pid); delete met[pid]; delete seen[pid]; known-- }
}

# A word a line: `list NUMBER WHAT OWN LOOP`, the processes there are, `end`; or `more …`, what may be new ones, `end`.
/[0-9]/ { if (busy != "" && (whole || born($0 + 0))) enlist($0 + 0); next }
/list|more/ {
  whole = ($0 ~ /list/)
  getline number; getline what; getline own; getline loop
  begin(number + 0, bare(what), bare(own), loop + 0)
  next
}
/end/ { if (busy != "") finish() }
