# $1 change directory, $2 timeout (s), $3 lease while the command runs, $4 lease after it, $5 the user's command, $6 a
# file to create before it runs ("": none); stdin: a line, the command's "$1". $busy and $give are the programs of that
# name. Output goes through files, so that a started server that keeps its standard output open does not block the
# caller.
change=$1
[ ! -L "$change/settled" ] || refuse 'the change was given up'
renew "$3" || exit 125
[ -z "$6" ] || { : >"$change/$6" && flush "$change"; } || exit 125
out=$change/out.$$ err=$change/err.$$
as_login sh -c "$busy" sh "$change" "$2" "$give" "$5" >"$out" 2>"$err"
status=$?
renew "$4" || status=125
[ ! -s "$out" ] || head -c 65536 -- "$out"
[ ! -s "$err" ] || head -c 65536 -- "$err" >&2
rm -f -- "$change/busy" "$out" "$err"
exit "$status"
