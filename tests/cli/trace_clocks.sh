# Traces of ranks on hosts whose clocks differ, as their files state it: rank 1 is 5 ms ahead, rank 2 gains from 7.001 ms to 7.003 ms behind.
. "$SOURCE/tests/cli/lib.sh"
mkdir job

# trace RANK BASE START END COLLECTIVE...: times in microseconds of the file; a collective is start:duration, each behind
# 900 us of computing.
trace() {
    rank=$1 base=$2 start=$3 end=$4
    shift 4
    {
        echo "{\"schemaVersion\":1,\"producer\":\"temper 0.1.0\",\"baseTimeNanoseconds\":$base,\"traceEvents\":["
        n=0
        for c in "$@"; do
            at=${c%:*} for=${c#*:}
            [ $n = 0 ] || echo ","
            echo "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"temper::linear\",\"pid\":$rank,\"tid\":$rank,\"ts\":$((at - 900)).000,\"dur\":900.000,\"args\":{}},"
            echo "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"temper::wait\",\"pid\":$rank,\"tid\":$rank,\"ts\":$at.000,\"dur\":$for.000,\"args\":{\"Collective name\":\"wait\"}},"
            echo "{\"ph\":\"X\",\"cat\":\"collective_comm\",\"name\":\"all_reduce\",\"pid\":$rank,\"tid\":1073741825,\"ts\":$at.000,\"dur\":$for.000,\"args\":{\"Collective name\":\"all_reduce\",\"dtype\":\"Byte\",\"In msg nelems\":3000000,\"Out msg nelems\":3000000,\"Group size\":3,\"Process Group Name\":\"0+1x3\",\"Seq\":$n}}"
            n=$((n + 1))
        done
        echo "],\"distributedInfo\":{\"backend\":\"x\",\"rank\":$rank,\"world_size\":3,\"clock\":{\"start\":$start,\"end\":$end}}}"
    } >"job/steps.rank$rank.json"
}

# By the clock of rank 0, in us after 1 s: rank 0 comes at 1000, rank 1 at 1100, rank 2 at 1400, all are done at 1500 but rank 1,
# which hears of it at 1600 (so the ends do not tell the offsets); and again 2000 later.
trace 0 1000000000 '{"offset_ns":0,"error_ns":0}' '{"offset_ns":0,"error_ns":0}' 1000:500 3000:500
trace 1 1000000000 '{"offset_ns":5000000,"error_ns":2000}' '{"offset_ns":5000000,"error_ns":1000}' 6100:500 8100:500
trace 2 990000000 '{"offset_ns":-7001000,"error_ns":1000}' '{"offset_ns":-7003000,"error_ns":3000}' 4398:100 6398:100

run trace job ranks --json
expect 0
cp out ranks.json
is "offsets" "$("$TOOL" get ranks.json ranks.1.clock_offset_ns) $("$TOOL" get ranks.json ranks.2.clock_offset_ns)" "5000000 -7002000"
is "errors" "$("$TOOL" get ranks.json ranks.0.clock_spread_ns) $("$TOOL" get ranks.json ranks.1.clock_spread_ns) $("$TOOL" get ranks.json ranks.2.clock_spread_ns)" "0 2000 4000"
is "waits" "$("$TOOL" get ranks.json ranks.0.wait_ns) $("$TOOL" get ranks.json ranks.1.wait_ns) $("$TOOL" get ranks.json ranks.2.wait_ns)" "800000 600000 0"
is "last to arrive" "$("$TOOL" get ranks.json ranks.2.last_to_arrive)" 2
is "exposed" "$("$TOOL" get ranks.json ranks.0.exposed_comm_ns) $("$TOOL" get ranks.json ranks.2.exposed_comm_ns)" "1000000 200000"
is "computed" "$("$TOOL" get ranks.json ranks.0.compute_ns)" 1800000
is "transfer" "$("$TOOL" get ranks.json collectives.0.transfer_p50_ns)" 100000
# 3 MB in 100 us; 2 (n - 1) / n of it on a link.
is "bandwidth" "$("$TOOL" get ranks.json collectives.0.algbw_bytes_per_s) $("$TOOL" get ranks.json collectives.0.busbw_bytes_per_s)" "30000000000 40000000000"
run trace job
expect 0
expect_out "straggler: rank 2, last in 2 of 2 collectives" "at the start and at the" "4.000 us"

# What computes while a collective is on its way hides it.
sed -i 's/"ts":100.000,"dur":900.000/"ts":700.000,"dur":500.000/' job/steps.rank0.json
run trace job ranks --json
expect 0
is "hidden and exposed" "$("$TOOL" get out ranks.0.hidden_comm_ns) $("$TOOL" get out ranks.0.exposed_comm_ns)" "200000 800000"

# One that does not say how its clock is off: all are aligned by the ends of collectives, as ever.
sed -i 's/"clock":{.*}}}}/"x":0}}/; s/,"clock":{"start".*/}}/' job/steps.rank1.json
run trace job ranks
expect 0
expect_out "clocks are aligned by the ends of collectives"

# Nonsense is no offset.
trace 1 1000000000 '{"offset_ns":9223372036854775807,"error_ns":2000}' '{"offset_ns":5,"error_ns":-1}' 6100:500 8100:500
run trace job ranks
expect 0
expect_out "clocks are aligned by the ends of collectives"
finish
