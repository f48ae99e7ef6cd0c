# $1 a file, $2 PID of a server in a container, then the server's files as paths in /proc/PID/root. Prints `same PATH`
# for those that are the same file, `mounted PATH` if the path is a mount point in the container.
file=$1 server=$2
shift 2
for path; do
    [ "$path" -ef "$file" ] || continue
    if mounted "${path#"/proc/$server/root"}" "$server"; then echo "mounted $path"; else echo "same $path"; fi
done
