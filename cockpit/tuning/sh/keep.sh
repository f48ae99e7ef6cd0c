# $1 change directory. Accepts what the undo of the change left: the change has ended.
: >"$1/kept"
