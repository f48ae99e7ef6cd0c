# uptime: sets $now to the host's uptime (s). renew SECONDS: sets the end of the lease (1/100 s of uptime), at which the
# host undoes the change.
uptime() { read -r now _ </proc/uptime; now=${now%%.*}; }
renew() {
    read -r now _ </proc/uptime
    printf '%s\n' "$((${now%.*} + $1))${now#*.}" >"$change/deadline.$$" && mv -f -- "$change/deadline.$$" "$change/deadline"
}
