# Prints one line per change: directory, state (see HistoryState), parts that a partial rollback left, and facts (see
# ChangeFacts), separated by tabs.
for change in "$changes"/*/; do
    change=${change%/}
    [ -s "$change/facts" ] || continue
    left=
    phase "$change"
    case $phase in
        confirmed) state=applied ;;
        undone) state='rolled back' ;;
        kept) state='left as it is' ;;
        partial) state='not rolled back completely' ;;
        undoing) state='being rolled back' ;;
        guarded | arming) state='under way' ;;
        abandoned) state='incomplete' ;;
        *) continue ;;
    esac
    printf '%s\t%s\t%s\t' "$change" "$state" "$left"
    head -n 1 -- "$change/facts"
done
