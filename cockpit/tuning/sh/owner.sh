# $1 a unit, $2 a file. Prints `USER OWNER MODE`, the unit's user and the file's owner and mode, if another user than
# root, the login or the unit's could replace the file.
! trusted "$2" || exit 0
own=$(timeout 10 systemctl show --value -p User -- "$1" 2>/dev/null)
own=${own:-root}
user=$(id -u -- "$own" 2>/dev/null) && trusted "$2" && exit 0
printf '%s %s\n' "$own" "$(stat -L -c '%U %a' -- "$2")"
