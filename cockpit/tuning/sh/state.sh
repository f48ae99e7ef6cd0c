# Sets $base to a directory that only this user can read, outside of any configuration, and $changes to the directory of
# this machine's changes.
usable() {
    { [ -d "$1" ] || mkdir -p -m 700 -- "$1" 2>/dev/null; } && [ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ] && [ -w "$1" ] &&
        walk "$1" '' && [ -z "$flaw" ]
}
base=${XDG_STATE_HOME:-${HOME:-}/.local/state}/webcockpit
case $base in /.local/* | [!/]*) base= ;; esac
if [ -z "$base" ] || ! usable "$base"; then
    base=/var/tmp/webcockpit-$(id -u)
    usable "$base" || refuse "no place for a backup: neither ~/.local/state/webcockpit nor $base can be used"
fi
machine
changes=$base/changes/$machine
