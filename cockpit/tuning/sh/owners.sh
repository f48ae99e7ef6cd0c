# $1... programs. Prints for each a line with its mode and owner; the line is empty if it is missing.
for path; do
    ls -ldL -- "$path" 2>/dev/null | {
        read -r mode _ owner _
        printf '%s\n' "${owner:+$owner, $mode}"
    }
done
