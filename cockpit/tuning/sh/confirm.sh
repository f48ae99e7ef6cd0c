# $1 change directory, $2 digest of stdin; stdin: the change's record, which a lost connection may truncate.
change=$1
cat >"$change/applied" || exit 4
holds "$change/applied" "$2" || refuse 'its record arrived incomplete; is the disk full?'
flush "$change/applied" "$change"
if ! ln -s confirmed "$change/settled" 2>/dev/null; then
    [ "$(readlink "$change/settled")" = confirmed ] || refuse 'the confirmation came too late'
fi
flush "$change"
release
dismiss
rm -f -- "$change/reserve" "$change/environment"
