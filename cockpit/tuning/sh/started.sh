# $1 file, then PIDs. Prints the file's modification time and the start times of these processes (epoch s).
stat -L -c %Y -- "$1" || exit 4
shift
hertz=$(getconf CLK_TCK 2>/dev/null) || hertz=100
while read -r name value; do [ "$name" != btime ] || boot=$value; done </proc/stat
for pid; do
    read -r line <"/proc/$pid/stat" || continue
    set -f; set -- ${line##*) }; set +f
    [ "$#" -ge 20 ] || continue
    shift 19
    echo "$((boot + $1 / hertz))"
done 2>/dev/null
