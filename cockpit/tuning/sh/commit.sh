# Lines on stdout: `did NUMBER` for each replaced file, and `at NUMBER`, the one that was handled last.
at=0 barrier=settled
trap 'rm -f -- "$change/busy"; printf "at %s\n" "$at"; sweep' EXIT
identify "$$"
printf '%s\n' "$identity" >"$change/busy" || exit 4
