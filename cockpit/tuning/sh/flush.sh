# flush PATH...: writes files, and directories with their entries, to the disk. Old versions of sync(1) know no files.
flush() {
    sync -- "$@" 2>/dev/null && return
    case $(sync --help 2>&1) in *FILE*) [ -d "$1" ] || refuse "$1 could not be written to the disk" ;; esac
    sync
}
