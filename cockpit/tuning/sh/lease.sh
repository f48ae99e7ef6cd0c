# uptime: sets $now to the host's uptime (s). renew SECONDS: sets the end of the lease, at which the host undoes the
# change.
uptime() { read -r now _ </proc/uptime; now=${now%%.*}; }
renew() {
    uptime
    printf '%s\n' "$((now + $1))" >"$change/deadline.$$" && mv -f -- "$change/deadline.$$" "$change/deadline"
}
