# as_login COMMAND...: runs it with the login's umask, locale, PATH and directory, which this program changes for
# itself. The undo inherits them from the program that armed it.
# refuse REASON: exit 4. holds FILE DIGEST: the file has that digest. missing FILE. matches FILE DIGEST: as holds, or
# DIGEST is `absent` and the file is missing. unmade FILE: it is a drop-in of a unit without a directory for drop-ins.
if [ -z "${COCKPIT_LOGIN_UMASK-}" ]; then
    COCKPIT_LOGIN_UMASK=$(umask) COCKPIT_LOGIN_PATH=$PATH COCKPIT_LOGIN_LOCALE=${LC_ALL+=$LC_ALL}
    COCKPIT_LOGIN_DIRECTORY=$PWD
    export COCKPIT_LOGIN_UMASK COCKPIT_LOGIN_PATH COCKPIT_LOGIN_LOCALE COCKPIT_LOGIN_DIRECTORY
fi
as_login() (
    umask "$COCKPIT_LOGIN_UMASK"
    PATH=$COCKPIT_LOGIN_PATH LC_ALL=${COCKPIT_LOGIN_LOCALE#=}
    [ "$COCKPIT_LOGIN_LOCALE" ] || unset LC_ALL
    cd -- "$COCKPIT_LOGIN_DIRECTORY" 2>/dev/null
    unset COCKPIT_LOGIN_UMASK COCKPIT_LOGIN_PATH COCKPIT_LOGIN_LOCALE COCKPIT_LOGIN_DIRECTORY
    exec "$@"
)
LC_ALL=C; export LC_ALL
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; export PATH
umask 077
refuse() { printf '%s\n' "$1" >&2; exit 4; }
holds() { set -- "$2" $(sha256sum <"$1"); [ "$1" = "$2" ]; }
missing() { [ ! -e "$1" ] && [ ! -L "$1" ]; }
unmade() { case $1 in /*.service.d/*.conf) missing "${1%/*}" ;; *) return 1 ;; esac; }
matches() { if [ "$2" = absent ]; then missing "$1"; else holds "$1" "$2"; fi; }
