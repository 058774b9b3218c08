/* Random traces against slow, obvious implementations: one byte per nanosecond. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "instrument/analyze/critical_path.h"
#include "instrument/analyze/idle.h"
#include "instrument/analyze/launch.h"
#include "instrument/analyze/number_index.h"
#include "instrument/analyze/sort.h"
#include "instrument/ingest/ingest.h"

enum { TRACES = 300, TIME = 400, MOST = 80 };

static int64_t below(tp_rng *rng, uint64_t n) { return (int64_t)tp_rng_below(rng, n); }

/* ---- periods ---- */

static void paint(uint8_t *time, const tp_periods *s, uint8_t bit)
{
    for (size_t i = 0; i < s->n; i++)
        for (int64_t t = s->v[i].start; t < s->v[i].end; t++)
            time[t] |= bit;
}

static tp_periods random_set(tp_rng *rng)
{
    tp_periods s = {0};
    for (int64_t i = below(rng, 20); i > 0; i--) {
        int64_t start = below(rng, TIME), length = below(rng, 30);
        tp_periods_add(&s, start, start + length > TIME ? TIME : start + length);
    }
    tp_periods_normalize(&s);
    return s;
}

static void sets_of_time_agree_with_bytes(void **state)
{
    for (uint64_t seed = 0; seed < TRACES; seed++) {
        tp_rng rng = tp_rng_make(seed, 1);
        tp_periods a = random_set(&rng), b = random_set(&rng), any = {0}, less = {0};
        uint8_t time[TIME] = {0}, made[TIME] = {0};
        int64_t common = 0, from = below(&rng, TIME), to = from + below(&rng, TIME), inside = 0;
        paint(time, &a, 1);
        paint(time, &b, 2);
        tp_periods_unite(&a, &b, &any);
        tp_periods_subtract(&a, &b, &less);
        paint(made, &any, 1);
        paint(made, &less, 2);
        for (int64_t t = 0; t < TIME; t++) {
            int wanted = (time[t] ? 1 : 0) | (time[t] == 1 ? 2 : 0);
            assert_int_equal(made[t], wanted);
            common += time[t] == 3;
            inside += (time[t] & 1) && t >= from && t < to;
        }
        assert_int_equal(tp_periods_common(&a, &b), common);
        assert_int_equal(tp_periods_within(&a, from, to), inside);
        tp_periods_release(&a);
        tp_periods_release(&b);
        tp_periods_release(&any);
        tp_periods_release(&less);
    }
}

/* ---- sorting and nesting ---- */

static void sorting_is_stable_and_complete(void **state)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        tp_rng rng = tp_rng_make(seed, 2);
        tp_keyed v[700];
        size_t n = (size_t)below(&rng, 700);
        uint64_t mask = seed % 3 == 0 ? 7 : seed % 3 == 1 ? 0xFFFF00 : UINT64_MAX;
        for (size_t i = 0; i < n; i++)
            v[i] = (tp_keyed){tp_rng_u64(&rng) & mask, (uint32_t)i};
        tp_sort_keyed(v, n);
        for (size_t i = 1; i < n; i++) {
            assert_true(v[i - 1].key <= v[i].key);
            if (v[i - 1].key == v[i].key)
                assert_true(v[i - 1].index < v[i].index);
        }
    }
}

static void an_index_finds_what_was_added(void **state)
{
    for (uint64_t seed = 0; seed < TRACES; seed++) {
        tp_rng rng = tp_rng_make(seed, 5);
        tp_number_index index = {0};
        uint64_t keys[MOST];
        size_t n = (size_t)below(&rng, MOST);
        for (size_t i = 0; i < n; i++) {
            keys[i] = (uint64_t)below(&rng, 60);
            tp_number_index_add(&index, keys[i], (uint32_t)i);
        }
        tp_number_index_finish(&index);
        for (int look = 0; look < 100; look++) {
            uint64_t key = (uint64_t)below(&rng, 64);
            uint32_t first = TP_NO_ROW, last = TP_NO_ROW;
            for (size_t i = n; i-- > 0;)
                first = keys[i] == key ? (uint32_t)i : first;
            for (size_t i = 0; i < n; i++)
                last = keys[i] == key ? (uint32_t)i : last;
            assert_int_equal(tp_number_index_first(&index, key), first);
            assert_int_equal(tp_number_index_last(&index, key), last);
        }
        tp_number_index_release(&index);
    }
}

static tp_time_span *random_spans(tp_rng *rng, size_t n)
{
    tp_time_span *v = calloc(n + 1, sizeof *v);
    for (size_t i = 0; i < n; i++) {
        int64_t start = below(rng, TIME);
        v[i] = (tp_time_span){start, start + below(rng, below(rng, 3) ? 20 : 200), (uint32_t)i,
                              (uint32_t)below(rng, 3)};
    }
    tp_spans_sort(v, n);
    return v;
}

