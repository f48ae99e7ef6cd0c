# $1 a command that prints a value, $2 a file for a copy of its output ("": none).
value=$(as_login timeout -k 5 30 sh -c "$1" cockpit </dev/null) || exit
[ -z "$2" ] || {
    set -f; set -- "$2" $value; to=$1; shift
    printf '%s\n' "$*" >"$to" && flush "$to" "${to%/*}"
} || exit 4
printf '%s\n' "$value"
