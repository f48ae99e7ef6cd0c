# $1 change directory, $2 timeout (s); stdin: the reason. Has the host undo the change, again if an earlier undo left
# something, and prints the outcome; prints `confirmed` if the change was confirmed before. An undo is not repeated
# during another change.
change=$1
[ -d "$change" ] || refuse 'its directory was removed there'
here "$change"
phase "$change"
if [ "$phase" = partial ] && ! undoer "$change"; then
    held=$(readlink "${change%/*}/lock")
    phase "${held%/owner}"
    case $phase in undoing | guarded | arming | abandoned) refuse 'another change there has not ended' ;; esac
    rm -f -- "$change/outcome"
fi
[ -s "$change/why" ] || cat >"$change/why"
uptime
until=$((now + $2))
{ [ -e "$change/environment" ] && managed "$change/guard" "$change" now; } || spawn "$change/undo"
while :; do
    case $(readlink "$change/settled") in confirmed | dropped) readlink "$change/settled"; exit ;; esac
    if [ -e "$change/outcome" ]; then cat -- "$change/outcome"; exit; fi
    uptime
    [ "$now" -lt "$until" ] || refuse "it is still running; see $change/log"
    pause
done
