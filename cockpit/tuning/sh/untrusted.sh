# $1... paths. Prints the paths that another user could replace.
for path; do trusted "$path" || printf '%s\n' "$path"; done
