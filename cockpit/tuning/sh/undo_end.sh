# After the files and values: tests, or reloads if the new files were in use or the host was rebooted.
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
