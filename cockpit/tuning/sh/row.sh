# row WORD...: prints the words on one line, separated by tabs. A word with a tab or a line break, as any user can have in
# the name of a file, would look like other words or rows: it is printed as an empty word.
tab='	' newline='
'
row() {
    printf '%s' "$1"
    shift
    for word; do
        case $word in *[$tab$newline]*) word= ;; esac
        printf '\t%s' "$word"
    done
    echo
}
