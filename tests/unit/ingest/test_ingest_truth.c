/* Real traces against figures computed by an independent script, where both are at hand:
 * ../shared/traces beside the repository, or the folder that TEMPER_TRACES names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/files.h"
#include "support/cuts.h"
#include "support/ingest.h"
#include "text/json/json.h"

static char folder[512];
static tp_arena arena;
static const tp_json *truth;

static int open_truth(void **state)
{
    const char *named = getenv("TEMPER_TRACES");
    char path[600];
    tp_buf text = {0};
    snprintf(folder, sizeof folder, "%s", named ? named : TP_SOURCE_DIR "/../shared/traces");
    snprintf(path, sizeof path, "%s/ground_truth.json", folder);
    if (tp_arena_init(&arena, 64 << 20, NULL) != TP_OK)
        return 1;
    if (!tp_file_exists(path))
        return 0;
    if (tp_file_read(path, 0, &text, NULL) != TP_OK)
        return 1;
    tp_status status = tp_json_parse(&arena, path, text.data, text.len, NULL, &truth, NULL);
    tp_buf_release(&text);
    return status != TP_OK;
}

static int close_truth(void **state)
{
    tp_arena_release(&arena);
    return 0;
}

static void need_truth(void)
{
    if (!truth) {
        print_message("skipped: no %s/ground_truth.json\n", folder);
        skip();
    }
}

static void equal(const tp_json *figures, const char *key, int64_t found)
{
    int64_t expected;
    if (!tp_json_get(figures, key))
        return;
    assert_true(tp_json_i64(tp_json_get(figures, key), &expected));
    if (expected != found)
        fail_msg("%s: %s is %lld, found %lld", tp_json_str(tp_json_get(figures, "file")), key,
                 (long long)expected, (long long)found);
}

static void check_kernels(const tp_json *figures, const tp_events *e)
{
    int64_t total = 0, names = 0, kernels = 0;
    bool *seen = calloc(e->strings.n + 1, 1);
    for (size_t i = 0; i < e->n; i++) {
        if (e->kind[i] != TP_EVENT_KERNEL)
            continue;
        kernels++;
        total += e->dur[i];
        names += !seen[e->name[i]];
        seen[e->name[i]] = true;
    }
    free(seen);
    equal(figures, "kernels", kernels);
    equal(figures, "kernel_names", names);
    equal(figures, "kernel_total_ns", total);
}

static void check_counts(const tp_json *figures, const tp_events *e)
{
    const tp_json *ph = tp_json_get(figures, "ph"), *cat = tp_json_get(figures, "cat_X");
    equal(figures, "events", (int64_t)e->counts.events);
    for (const tp_json *p = ph ? ph->child : NULL; p; p = p->next)
        equal(ph, p->key.data, (int64_t)e->counts.ph[p->key.data[0] & 127]);
    for (const tp_json *c = cat ? cat->child : NULL; c; c = c->next)
        equal(cat, c->key.data, (int64_t)ingest_count(e, c->key.data));
    equal(figures, "memory_instants", (int64_t)e->counts.memory_instants);
    equal(figures, "alloc_bytes", e->counts.alloc_bytes);
    equal(figures, "free_bytes", e->counts.free_bytes);
    const tp_json *rows = tp_json_get(figures, "rows");
    for (size_t t = 0; rows && t < e->info.n_tables; t++)
        equal(rows, tp_events_str(e, e->info.tables[t].name), e->info.tables[t].rows);
    equal(figures, "memcpy_bytes", e->info.memcpy_bytes);
    equal(figures, "memcpy_ns", e->info.memcpy_ns);
    equal(figures, "runtime_total_ns", e->info.runtime_total_ns);
}

static const char *const block_states[] = {[TP_BLOCK_INACTIVE] = "inactive",
                                           [TP_BLOCK_ALLOCATED] = "active_allocated",
                                           [TP_BLOCK_PENDING] = "active_pending_free"};
static const char *const actions_of_file[TP_MEM_OTHER] = {
    [TP_MEM_ALLOC] = "alloc",
    [TP_MEM_FREE_REQUESTED] = "free_requested",
    [TP_MEM_FREE_COMPLETED] = "free_completed",
    [TP_MEM_SEGMENT_ALLOC] = "segment_alloc",
    [TP_MEM_SEGMENT_FREE] = "segment_free",
    [TP_MEM_SEGMENT_MAP] = "segment_map",
    [TP_MEM_SEGMENT_UNMAP] = "segment_unmap",
    [TP_MEM_SNAPSHOT] = "snapshot",
    [TP_MEM_OOM] = "oom",
    [TP_MEM_ANNOTATE] = "annotate",
};

static void check_snapshot(const tp_json *figures, const tp_snapshot *s)
{
    int64_t reserved = 0, allocated = 0, active = 0, requested = 0, states[4] = {0};
    for (size_t i = 0; i < s->n_segments; i++) {
        reserved += s->segments[i].total;
        allocated += s->segments[i].allocated;
        active += s->segments[i].active;
        requested += s->segments[i].requested;
    }
    for (size_t i = 0; i < s->n_blocks; i++)
        states[s->blocks[i].state]++;
    equal(figures, "segments", (int64_t)s->n_segments);
    equal(figures, "reserved_bytes", reserved);
    equal(figures, "allocated_bytes", allocated);
    equal(figures, "active_bytes", active);
    equal(figures, "requested_bytes", requested);
    for (int i = 0; i < 3; i++)
        equal(tp_json_get(figures, "blocks"), block_states[i], states[i]);
    const tp_json *device = tp_json_get(figures, "device_0");
    int64_t alloc = 0, freed = 0, actions[TP_MEM_ACTIONS] = {0};
    for (size_t i = s->device_first[0]; i < s->device_first[1]; i++) {
        const tp_mem_entry *entry = &s->entries[i];
        actions[entry->action]++;
        alloc += entry->action == TP_MEM_ALLOC ? entry->size : 0;
        freed += entry->action == TP_MEM_FREE_COMPLETED ? entry->size : 0;
    }
    equal(device, "entries", (int64_t)(s->device_first[1] - s->device_first[0]));
    equal(device, "alloc_bytes", alloc);
    equal(device, "freed_bytes", freed);
    for (int i = 0; i < TP_MEM_OTHER; i++)
        equal(tp_json_get(device, "actions"), actions_of_file[i], actions[i]);
}

static void figures_of_the_reader_are_exact(void **state)
{
    need_truth();
    int n_files = 0;
    for (const tp_json *figures = truth->child; figures; figures = figures->next) {
        char path[700];
        snprintf(path, sizeof path, "%s/%s", folder, tp_json_str(tp_json_get(figures, "file")));
        if (!tp_file_exists(path))
            continue;
        tp_trace_file *f = ingest_open(path);
        n_files++;
        equal(figures, "bytes", (int64_t)f->bytes);
        if (f->events) {
            if (f->json_bytes)
                equal(figures, "json_bytes", (int64_t)f->json_bytes);
            check_counts(figures, f->events);
            check_kernels(figures, f->events);
            assert_int_equal(f->events->counts.skipped_events, 0);
            assert_false(f->events->counts.truncated);
        } else if (f->snapshot) {
            check_snapshot(figures, f->snapshot);
        }
        tp_trace_close(f);
    }
    assert_true(n_files > 0);
}

/* A timeline's bytes are signed: their sum is what is left, in file order. */
static void the_timeline_adds_up(void **state)
{
    char path[700];
    snprintf(path, sizeof path, "%s/hta_memory_timeline.raw.json.gz", folder);
    need_truth();
    if (!tp_file_exists(path))
        skip();
    tp_trace_file *f = ingest_open(path);
    int64_t now = 0, peak = 0, actions[5] = {0};
    for (size_t i = 0; i < f->timeline->n_rows; i++) {
        now += f->timeline->rows[i].bytes;
        peak = now > peak ? now : peak;
        actions[f->timeline->rows[i].action]++;
    }

    assert_int_equal(f->timeline->n_rows, 16845);
    assert_int_equal(now, 332060904);
    assert_int_equal(peak, 3082832104);
    assert_int_equal(actions[TP_TIMELINE_PREEXISTING], 645);
    assert_int_equal(actions[TP_TIMELINE_INCREMENT_VERSION], 9510);
    tp_trace_close(f);
}

static void real_traces_cut_short_give_their_beginnings(void **state)
{
    char path[700];
    need_truth();
    static const char *const names[] = {
        "hta_a100_alexnet_cudasync.json.gz", "hta_a100_cupti_counters.json.gz",
        "hta_memory_timeline.raw.json.gz", "hta_multi_rank1of128.json.gz"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (tp_file_exists(path))
            ingest_check_cuts(path, 500, 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_of_the_reader_are_exact),
        cmocka_unit_test(the_timeline_adds_up),
        cmocka_unit_test(real_traces_cut_short_give_their_beginnings),
    };
    return cmocka_run_group_tests(tests, open_truth, close_truth);
}
