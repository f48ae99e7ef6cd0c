# $1 change directory. Accepts what the undo of the change left: the change counts as undone.
: >"$1/kept"
