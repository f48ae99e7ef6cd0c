# $1... paths. Prints size and inode of the first readable file, then its path.
for f; do if [ -r "$f" ]; then stat -L -c "%s %i" -- "$f" && printf "%s\n" "$f"; exit; fi; done
