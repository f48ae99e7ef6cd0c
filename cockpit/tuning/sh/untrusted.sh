# Prints those of the paths $1, … that another user could replace.
for path; do trusted "$path" || printf '%s\n' "$path"; done
