# Lines on stdout: `did NUMBER` per replaced file, then `at NUMBER` for the last file that was processed.
at=0 barrier=settled
trap 'rm -f -- "$change/busy"; printf "at %s\n" "$at"; sweep' EXIT
identify "$$"
printf '%s\n' "$identity" >"$change/busy" || exit 4