/* Self time from the parents found, with one byte per nanosecond. */
static int64_t slow_self(const tp_time_span *v, size_t n, const uint32_t *parent, size_t of)
{
    uint8_t covered[2 * TIME] = {0};
    int64_t self = v[of].end - v[of].start;
    for (size_t i = 0; i < n; i++)
        for (int64_t t = v[i].start; parent[i] == of && t < v[i].end; t++)
            self -= !covered[t]++;
    return self;
}

static void nesting_agrees_with_the_definition(void **state)
{
    for (uint64_t seed = 0; seed < TRACES; seed++) {
        tp_rng rng = tp_rng_make(seed, 3);
        size_t n = (size_t)below(&rng, MOST);
        tp_time_span *v = random_spans(&rng, n);
        uint32_t parent[MOST];
        int64_t self[MOST], sum[MOST];
        tp_spans_nest(v, n, parent, self, sum);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(self[i], slow_self(v, n, parent, i));
            assert_true(sum[i] <= self[i]);
            if (parent[i] == TP_NO_PARENT)
                continue;
            const tp_time_span *above = &v[parent[i]];
            assert_int_equal(above->thread, v[i].thread);
            assert_true(above->start <= v[i].start && above->end >= v[i].end);
        }
        free(v);
    }
}

/* ---- whole traces ---- */

static const char *const kernel_names[] = {"gemm", "relu", "ncclDevKernel_AllReduce", "softmax"};

static void add_work(tp_buf *text, tp_rng *rng, int i)
{
    int64_t ts = below(rng, TIME), dur = below(rng, 40), device = below(rng, 2);
    bool is_copy = below(rng, 4) == 0;
    tp_buf_addf(
        text,
        "%s{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":%lld,\"tid\":%lld,\"ts\":0.%03lld,"
        "\"dur\":0.%03lld,\"args\":{\"device\":%lld,\"stream\":%lld,\"correlation\":%d}}",
        i ? "," : "", is_copy ? "gpu_memcpy" : "kernel",
        is_copy ? "Memcpy HtoD" : kernel_names[below(rng, 4)], (long long)device,
        (long long)below(rng, 3), (long long)ts, (long long)dur, (long long)device,
        (long long)below(rng, 3), i + 1);
    if (below(rng, 4) == 0)
        return;
    int64_t call = ts - below(rng, 60);
    tp_buf_addf(text,
                ",{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"%s\",\"pid\":9,\"tid\":%lld,"
                "\"ts\":%s0.%03lld,\"dur\":0.%03lld,\"args\":{\"correlation\":%d}}",
                below(rng, 5) ? "cudaLaunchKernel" : "cudaStreamSynchronize",
                (long long)below(rng, 2), call < 0 ? "-" : "", (long long)llabs(call),
                (long long)below(rng, 30), i + 1);
}

static tp_trace_file *random_trace(tp_rng *rng)
{
    tp_buf text = {0};
    tp_error err = {0};
    tp_trace_file *file = NULL;
    tp_buf_adds(&text, "{\"schemaVersion\":1,\"traceEvents\":[");
    int n = (int)below(rng, 40) + 1;
    for (int i = 0; i < n; i++)
        add_work(&text, rng, i);
    tp_buf_adds(&text, "]}");
    const tp_ingest_options options = {.keep = 0};
    if (tp_trace_open_memory("random.json", text.data, text.len, &options, &file, &err) != TP_OK)
        fail_msg("%s", err.message);
    tp_buf_release(&text);
    return file;
}

enum { SHIFT = 100, ROOM = 2 * TIME };

/* One byte per nanosecond: bit per class. */
static void check_breakdown(const tp_selection *s, int64_t device)
{
    uint8_t time[ROOM] = {0};
    int64_t first = INT64_MAX, last = INT64_MIN, count[8] = {0};
    tp_breakdown b;
    for (size_t i = 0; i < s->n; i++) {
        const tp_activity *a = &s->v[i];
        if (device != TP_ALL_DEVICES && a->device != device)
            continue;
        first = a->start < first ? a->start : first;
        last = a->end > last ? a->end : last;
        for (int64_t t = a->start; t < a->end; t++)
            time[t + SHIFT] |= (uint8_t)(1 << a->work);
    }
    if (!tp_breakdown_make(s->v, s->n, device, &b)) {
        assert_true(first == INT64_MAX);
        return;
    }
    for (int64_t t = first; t < last; t++)
        count[time[t + SHIFT]]++;
    assert_int_equal(b.span_ns, last - first);
    assert_int_equal(b.idle_ns, count[0]);
    assert_int_equal(b.compute_ns, count[1] + count[3] + count[5] + count[7]);
    assert_int_equal(b.comm_ns, count[2] + count[3] + count[6] + count[7]);
    assert_int_equal(b.overlap_ns, count[3] + count[7]);
    assert_int_equal(b.exposed_comm_ns, count[2] + count[6]);
    assert_int_equal(b.exposed_mem_ns, count[4]);
    assert_int_equal(b.compute_ns + b.exposed_comm_ns + b.exposed_mem_ns + b.idle_ns, b.span_ns);
}

