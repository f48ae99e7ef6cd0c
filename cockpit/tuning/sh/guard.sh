# $1 change directory, $2 "now" to undo immediately. Undoes the change when the lease expires, and continues an undo
# that was killed.
change=$1
if [ -e "$change/environment" ]; then
    unset INVOCATION_ID JOURNAL_STREAM SYSTEMD_EXEC_PID MANAGERPID
    . "$change/environment"
fi
exec </dev/null >/dev/null 2>&1
[ "$2" != now ] || exec sh "$change/undo"
identify "$$" && printf '%s\n' "$identity" >"$change/pid"
while [ -d "$change" ]; do
    if [ -L "$change/settled" ]; then
        phase "$change"
        case $phase in
            abandoned) exec sh "$change/undo" ;;
            undoing) ;;
            *) exit ;;
        esac
    else
        read -r now _ </proc/uptime
        read -r deadline <"$change/deadline" || deadline=0
        if [ "${now%.*}${now#*.}" -ge "$deadline" ]; then
            echo 'not confirmed in time' >"$change/why"
            exec sh "$change/undo"
        fi
    fi
    sleep 0.2 || sleep 1
done
