/* trace.c - record what a program of your own does, with nothing of Temper but its recorder.
 *
 *     cc trace.c $(pkg-config --cflags --libs temper-trace) -pthread -o trace && ./trace out.json
 *
 * Two threads work; the file opens in https://ui.perfetto.dev and in `temper trace out.json`. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <temper/trace.h>

static const tp_trace_site handed_over = {.name = "handed over"};

static double work(int n)
{
    TP_ZONE("work");
    double sum = 0;
    for (int i = 1; i < n * 10000; i++)
        sum += 1.0 / i;
    return sum;
}

static void *worker(void *flow)
{
    tp_trace_thread_name("worker");
    TP_ZONE("worker");
    tp_trace_flow_end(&handed_over, *(uint64_t *)flow);
    for (int i = 0; i < 5; i++) {
        tp_counter_start(tp_counter_get("time in work"));
        TP_COUNTER("sum", work(i));
        if (tp_counter_stop(tp_counter_get("time in work"), NULL) != TP_OK)
            abort();
    }
    return NULL;
}

int main(int argc, char **argv)
{
    tp_error err;
    pthread_t thread;
    const char *path = argc > 1 ? argv[1] : "trace.json";
    if (tp_trace_start(NULL, &err) != TP_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    tp_trace_thread_name("main");

    uint64_t flow = tp_trace_flow_new();
    TP_PUSH("hand over");
    tp_trace_flow_begin(&handed_over, flow);
    TP_POP();
    pthread_create(&thread, NULL, worker, &flow);

    void *buffer = malloc(1 << 20);
    TP_MEMORY("buffers", "main", buffer, 1 << 20);
    work(20);
    TP_MARK("half way", "{\"buffer\":\"full\"}");
    TP_MEMORY("buffers", "main", buffer, -(1 << 20));
    free(buffer);
    pthread_join(thread, NULL);

    if (tp_trace_write(path, &err) != TP_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    tp_counter_stats stats = tp_counter_read(tp_counter_get("time in work"));
    printf("%s: %s, %.0f ns per zone; %s %llu times, mean %.3f ms\n", path,
           tp_trace_get_cost().clock, tp_trace_get_cost().zone_ns, stats.name,
           (unsigned long long)stats.count, stats.mean * 1e3);
    return 0;
}
