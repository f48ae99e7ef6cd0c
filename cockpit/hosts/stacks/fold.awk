# Folds the samples of `perf script` into stacks with counts, and prints them in slices of $seconds of perf's clock. With
# $stacks, a command that prints folded stacks of the process $name, each run of it is a slice.
# Environment: source hz clock_ticks parent everywhere seconds most_stacks most_text most_length most_frames patterns
# regex roots; with $stacks also: name, expected (number of lines "+ended" if it succeeds), watcher (process at whose end
# this program ends).

BEGIN {
  n = split(ENVIRON["patterns"], words, "\n")
  for (i = 1; i <= n; i++) watched[words[i]] = 1
  filtered = split(ENVIRON["roots"], words, " ")
  for (i = 1; i <= filtered; i++) roots[words[i]] = 1
  regex = ENVIRON["regex"]; everywhere = ENVIRON["everywhere"]
  seconds = ENVIRON["seconds"] + 0; most_stacks = ENVIRON["most_stacks"] + 0; most_text = ENVIRON["most_text"] + 0
  most_length = ENVIRON["most_length"] + 0; most_frames = ENVIRON["most_frames"] + 0
  start = -1; open = 0
  if (is_command()) exit run_command(ENVIRON["stacks"])
}

# A sample starts with `NAME PID TIME: `. Names may contain blanks.
/^[^\t]/ && NF >= 3 && $NF ~ /^[0-9]+\.[0-9]+:$/ {
  add_sample()
  now = substr($NF, 1, length($NF) - 1) + 0
  pid = $(NF - 1)
  name = $0
  sub(/^ +/, "", name)
  sub(/ +[0-9-]+ +[0-9.]+: *$/, "", name)
  # Also samples of other processes tell the time.
  pass_time()
  open = !everywhere || is_server(pid)
  next
}

# A frame: `ADDRESS FUNCTION (MODULE)`, the innermost first. Outer frames beyond the limits are left out.
open && /^[\t ]+[0-9a-f]+ / {
  if (frames >= most_frames) next
  kernel = length($1) == 16 && substr($1, 1, 4) == "ffff"
  match($0, /[0-9a-f]+ /)
  line = substr($0, RSTART + RLENGTH)
  line = known_frame(line)
  # Without frame pointers the callers are noise.
  if (line == "[unknown]" && last == line) next
  if (length(stack) + length(line) >= most_length) { frames = most_frames; next }
  last = line
  stack = ";" line stack
  frames++
}

END {
  if (is_command()) exit failed
  add_sample()
  if (start >= 0 && now - start >= 1) print_slice(now)
}

function is_command() { return ("stacks" in ENVIRON) && ENVIRON["stacks"] != "" }

# Return 0 after the end of the watcher, 1 after a run that failed, which ends the watcher.
function run_command(command,   line, ended) {
  for (failed = 0; !failed && read_stat(ENVIRON["watcher"]) && stat_state != "Z";) {
    # The samples of a run that was too short for a slice are part of the next one.
    if (!samples) start = read_uptime()
    ended = 0
    while ((command | getline line) > 0) {
      if (line == "+ended") ended++
      else add_folded(line)
    }
    close(command)
    failed = ended < ENVIRON["expected"] + 0
    if (!failed && read_uptime() - start >= 1) print_slice(uptime + 0)
  }
  if (failed) system("kill " ENVIRON["watcher"])
  return failed
}

