# $1 a file, $2 PID of a server in a container, then its files as /proc/PID/root shows them. Prints `same PATH` for those
# that are the file, `mounted PATH` if it is a mount point there.
file=$1 server=$2
shift 2
for path; do
    [ "$path" -ef "$file" ] || continue
    if mounted "${path#"/proc/$server/root"}" "$server"; then echo "mounted $path"; else echo "same $path"; fi
done
