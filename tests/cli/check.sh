# How `cockpit check` ends in a shell script: prints a name and an exit code for each.
# Given: URL of a server, PYTHON, and a folder of its own to write into, which is the current one.
set -u
check() { "$PYTHON" -m cockpit check "$@"; }
told() {
    name=$1
    shift
    "$@" >"$name.out" 2>"$name.err"
    echo "$name $?"
}
# Waits until the server is under load with this path; it leaves a file then.
asked() {
    tries=0
    until [ -e "asked$1" ]; do
        tries=$((tries + 1))
        [ $tries -lt 1200 ] || { echo "nobody asked for $1"; exit 1; }
        sleep 0.1
    done
}

told good check "$URL/" -n 100 --save-baseline before --junit good.xml
told broken check "$URL/status/503" -n 100 --threshold 'failed == 0' --junit broken.xml
told refused check http://user:sesame@127.0.0.1:1/ --junit refused.xml

"$PYTHON" -m cockpit check "$URL/interrupted" -z 60s --json >interrupted.out 2>interrupted.err &
asked /interrupted
kill -TERM $!
wait $!
echo "interrupted $?"

"$PYTHON" -m cockpit check "$URL/generator" -z 60s >generator.out 2>generator.err &
asked /generator
kill -KILL $(cat /proc/$!/task/*/children)
wait $!
echo "generator $?"