# Add a line `FRAME;FRAME COUNT`, the outermost first, of py-spy or async-profiler. Outer frames beyond the limits, command
# lines of processes and marks of compiled Java methods are left out.
function add_folded(line,   n, parts, at, folded, frame, size) {
  if (line ~ /^py-spy> / || !match(line, / [0-9]+$/) || RLENGTH > 6) return
  size = substr(line, RSTART + 1) + 0
  line = substr(line, 1, RSTART - 1)
  sub(/^process [0-9]+:.*";/, "", line)
  n = split(line, parts, ";")
  folded = ""
  for (at = n; at > 0 && n - at < most_frames; at--) {
    frame = parts[at]
    kernel = sub(/_\[k\]$/, "", frame)
    sub(/_\[[01ij]\]$/, "", frame)
    frame = clean(frame, 120) (kernel ? "_[k]" : "")
    if (length(folded) + length(frame) >= most_length) break
    folded = ";" frame folded
  }
  count_stack(clean(ENVIRON["name"], 32) folded, size)
}

# The name of a frame, from at most 4 MB of known ones: names may be as long and as many as a program likes.
function known_frame(line,   key) {
  key = kernel line
  if (!(key in frame_names)) {
    if ((known_text += length(line)) > 4e6) { split("", frame_names); known_text = length(line) }
    frame_names[key] = frame_name(line)
  }
  return frame_names[key]
}

# The name of a frame `FUNCTION (MODULE)`.
function frame_name(line,   module) {
  module = ""
  if (match(line, / \([\/[][^(]*(\(deleted\))?\)$/) || match(line, / \([^(]*\)$/)) {
    module = substr(line, RSTART + 2, RLENGTH - 3)
    line = substr(line, 1, RSTART - 1)
  }
  if (line == "[unknown]" || line == "") line = module_name(module)
  return clean(line, 120) (kernel ? "_[k]" : "")
}

function clean(text, most) {
  gsub(/[^ -~]/, "?", text)
  gsub(/;/, ":", text)
  return text == "" ? "?" : substr(text, 1, most)
}

function module_name(path) {
  if (path == "" || path == "[unknown]") return "[unknown]"
  sub(/ \(deleted\)$/, "", path)
  sub(/.*\//, "", path)
  return path ~ /^\[/ ? path : "[" path "]"
}

function pass_time() {
  if (start < 0) start = now
  if (now - start > 60) start = now - (now - start) % seconds
  while (now >= start + seconds) print_slice(start + seconds)
}

function add_sample(   key) {
  if (!open) return
  open = 0
  key = clean(name, 32) stack
  stack = last = ""; frames = 0
  count_stack(key, 1)
}

function count_stack(key, size) {
  samples += size
  if (key in counts ? counts[key] < 1e5 : different < 5 * most_stacks) {
    if (!(key in counts)) different++
    counts[key] += size
  } else other += size
}

# Whether a process is of the server, by its own name (threads have other names), else by that of its thread.
function is_server(pid,   comm) {
  if (pid in known) return known[pid]
  comm = read_stat(pid) ? stat_comm : name
  known[pid] = pid > 0 && (comm in watched || (regex != "" && comm ~ regex))
  if (known[pid] && filtered) known[pid] = is_descendant(pid)
  return known[pid]
}

function is_descendant(pid,   steps) {
  for (steps = 0; steps < 20 && !(pid in roots); steps++) {
    if (!read_stat(pid)) return 0
    pid = stat_parent
  }
  return pid in roots
}

function read_stat(pid,   path, line) {
  path = "/proc/" pid "/stat"
  line = ""
  getline line < path
  close(path)
  if (line == "") return 0
  stat_parent = line
  sub(/.*\) /, "", stat_parent)
  stat_state = substr(stat_parent, 1, 1)
  stat_parent = substr(stat_parent, 3) + 0
  stat_comm = line
  sub(/^[0-9]+ \(/, "", stat_comm)
  sub(/\) [^)]*$/, "", stat_comm)
  return 1
}

# Print the most frequent stacks; the rest as one number.
function print_slice(end,   key, most, total, text, level, room) {
  split("", having)
  most = 0
  for (key in counts) { having[counts[key]]++; if (counts[key] > most) most = counts[key] }
  total = 0
  for (level = most; level > 0 && total + having[level] <= most_stacks; level--) total += having[level]
  room = most_stacks - total
  text = 0
  for (key in counts) {
    if (counts[key] < level || (counts[key] == level && --room < 0) || (text += length(key)) > most_text) {
      other += counts[key]
      delete counts[key]
    }
  }
  read_uptime()
  printf "#cockpit slice %.6f %.6f %s %s %d %d %.2f\n", start, end, uptime, ENVIRON["source"],
    samples, other, cost()
  for (key in counts) print counts[key], key
  print "#cockpit end"
  fflush()
  split("", counts); split("", known); split("", frame_names)
  known_text = 0
  samples = other = different = 0
  start = end
}

function read_uptime() {
  getline uptime < "/proc/uptime"
  close("/proc/uptime")
  sub(/ .*/, "", uptime)
  return uptime + 0
}

# CPU time (s) of this pipeline since the last slice: of all children of the shell that started it.
function cost(   path, pids, n, i, words, line, used, before) {
  path = "/proc/" ENVIRON["parent"] "/task/" ENVIRON["parent"] "/children"
  pids = ""
  getline pids < path
  close(path)
  n = split(pids, words, " ")
  used = 0
  for (i = 1; i <= n; i++) {
    path = "/proc/" words[i] "/stat"
    line = ""
    getline line < path
    close(path)
    sub(/.*\) /, "", line)
    if (split(line, fields, " ") > 14) used += fields[12] + fields[13] + fields[14] + fields[15]
  }
  before = spent
  spent = used
  return used > before ? (used - before) / ENVIRON["clock_ticks"] : 0
}
