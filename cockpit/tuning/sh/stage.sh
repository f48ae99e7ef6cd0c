# $1 change directory, $2 number, $3 file behind links, $4 its earlier digest, $5 digest of stdin, $6 name of the
# backup, $7 file; stdin: the new content. Stores the original and the new content in the change directory.
secure "$7" "$3"
if [ "$4" = absent ]; then
    missing "$3" || exit 5
else
    cp -- "$3" "$1/$6" || exit 4
    holds "$1/$6" "$4" || exit 5
fi
printf '%s\t%s\n' "$6" "$3" >>"$1/files" || exit 4
[ "$5" != absent ] || exit 0
cat >"$1/$2.new" || exit 4
holds "$1/$2.new" "$5" || refuse 'its new content arrived incomplete; is the disk full?'
