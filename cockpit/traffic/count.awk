# Counts the lines of an access log between two marks of follow.sh, per route group.
#
# Settings, before this program: mark (starts a line of follow.sh), start, most_bytes, most_groups, most_cached.
# FIELDS below stands for the statements that cut the fields off `rest`, and DURATION for those that make whole
# microseconds of `us`: a loop over fields takes twice as long.
# After each mark it prints
#   + UPTIME INVALID ROTATED UNREADABLE
#   g GROUP METHOD ROUTE                  (a number, and its name)
#   c GROUP STATUS MICROSECONDS COUNT     (three digits; -: not logged, or in whole seconds)
#   .
# Names have no space and no control character.

{
  at = index($0, mark)
  if (!at) {
    count(held == "" ? $0 : held $0)
    held = ""
    next
  }
  # The start of a line that is still being written; of a line that is too long, no more than makes it too long.
  if (length(held) <= most_bytes) held = held substr($0, 1, at - 1)
  word = substr($0, at + length(mark))
  if (word == "unreadable") unreadable = 1
  else if (word == "rotated") rotated++
  else if (word != "end") report(word)
  else if (held != "") {
    # A file ended without the rest of its line.
    invalid++
    held = ""
  }
}

function count(line,    rest, escaped, place, status, request, method, target, us) {
  if (length(line) > most_bytes || (start != "" && substr(line, 1, length(start)) != start)) { invalid++; return }
  escaped = index(line, "\\")
  rest = start == "" ? line : substr(line, length(start) + 1)
  # FIELDS
  if (length(status) != 3 || status !~ /^[1-5][0-9][0-9]$/) { invalid++; return }
  # DURATION
  # The text up to a query, with its ?: else a request could have the name of another one.
  if (place = index(request, "?")) request = substr(request, 1, place)
  # Remembered requests are limited in number and length.
  if (length(request) > 300) request = substr(request, 1, 300)
  counts[(request in groups ? groups[request] : group_of(request)) " " status " " us]++
}

# Return the place of the text that ends a quoted field, after escaped quotes; 0: there is none.
function unescaped(rest, text, place,    more, back) {
  while (place) {
    for (back = place - 1; back > 0 && substr(rest, back, 1) == "\\"; back--) ;
    if ((place - 1 - back) % 2 == 0) return place
    more = index(substr(rest, place + 1), text)
    place = more ? place + more : 0
  }
  return 0
}

function group_of(request,    place, method, target) {
  if (++cached > most_cached) { split("", groups); cached = 1 }
  # Clients may send anything, also spaces in a target.
  place = index(request, " ")
  method = place ? substr(request, 1, place - 1) : request
  target = place ? substr(request, place + 1) : ""
  if (place = index(target, "?")) target = substr(target, 1, place - 1)
  else if (match(target, / [^ ]*$/)) target = substr(target, 1, RSTART - 1)
  if (method !~ /^(GET|HEAD|POST|PUT|DELETE|PATCH|OPTIONS)$/) method = "other"
  return groups[request] = number_of(method " " route(target))
}

function number_of(name) {
  if (name in numbers) return numbers[name]
  if (last >= most_groups) name = "other *"
  if (name in numbers) return numbers[name]
  names[++last] = name
  return numbers[name] = last
}

# Replace numbers, UUIDs and hashes in a path by *.
function route(target,    parts, i, n_parts, text) {
  if (substr(target, 1, 1) != "/") return "*"
  text = ""
  n_parts = split(substr(target, 2, 200), parts, "/")
  if (n_parts > 8) return "/" variable(parts[1]) "/..."
  for (i = 1; i <= n_parts; i++) text = text "/" variable(parts[i])
  return n_parts ? text : "/"
}

function variable(part) {
  if (part ~ /^[0-9]+$/ || length(part) > 40 || part ~ /[^A-Za-z0-9_.~-]/) return "*"
  if (length(part) >= 8 && part ~ /[0-9]/ && part ~ /^[0-9A-Fa-f-]+$/) return "*"
  return part
}

function report(uptime,    key, text) {
  text = sprintf("+ %s %d %d %d\n", uptime, invalid, rotated, unreadable)
  for (key = 1; key <= last; key++) text = text "g " key " " names[key] "\n"
  # An interactive mawk makes a system call per statement that prints.
  for (key in counts) {
    text = text "c " key " " counts[key] "\n"
    if (length(text) > 2000) {
      printf "%s", text
      text = ""
    }
  }
  print text "."
  fflush()
  invalid = rotated = unreadable = 0
  split("", counts)
}
