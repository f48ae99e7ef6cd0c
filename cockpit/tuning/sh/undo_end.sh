# After files and values are restored: runs the tests, or the reloads if the new files were in use or the host rebooted.
failed=
if [ ! -e "$change/reloading" ] && [ "$made_in" = "$boot" ]; then
    [ -z "$touched" ] || tests
elif [ "$trouble" ] && { tests; [ "$failed" ]; }; then
    :
else
    reloads
    [ "$failed" ] || say reloaded
fi
say end
finish
