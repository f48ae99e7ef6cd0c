# $1 a unit. Prints the variables that its EnvironmentFiles set, `NAME FILE` separated by a tab, in the order of the
# files; the last assignment of a variable is effective.
timeout 10 systemctl show -p EnvironmentFiles -- "$1" 2>/dev/null |
    sed -n 's/^EnvironmentFiles=\(.*\) (ignore_errors=[a-z]*)$/\1/p' |
    while IFS= read -r pattern; do
        IFS=
        for file in $pattern; do
            [ -f "$file" ] || continue
            head -c 65536 -- "$file" | sed -n 's/^[[:blank:]]*\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p' | while read -r name; do
                row "$name" "$file"
            done
        done
    done
