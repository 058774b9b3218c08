# `temper serve` says where it is and how it is scheduled; a signal ends it.  Where it has a session
# for itself, all of that gives way to others.
. "$SOURCE/tests/cli/lib.sh"

mkdir -p runs/one
printf 'step,loss\n1,2\n' >runs/one/metrics.csv

# begin WORDS...: until it says its address, or that nothing can be served.
begin() {
    : >out
    "$@" >out 2>err </dev/null &
    pid=$!
    wait_until 'grep -q "^http://127.0.0.1:" out || grep -q "nothing can be served" err'
}

end_server() {
    kill -TERM "$pid"
    wait "$pid"
    is "the end by a signal" $? 0
}

begin "$TEMPER" serve --port -1 --no-index
if grep -q "nothing can be served" err; then
    wait "$pid"
    echo "SKIP: built without libmicrohttpd"
    finish
fi
wait_until 'grep -q "a run beside it goes first (--priority normal: as any program)" err'
# A second one on the same port is told what helps.
port=$(sed 's/.*:\([0-9]*\).*/\1/' out)
run serve --no-index --port "$port"
expect 2 "cannot listen on 127.0.0.1 port $port: another program has it, or it is not allowed; --port -1 takes one that is free"
end_server

begin "$TEMPER" serve --port -1 --no-index --priority normal
end_server
is "what it says at a normal priority" "$(cat err)" ""

run serve --priority high
expect 2 "--priority is low, idle or normal, not 'high'"

group=/proc/self/autogroup
if [ "$(cat /proc/sys/kernel/sched_autogroup_enabled 2>/dev/null)" = 1 ] && grep -q "nice 0" $group; then
    begin "$TEMPER" serve --port -1 --no-index
    grep -q "nice 0" $group || fail "a session of others was lowered"
    end_server
    # setsid forks where it leads a group of processes; the server says its number itself
    begin setsid sh -c 'echo $$ >number; exec "$0" serve --port -1 --no-index' "$TEMPER"
    server=$(cat number)
    grep -q "nice 19" "/proc/$server/autogroup" || fail "a session of its own was not lowered"
    kill -TERM "$server"
    wait "$pid"
    grep -q "nice 0" $group || fail "a session of others was lowered"
fi
finish
