# $1 a unit, $2 a file. If a user other than root, the login and the unit's user could replace the file, prints
# `USER OWNER MODE`: the unit's user, and the file's owner and mode.
! trusted "$2" || exit 0
own=$(timeout 10 systemctl show --value -p User -- "$1" 2>/dev/null)
own=${own:-root}
user=$(id -u -- "$own" 2>/dev/null) && trusted "$2" && exit 0
printf '%s %s\n' "$own" "$(stat -L -c '%U %a' -- "$2")"
