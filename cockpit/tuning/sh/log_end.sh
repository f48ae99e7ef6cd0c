# $1... paths. Prints the first of these files that can be read, its size and its inode.
for f; do if [ -r "$f" ]; then stat -L -c "%s %i" -- "$f" && printf "%s\n" "$f"; exit; fi; done
