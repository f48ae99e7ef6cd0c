# machine: sets $machine to a digest of the machine id (the id itself must not leave the host), or of the host name.
# here CHANGE: refuses a change that was made on another machine with the same home.
machine() {
    for file in /etc/machine-id /var/lib/dbus/machine-id; do
        id=
        { read -r id <"$file"; } 2>/dev/null
        case $id in '' | *[!0-9a-f]*) id= ;; *) break ;; esac
    done
    machine=$(printf 'cockpit %s' "${id:-$(uname -n)}" | sha256sum)
    machine=${machine%"${machine#????????????????}"}
}
here() {
    machine
    made_on= made_in= made_at=
    { read -r made_on made_in made_at <"$1/machine"; } 2>/dev/null
    [ "$made_on" = "$machine" ] ||
        refuse "this change was made on ${made_at:-another machine}, which shares this home; undo it there"
    boot
}
