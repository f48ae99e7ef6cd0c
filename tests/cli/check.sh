# Every way `cockpit check` can end, as a script would call it: prints a name and an exit code for each.
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
told against check "$URL/" -n 100 --baseline before --threshold 'rate >= 1000000% of baseline' --json
told repeated check "$URL/" -n 100 --runs 3 --add-to-baseline before
told with-spread check "$URL/" -n 100 --runs 2 --baseline before --threshold 'rate >= 1% of baseline' --json
told other-load check "$URL/" -n 100 -c 2 --baseline before
told no-baseline check "$URL/" -n 100 --baseline gone
told aborted check "$URL/status/503" -z 60s --abort-on 'failed < 10' --json
told capped check "$URL/" -n 100m --cap 1s --json
told unknown check "$URL/" --threshold 'speed > 3'
told refused check http://user:sesame@127.0.0.1:1/ --junit refused.xml
cat >hosts.toml <<END
[target]
url = "$URL/"
[load]
duration = "60s"
[[host]]
name = "here"
[check]
abort_on = ["here.cpu.idle > 100"]
END
told host-aborted check ./hosts.toml --trust --json
told unsteady check "$URL/slower" -z 9s --steady --json
told too-short check "$URL/" -n 10 --steady
told recorded check "$URL/" -n 100 --record run.cockpit
"$PYTHON" -m cockpit baseline set same run.cockpit
told one-run check run.cockpit --baseline same --threshold 'rate >= 100% of baseline' --junit one-run.xml
told recording check run.cockpit --threshold 'completed == 100'
told recording-broken check 'run.cockpit#1' --threshold 'completed == 101'

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
