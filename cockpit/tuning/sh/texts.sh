# Prints the lines of files, each after the number of its file; at most 64 KiB per file, 1 MiB in total. One awk reads all
# files if all are small, because two processes per file would take most of the time.
if [ $# -gt 0 ] && command -v awk >/dev/null && [ -z "$(find -L "$@" -prune -size +128 2>/dev/null)" ]; then
    LC_ALL=C awk 'BEGIN {
        for (n = 1; n < ARGC; n++) {
            while ((getline line < ARGV[n]) > 0) print n - 1, line
            close(ARGV[n])
        }
    }' "$@"
else
    n=0
    for file; do head -c 65536 -- "$file" | sed "s/^/$n /"; echo; n=$((n + 1)); done
fi | head -c 1048576
