# $1 change directory; stdin: the change's record.
change=$1
cat >"$change/applied" || exit 4
flush "$change/applied" "$change"
if ! ln -s confirmed "$change/settled" 2>/dev/null; then
    [ "$(readlink "$change/settled")" = confirmed ] || refuse 'the host has undone it meanwhile'
fi
flush "$change"
release
dismiss
rm -f -- "$change/reserve"
