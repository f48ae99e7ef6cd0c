# Starts and stops programs that outlive the connection: the guard and the undo of a change. With KillUserProcesses=yes
# logind kills the processes of a login at its end, and only a transient unit survives: a system unit for root, a user
# unit for others, which outlives the login only if the user lingers. Without systemd-run: `setsid`.
# outlives: prints three lines: whether a guard runs in a `unit` or in the `login`; whether logind kills the processes
# of a login (yes, no, unknown; by default not root's); whether sync(1) can write single `files`.
# managed PROGRAM ARGUMENT...: starts it as a transient unit; false if that fails. systemd would expand `$` and `%`. The
# unit does not have the login's environment: `environment` in the change's directory has it, so that it is in no argv.
pause() { sleep 0.05 2>/dev/null || sleep 1; }
managed() {
    case $* in *[\$%]*) return 1 ;; esac
    command -v systemd-run >/dev/null || return 1
    user=
    if [ "$(id -u)" = 0 ]; then
        own=$(readlink /proc/self/ns/mnt) first=$(readlink /proc/1/ns/mnt)
        [ -z "$first" ] || [ "$first" = "$own" ] || return 1
    else
        [ -e "/var/lib/systemd/linger/$(id -un)" ] || return 1
        user=--user
    fi
    export -p >"$change/environment" || return 1
    XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-/run/user/$(id -u)} timeout -k 1 10 systemd-run $user --quiet --collect \
        --property=KillMode=process --property=StandardOutput=null --property=StandardError=null /bin/sh "$@" && return
    rm -f -- "$change/environment"
    return 1
} </dev/null >/dev/null 2>&1
outlives() {
    change=$(mktemp -d) || return
    guard=login kills=unknown flushes=all
    ! managed -c : || guard=unit
    rm -rf -- "$change"
    place="org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager"
    case $(timeout 5 busctl get-property $place KillUserProcesses 2>/dev/null) in
        'b true') kills=yes; [ "$(id -u)" != 0 ] || kills=no ;;
        'b false') kills=no ;;
    esac
    case $(sync --help 2>&1) in *FILE*) flushes=files ;; esac
    printf '%s\n' "$guard" "$kills" "$flushes"
}
spawn() {
    setsid -f sh "$@" && return
    if command -v setsid >/dev/null; then setsid sh "$@" &
    else nohup sh "$@" &
    fi
} </dev/null >/dev/null 2>&1
release() {
    lock=${change%/*}/lock
    [ "$(readlink "$lock")" != "$change/owner" ] || rm -f -- "$lock"
}
dismiss() {
    recorded "$change/pid" || return 0
    kill -- "-$process" || kill "$process"
} 2>/dev/null
