#!/bin/sh
# Asks by way of a real proxy, tinyproxy: sh tests/proxy.sh [Q]
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
q=${1:-${CARGO_TARGET_DIR:-$root/target}/release/q}
missing=
for tool in tinyproxy python3 timeout "$q"; do
    command -v "$tool" >/dev/null || missing="$missing $tool"
done
if [ -n "$missing" ]; then
    echo "proxy.sh: not installed, but needed:$missing" >&2
    exit 1
fi

scratch=$(mktemp -d)
started=
# One of them has been ended by then, which must not count as a failure.
trap 'kill $started 2>/dev/null || :; rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

# eventually COMMAND…: until it succeeds, or for ten seconds.
eventually() {
    tries=0
    until "$@" 2>/dev/null; do
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || { echo "proxy.sh: waited in vain for: $*" >&2 && exit 1; }
        sleep 0.1
    done
}

python3 "$root/tests/server.py" "$scratch/port" &
started=$!
eventually [ -e "$scratch/port" ]
port=$(cat "$scratch/port")

# proxy NAME LINE…: starts one on a free port, which is in the file NAME.port, with these lines in its configuration.
proxy() {
    name=$1
    shift
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])' >"$scratch/$name.port"
    printf '%s\n' "Port $(cat "$scratch/$name.port")" 'Listen 127.0.0.1' 'LogLevel Info' \
        "LogFile \"$scratch/$name.log\"" "PidFile \"$scratch/$name.pid\"" "$@" >"$scratch/$name.conf"
    tinyproxy -d -c "$scratch/$name.conf" >"$scratch/$name.out" 2>&1 &
    started="$started $!"
    eventually grep -q 'Accepting connections' "$scratch/$name.log"
}
proxy open
proxy locked 'BasicAuth user proxy-secret'
proxy narrow 'ConnectPort 1'

at() { echo "127.0.0.1:$(cat "$scratch/$1.port")"; }

# How often the proxies were asked to connect to the server.
connects() { cat "$scratch"/*.log | grep -c "CONNECT [0-9.]*:$port" || true; }

passed=0
failed=0

# check WHAT EXIT CONNECTS PATTERN HOST VARIABLE…: asks the server under that name with these variables; how q ends, how
# often a proxy was asked, and what is said: on stdout where q succeeds, else on stderr.
check() {
    what=$1 status=$2 count=$3 pattern=$4 host=$5
    shift 5
    before=$(connects) ended=0
    timeout 30 env -i HOME="$scratch" XDG_STATE_HOME="$scratch" OPENAI_API_KEY=sk-test-0123456789 \
        OPENAI_BASE_URL="http://$host:$port/v1" "$@" "$q" -n hi >"$scratch/stdout" 2>"$scratch/stderr" || ended=$?
    said=$(if [ "$ended" = 0 ]; then cat "$scratch/stdout"; else cat "$scratch/stderr"; fi)
    found="exit $ended, $(($(connects) - before)) times by a proxy: $said"
    grep -q 'proxy-secret\|sk-test' "$scratch/stdout" "$scratch/stderr" && found="a secret, $found"
    # shellcheck disable=SC2254 # it is a pattern
    case $found in
    "exit $status, $count times by a proxy: "$pattern)
        passed=$((passed + 1))
        echo "ok    $what"
        ;;
    *)
        failed=$((failed + 1))
        echo "FAIL  $what: found $found; expected exit $status, $count times by a proxy: $pattern"
        ;;
    esac
}

# An address of this very machine that is not loopback by its looks: nothing has to be resolved, no network be there.
here=0.0.0.0

check 'HTTP_PROXY'                  0 1 'an answer' $here HTTP_PROXY="http://$(at open)"
check 'http_proxy'                  0 1 'an answer' $here http_proxy="http://$(at open)"
check 'ALL_PROXY'                   0 1 'an answer' $here ALL_PROXY="http://$(at open)"
check 'a proxy without a scheme'    0 1 'an answer' $here HTTP_PROXY="$(at open)"
check 'a proxy with a slash'        0 1 'an answer' $here HTTP_PROXY="http://$(at open)/"
check 'HTTPS_PROXY is not for http' 0 0 'an answer' $here HTTPS_PROXY="http://$(at open)"
check 'NO_PROXY names the host'     0 0 'an answer' $here HTTP_PROXY="http://$(at open)" NO_PROXY="other.example, $here"
check 'no_proxy names the host'     0 0 'an answer' $here HTTP_PROXY="http://$(at open)" no_proxy="$here"
check 'NO_PROXY is a star'          0 0 'an answer' $here HTTP_PROXY="http://$(at open)" NO_PROXY='*'
check 'NO_PROXY names another host' 0 1 'an answer' $here HTTP_PROXY="http://$(at open)" NO_PROXY=other.example
check 'loopback'                    0 0 'an answer' 127.0.0.1 HTTP_PROXY="http://$(at open)"
check 'the password is right'       0 1 'an answer' $here HTTP_PROXY="http://user:proxy-secret@$(at locked)"
check 'the password is missing'     1 1 '*40[17]*HTTP_PROXY*' $here HTTP_PROXY="http://$(at locked)"
check 'the proxy forbids the port'  1 1 '*403*HTTP_PROXY*' $here HTTP_PROXY="http://$(at narrow)"
kill "${started%% *}"
wait "${started%% *}" 2>/dev/null || true
check 'the server is gone'          1 1 '*50[0-9]*HTTP_PROXY*' $here HTTP_PROXY="http://$(at open)"

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
