# $most_kept, $most_applied. Creates a directory for a change and prints it. Before that it removes the oldest changes:
# rolled back ones while there are more than $most_kept changes, then any that have ended while there are more than
# $most_applied. Never removed: a change that has not ended, was not rolled back completely, or may be armed soon
# (unarmed for less than an hour).
prune() {
    most=$1 over=$2
    set -- "$changes"/*-*/
    surplus=$(($# - most))
    for old; do
        [ "$surplus" -gt 0 ] || return 0
        old=${old%/}
        phase "$old"
        case " $over " in *" $phase "*) ;; *) continue ;; esac
        [ "$phase" != unarmed ] || [ "$(find "$old" -prune -mmin +60)" ] || continue
        rm -rf -- "$old"
        surplus=$((surplus - 1))
    done
}
chmod 700 -- "$base" && usable "$base/changes" && usable "$changes" || refuse "no place for a backup in $base"
prune "$most_kept" 'undone kept dropped unarmed'
prune "$most_applied" 'confirmed undone kept dropped unarmed'
change=$(mktemp -d -- "$changes/$(date -u +%Y%m%dT%H%M%SZ)-XXXXXX") || exit 4
boot
printf '%s %s %s\n' "$machine" "$boot" "$(uname -n)" >"$change/machine" 2>/dev/null || {
    rm -rf -- "$change"
    refuse 'No space left on device, or it cannot be written'
}
printf '%s\n' "$change"
