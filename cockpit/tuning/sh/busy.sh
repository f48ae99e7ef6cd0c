# $1 change directory, $2 timeout (s), $3 program, $4 its argument. Writes its identity to `busy` and runs the program.
identify "$$" && printf '%s\n' "$identity" >"$1/busy" || exit 125
shift
exec timeout -k 5 "$1" sh -c "$2" cockpit "$3"
