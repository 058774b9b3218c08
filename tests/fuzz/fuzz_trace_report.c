/* Any events at all through every analysis and every export: no crash, and the identities
 * hold. */
#include <stdint.h>
#include <stdlib.h>

#include "instrument/analyze/communication.h"
#include "instrument/analyze/compare.h"
#include "instrument/analyze/copies.h"
#include "instrument/analyze/critical_path.h"
#include "instrument/analyze/export.h"
#include "instrument/analyze/findings.h"
#include "instrument/analyze/ranks.h"
#include "instrument/analyze/roofline.h"
#include "instrument/analyze/snapshot_usage.h"
#include "instrument/analyze/suspicious.h"
#include "instrument/ingest/ingest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static tp_status forget(void *context, const void *bytes, size_t n, tp_error *err)
{
    (void)context;
    (void)bytes;
    (void)n;
    (void)err;
    return TP_OK;
}

static void check_sums(const tp_selection *s, const tp_breakdown *all, const tp_critical_path *path)
{
    int64_t sum = 0;
    (void)s;
    TP_ASSERT(all->compute_ns + all->exposed_comm_ns + all->exposed_mem_ns + all->idle_ns ==
              all->span_ns);
    for (int i = 0; i < TP_PATH_COUNT; i++)
        sum += path->ns[i];
    TP_ASSERT(!path->is_known || sum == all->span_ns);
}

static void export_all(const tp_selection *s, tp_error *err)
{
    tp_export_sink sink = {.write = forget};
    TP_ASSERT(tp_export_chrome(s->events, &sink, err) == TP_OK);
    TP_ASSERT(tp_export_perfetto(s->events, &sink, err) == TP_OK);
    TP_ASSERT(tp_export_csv(s->events, &sink, err) == TP_OK);
    TP_ASSERT(tp_export_collapsed(s, TP_STACKS_HOST, &sink, err) == TP_OK);
    TP_ASSERT(tp_export_collapsed(s, TP_STACKS_DEVICE, &sink, err) == TP_OK);
    tp_buf_release(&sink.pending);
}

static void analyze(const tp_selection *s, tp_error *err)
{
    tp_breakdown all = {0}, sum;
    tp_kernel_table kernels;
    tp_operators ops;
    tp_idle_table idle;
    tp_launch_table launches;
    tp_copy_table copies;
    tp_comm_table comm;
    tp_memory_usage memory;
    tp_critical_path path;
    tp_suspicions suspicions;
    tp_findings findings;
    tp_roofline roofline;
    tp_breakdown_make(s->v, s->n, TP_ALL_DEVICES, &all);
    tp_breakdown_add_up(s->v, s->n, s->n_devices, NULL, &sum);
    tp_kernels_make(s->v, s->n, true, tp_events_name_text, s->events, &kernels);
    tp_operators_make(s, &ops);
    tp_idle_make(s, &idle);
    tp_launches_make(s, &launches);
    tp_copies_make(s, &copies);
    tp_comm_make(s, &comm);
    tp_critical_path_find(s, &ops, &path);
    tp_suspicions_find(s, &suspicions);
    tp_roofline_make(s, &ops, &roofline);
    check_sums(s, &all, &path);
    if (tp_memory_usage_make(s, &ops, &memory, err) == TP_OK) {
        const tp_finding_inputs in = {.limits = TP_FINDING_LIMITS,
                                      .selection = s,
                                      .sum = &sum,
                                      .kernels = &kernels,
                                      .idle = &idle,
                                      .launches = &launches,
                                      .copies = &copies,
                                      .comm = &comm,
                                      .memory = &memory};
        tp_findings_make(&in, &findings);
        tp_memory_usage_release(&memory);
    }
    tp_roofline_release(&roofline);
    tp_critical_path_release(&path);
    tp_comm_release(&comm);
    tp_launches_release(&launches);
    tp_idle_release(&idle);
    tp_operators_release(&ops);
    tp_kernels_release(&kernels);
}

static void look_at_pairs(const tp_selection *a, const tp_selection *b, tp_error *err)
{
    const tp_selection *list[2] = {a, b};
    const int64_t numbers[2] = {0, 1};
    tp_rank_table ranks;
    tp_comparison c;
    tp_ranks_make(list, numbers, 2, &ranks);
    tp_ranks_release(&ranks);
    if (tp_compare(a, b, &c, err) == TP_OK)
        tp_comparison_release(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tp_error err = {0};
    tp_trace_file *file;
    const tp_ingest_options options = {.one_thread = true, .max_bytes = 1 << 20};
    if (tp_trace_open_memory("fuzz", data, size, &options, &file, &err) != TP_OK)
        return 0;
    if (file->events) {
        tp_selection s[2];
        tp_selection_make(file->events, &(tp_select_options){.scope = TP_SCOPE_ALL}, &s[0]);
        tp_selection_make(file->events, &(tp_select_options){.scope = TP_SCOPE_STEPS}, &s[1]);
        analyze(&s[0], &err);
        analyze(&s[1], &err);
        look_at_pairs(&s[0], &s[1], &err);
        export_all(&s[0], &err);
        tp_selection_release(&s[0]);
        tp_selection_release(&s[1]);
    }
    if (file->snapshot) {
        tp_snapshot_usage usage;
        tp_snapshot_usage_make(file->snapshot, &usage);
        for (size_t i = 0; i < usage.n_devices; i++) {
            tp_stack_bytes *list;
            tp_snapshot_at_peak(file->snapshot, &usage.devices[i], &list);
            free(list);
        }
        tp_snapshot_usage_release(&usage);
    }
    tp_trace_close(file);
    return 0;
}
