# Runs of `cockpit check` in a shell script: prints the name and exit code of each.
# Needs URL (a server), PYTHON and an empty current folder to write into.
set -u
check() { "$PYTHON" -m cockpit check "$@"; }
report() {
    name=$1
    shift
    "$@" >"$name.out" 2>"$name.err"
    echo "$name $?"
}
# Wait until the server is under load on this path; it creates a file then.
wait_for_load() {
    tries=0
    until [ -e "loaded$1" ]; do
        tries=$((tries + 1))
        [ $tries -lt 1200 ] || { echo "no load on $1"; exit 1; }
        sleep 0.1
    done
}

report good check "$URL/" -n 100 --save-baseline before --junit good.xml
report broken check "$URL/status/503" -n 100 --threshold 'failed == 0' --junit broken.xml
report refused check http://user:sesame@127.0.0.1:1/ --junit refused.xml

"$PYTHON" -m cockpit check "$URL/interrupted" -z 60s --json >interrupted.out 2>interrupted.err &
wait_for_load /interrupted
kill -TERM $!
wait $!
echo "interrupted $?"

"$PYTHON" -m cockpit check "$URL/generator" -z 60s >generator.out 2>generator.err &
wait_for_load /generator
kill -KILL $(cat /proc/$!/task/*/children)
wait $!
echo "generator $?"
