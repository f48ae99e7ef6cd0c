# $1 change directory. Unlocks the host and removes a change that touched nothing.
change=$1
if [ -e "$change/armed" ]; then ln -s dropped "$change/settled" 2>/dev/null || exit 0; fi
release
dismiss
rm -rf -- "$change"
