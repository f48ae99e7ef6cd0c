# Prints one line per change: directory, state (see PastState) and facts (see About), separated by tabs.
for change in "$changes"/*/; do
    change=${change%/}
    [ -s "$change/about" ] || continue
    phase "$change"
    case $phase in
        confirmed) state=applied ;;
        undone) state='rolled back' ;;
        undoing) state='being rolled back' ;;
        guarded | arming) state='under way' ;;
        abandoned) state='left half done' ;;
        *) continue ;;
    esac
    printf '%s\t%s\t' "$change" "$state"
    head -n 1 -- "$change/about"
done
