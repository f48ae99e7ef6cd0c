# Prints one line per change: directory, state (see HistoryState) and facts (see ChangeFacts), separated by tabs.
for change in "$changes"/*/; do
    change=${change%/}
    [ -s "$change/facts" ] || continue
    phase "$change"
    case $phase in
        confirmed) state=applied ;;
        undone) state='rolled back' ;;
        partial) state='not rolled back completely' ;;
        undoing) state='being rolled back' ;;
        guarded | arming) state='under way' ;;
        abandoned) state='incomplete' ;;
        *) continue ;;
    esac
    printf '%s\t%s\t' "$change" "$state"
    head -n 1 -- "$change/facts"
done
