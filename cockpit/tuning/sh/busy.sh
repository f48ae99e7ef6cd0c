# $1 change directory, $2 most seconds, $3 program, $4 its argument. Leaves its identity in `busy` and runs the program.
identify "$$" && printf '%s\n' "$identity" >"$1/busy" || exit 125
shift
exec timeout -k 5 "$1" sh -c "$2" cockpit "$3"