static void check_devices(const tp_selection *s)
{
    tp_breakdown sum;
    int64_t idle = 0, exposed = 0;
    for (size_t d = 0; d < s->n_devices; d++) {
        tp_breakdown b;
        if (!tp_breakdown_make(s->v, s->n, (int64_t)d, &b))
            continue;
        idle += b.idle_ns;
        exposed += b.exposed_comm_ns;
    }
    tp_breakdown_add_up(s->v, s->n, s->n_devices, NULL, &sum);
    assert_int_equal(sum.idle_ns, idle);
    assert_int_equal(sum.exposed_comm_ns, exposed);
    assert_int_equal(sum.compute_ns + sum.exposed_comm_ns + sum.exposed_mem_ns + sum.idle_ns,
                     sum.span_ns);
}

static void check_idle(const tp_selection *s)
{
    tp_idle_table t;
    tp_idle_make(s, &t);
    for (size_t d = 0; d < t.n; d++) {
        const tp_idle_row *r = &t.rows[d];
        tp_breakdown b;
        if (!tp_breakdown_make(s->v, s->n, (int64_t)d, &b))
            continue;
        assert_int_equal(r->idle_ns, b.idle_ns);
        assert_int_equal(r->host_ns + r->launch_ns + r->queued_ns + r->unknown_ns + r->graph_ns,
                         r->idle_ns);
        assert_true(r->host_sync_ns <= r->host_ns);
    }
    tp_idle_release(&t);
}

static void check_path(const tp_selection *s)
{
    tp_operators o;
    tp_critical_path p;
    tp_breakdown all;
    int64_t sum = 0, by_name = 0;
    tp_operators_make(s, &o);
    tp_critical_path_find(s, &o, &p);
    for (int i = 0; i < TP_PATH_COUNT; i++) {
        assert_true(p.ns[i] >= 0);
        sum += p.ns[i];
    }
    for (size_t i = 0; i < p.n; i++)
        by_name += p.rows[i].ns;
    bool has_work = tp_breakdown_make(s->v, s->n, TP_ALL_DEVICES, &all);
    assert_int_equal(p.is_known, has_work);
    assert_int_equal(sum, has_work ? all.span_ns : 0);
    assert_int_equal(by_name, sum);
    tp_critical_path_release(&p);
    tp_operators_release(&o);
}

/* Whether the call of work i launched other work of its stream that comes first. */
static bool has_begun(const tp_selection *s, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (s->launch[k] == s->launch[i] &&
            s->events->track[s->v[k].event] == s->events->track[s->v[i].event])
            return true;
    return false;
}

/* The queue of a stream by looking at every nanosecond. */
static void check_queue(const tp_selection *s)
{
    tp_launch_table t;
    tp_launches_make(s, &t);
    for (size_t k = 0; k < t.n; k++) {
        int64_t most = 0, empty = 0, first = INT64_MAX, last = INT64_MIN;
        int length[ROOM] = {0};
        for (size_t i = 0; i < s->n; i++) {
            if (s->events->track[s->v[i].event] != t.rows[k].track || s->launch[i] == TP_NO_ROW ||
                has_begun(s, i))
                continue;
            int64_t from = tp_launch_time(s, i), to = s->v[i].start > from ? s->v[i].start : from;
            first = from < first ? from : first;
            last = to > last ? to : last;
            for (int64_t at = from; at < to; at++)
                length[at + SHIFT]++;
        }
        for (int64_t at = first; at < last; at++) {
            most = length[at + SHIFT] > most ? length[at + SHIFT] : most;
            empty += length[at + SHIFT] == 0;
        }
        assert_int_equal(t.rows[k].queue_max, most);
        assert_int_equal(t.rows[k].queue_empty_ns, empty);
    }
    tp_launches_release(&t);
}

static void random_traces_add_up(void **state)
{
    for (uint64_t seed = 0; seed < TRACES; seed++) {
        tp_rng rng = tp_rng_make(seed, 4);
        tp_trace_file *file = random_trace(&rng);
        for (int scope = 0; scope < 2; scope++) {
            tp_selection s;
            tp_selection_make(file->events, &(tp_select_options){.scope = (tp_scope)scope}, &s);
            check_breakdown(&s, TP_ALL_DEVICES);
            for (size_t d = 0; d < s.n_devices; d++)
                check_breakdown(&s, (int64_t)d);
            check_devices(&s);
            check_idle(&s);
            check_path(&s);
            check_queue(&s);
            tp_selection_release(&s);
        }
        tp_trace_close(file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sets_of_time_agree_with_bytes),
                                       cmocka_unit_test(sorting_is_stable_and_complete),
                                       cmocka_unit_test(an_index_finds_what_was_added),
                                       cmocka_unit_test(nesting_agrees_with_the_definition),
                                       cmocka_unit_test(random_traces_add_up)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
