# uptime: sets $now to the seconds since the host's start. renew SECONDS: the host waits for so long before it undoes the change.
uptime() { read -r now _ </proc/uptime; now=${now%%.*}; }
renew() {
    uptime
    printf '%s\n' "$((now + $1))" >"$change/deadline.$$" && mv -f -- "$change/deadline.$$" "$change/deadline"
}
