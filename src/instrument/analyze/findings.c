/* findings.c - the rules that turn the other analyses into bottlenecks with cost, evidence and
 * remedy. */
#include "instrument/analyze/findings.h"
#include "base/strings.h"

static const double WORTH_A_WORD = TP_FINDING_LEAST_SHARE;

static double share(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static tp_finding *add(tp_findings *f, const char *title, int64_t cost, int64_t span,
                       const char *advice)
{
    return tp_findings_add(f, title, cost, share(cost, span), advice);
}

static double ms(int64_t ns) { return (double)ns * 1e-6; }

static tp_idle_row sum_idle(const tp_idle_table *t)
{
    tp_idle_row s = {0};
    for (size_t i = 0; i < t->n; i++) {
        s.idle_ns = tp_add_saturating(s.idle_ns, t->rows[i].idle_ns);
        s.gaps = tp_add_saturating(s.gaps, t->rows[i].gaps);
        s.host_ns = tp_add_saturating(s.host_ns, t->rows[i].host_ns);
        s.launch_ns = tp_add_saturating(s.launch_ns, t->rows[i].launch_ns);
        s.queued_ns = tp_add_saturating(s.queued_ns, t->rows[i].queued_ns);
        s.unknown_ns = tp_add_saturating(s.unknown_ns, t->rows[i].unknown_ns);
        s.graph_ns = tp_add_saturating(s.graph_ns, t->rows[i].graph_ns);
        s.host_sync_ns = tp_add_saturating(s.host_sync_ns, t->rows[i].host_sync_ns);
        s.host_data_ns = tp_add_saturating(s.host_data_ns, t->rows[i].host_data_ns);
    }
    return s;
}

/* What it waits for is said by the findings of idle time.  Kernels of a graph that is traced as a
 * whole are not recorded, and the device is used. */
static void look_at_use(const tp_finding_inputs *in, tp_findings *f)
{
    int64_t in_graphs = sum_idle(in->idle).graph_ns, span = in->sum->span_ns;
    int64_t busy = tp_add_saturating(in->sum->busy_ns, in_graphs);
    size_t n = in->selection->n_devices;
    tp_severity severity;
    if (!tp_severity_of_use(share(busy, span), &severity))
        return;
    tp_finding *one = add(f, "the device is not used", span - busy, span,
                          "larger batches; what it waits for is in the other lines, gap by gap in "
                          "the view idle");
    one->severity = severity;
    tp_finding_evidence(one, "busy%s %.1f %% of %.3f ms on %zu device%s",
                        in_graphs ? " or in graphs" : "", 100 * share(busy, span), ms(span), n,
                        tp_plural(n));
}

static void look_at_idle(const tp_finding_inputs *in, tp_findings *f)
{
    tp_idle_row s = sum_idle(in->idle);
    int64_t span = in->sum->span_ns, plain = s.host_ns - s.host_data_ns;
    if (share(s.host_data_ns, span) >= WORTH_A_WORD) {
        tp_finding *one = add(f, "the device waits for data", s.host_data_ns, span,
                              "more DataLoader workers, prefetching, pinned memory, cheaper "
                              "preprocessing");
        tp_finding_evidence(one, "%.3f ms idle while a DataLoader ran on the host",
                            ms(s.host_data_ns));
    }
    if (share(plain, span) >= WORTH_A_WORD) {
        tp_finding *one =
            add(f, "the device waits for the host", plain, span,
                "launch less and larger: torch.compile, CUDA graphs, fused "
                "optimizers, larger batches; take .item() and prints out of the loop");
        tp_finding_evidence(
            one,
            "%.3f ms idle with nothing launched, of %.3f ms idle in %lld gaps%s%.3f ms of it "
            "in synchronising calls",
            ms(plain), ms(s.idle_ns), (long long)s.gaps, "; ", ms(s.host_sync_ns));
    }
    if (share(s.launch_ns, span) >= WORTH_A_WORD) {
        tp_finding *one = add(f, "launches arrive just in time", s.launch_ns, span,
                              "let the host run ahead: fewer synchronisations, CUDA graphs");
        tp_finding_evidence(one, "%.3f ms idle between launching calls and the start of their work",
                            ms(s.launch_ns));
    }
    if (share(s.queued_ns, span) >= WORTH_A_WORD) {
        tp_finding *one = add(f, "launched work waits on the device", s.queued_ns, span,
                              "fewer, larger kernels; look for events between streams");
        tp_finding_evidence(
            one,
            "%.3f ms idle although work was queued: %lld gaps, dependencies and the cost "
            "of starting kernels",
            ms(s.queued_ns), (long long)s.gaps);
    }
    if (share(s.unknown_ns, span) >= WORTH_A_WORD) {
        bool is_joined = in->selection->n_shared > 0;
        tp_finding *one =
            add(f, "idle without a known cause", s.unknown_ns, span,
                is_joined ? "give the file of each rank by itself: in one their numbers repeat"
                : in->selection->events->info.time_form == TP_TIME_NANOSECONDS
                    ? "record the host's calls too (nsys profile --trace=cuda), start earlier"
                    : "record host activities too (ProfilerActivity.CPU), start earlier");
        tp_finding_evidence(one, "%.3f ms idle before work whose launch %s", ms(s.unknown_ns),
                            is_joined ? "cannot be told" : "is not in the file");
    }
}

static void look_at_comm(const tp_finding_inputs *in, tp_findings *f)
{
    const tp_breakdown *b = in->sum;
    if (share(b->exposed_comm_ns, b->span_ns) < WORTH_A_WORD)
        return;
    tp_finding *one = add(f, "communication is exposed", b->exposed_comm_ns, b->span_ns,
                          "overlap with compute: smaller DDP buckets, FSDP prefetching, a stream "
                          "of its own; send less: bf16 gradients, larger accumulation");
    tp_finding_evidence(one, "%.3f of %.3f ms of communication without compute (overlap %.1f %%)",
                        ms(b->exposed_comm_ns), ms(b->comm_ns),
                        100 * share(b->overlap_ns, b->comm_ns));
}

static void look_at_copies(const tp_finding_inputs *in, tp_findings *f)
{
    const tp_breakdown *b = in->sum;
    int64_t pageable = 0, count = 0;
    if (share(b->exposed_mem_ns, b->span_ns) < WORTH_A_WORD)
        return;
    for (size_t i = 0; in->copies && i < in->copies->n; i++) {
        pageable += in->copies->rows[i].pageable;
        count += in->copies->rows[i].count;
    }
    tp_finding *one =
        add(f, "copies and fills are exposed", b->exposed_mem_ns, b->span_ns,
            pageable ? "pin host memory and copy with non_blocking=True; avoid .cpu() "
                       "and .item() in the loop"
                     : "fewer fills (zero_grad(set_to_none=True)) and copies; overlap "
                       "them on a stream of their own");
    tp_finding_evidence(
        one,
        "%.3f ms of copies and fills while nothing else ran; %lld of %lld use pageable "
        "memory",
        ms(b->exposed_mem_ns), (long long)pageable, (long long)count);
}

/* Communication has its own rule. */
static void look_at_slow_kernels(const tp_finding_inputs *in, tp_findings *f)
{
    const tp_kernel_table *k = in->kernels;
    const tp_kernel_row *slowest = NULL;
    int64_t names = 0, launches = 0, total = 0;
    for (size_t i = 0; i < k->n; i++) {
        const tp_kernel_row *row = &k->rows[i];
        if (!tp_kernel_is_slow(row, in->limits.kernel_ns))
            continue;
        slowest = slowest && slowest->mean_ns >= row->mean_ns ? slowest : row;
        names++;
        launches += row->count;
        total = tp_add_saturating(total, row->total_ns);
    }
    if (!names)
        return;
    tp_finding *one =
        add(f, "slow kernels", total, in->sum->span_ns,
            "the view roofline says how near they are to the device's peak; other shapes, 16-bit "
            "types, fused attention and losses, smaller pieces that overlap");
    tp_slice name = tp_events_name_text(in->selection->events, slowest->name);
    tp_finding_evidence(one,
                        "%lld kernel%s in %lld launches take %.3g ms or more on average; the "
                        "slowest %.3f ms: %.*s",
                        (long long)names, tp_plural((uint64_t)names), (long long)launches,
                        ms(in->limits.kernel_ns), slowest->mean_ns * 1e-6,
                        name.len > 90 ? 90 : (int)name.len, name.data);
}

static void look_at_kernels(const tp_finding_inputs *in, tp_findings *f)
{
    const tp_launch_row *l = &in->launches->all;
    const tp_kernel_table *k = in->kernels;
    if (l->launched > 100 && share(l->short_works, l->launched) > 0.5 &&
        share(in->sum->idle_ns, in->sum->span_ns) > 0.1) {
        tp_finding *one =
            add(f, "most work is shorter than its launch", l->call_sum_ns, in->sum->span_ns,
                "fuse: torch.compile, foreach or fused optimizers; CUDA graphs");
        tp_finding_evidence(
            one,
            "%lld of %lld device works took less time than the call that launched them "
            "(median call %.1f us); all calls together took %.3f ms",
            (long long)l->short_works, (long long)l->launched, (double)l->call_p50_ns * 1e-3,
            ms(l->call_sum_ns));
    }
    const tp_kernel_row *top = k->n ? &k->rows[0] : NULL;
    if (top && top->work == TP_WORK_COMPUTE && share(top->total_ns, k->total_ns) > 0.4) {
        tp_finding *one = add(f, "one kernel dominates", top->total_ns, in->sum->span_ns,
                              "look at this kernel alone: shapes, dtype, a better implementation");
        tp_slice name = tp_events_name_text(in->selection->events, top->name);
        tp_finding_evidence(one, "%.1f %% of kernel time, %lld launches: %.*s",
                            100 * share(top->total_ns, k->total_ns), (long long)top->count,
                            name.len > 90 ? 90 : (int)name.len, name.data);
    }
}

static void look_at_steps(const tp_finding_inputs *in, tp_findings *f)
{
    const tp_steps *s = &in->selection->steps;
    int64_t shortest = INT64_MAX, lost = 0, total = 0, longest = 0;
    if (s->n < 3)
        return;
    for (size_t i = 0; i < s->n; i++) {
        int64_t d = s->v[i].host_ns;
        shortest = d < shortest ? d : shortest;
        longest = d > longest ? d : longest;
        total = tp_add_saturating(total, d);
    }
    for (size_t i = 0; i < s->n; i++)
        lost = tp_add_saturating(lost, s->v[i].host_ns - shortest);
    if (share(lost, total) < 0.1)
        return;
    tp_finding *one = add(f, "steps differ in length", lost, total,
                          "look at the longest step (--step N): warm-up, checkpoints, garbage "
                          "collection, data, varying shapes");
    tp_finding_evidence(one,
                        "%zu steps from %.3f to %.3f ms; beyond the shortest one they took %.3f ms",
                        s->n, ms(shortest), ms(longest), ms(lost));
}

static void look_at_memory(const tp_finding_inputs *in, tp_findings *f)
{
    for (size_t i = 0; in->memory && i < in->memory->n; i++) {
        const tp_memory_device *d = &in->memory->devices[i];
        if (d->leak.verdict == TP_LEAK_GROWING) {
            tp_finding *one = add(f, "memory grows from step to step", TP_UNKNOWN, 1,
                                  "look at what is never freed (view memory): tensors kept in "
                                  "lists, losses summed without .item(), growing caches");
            one->severity = tp_severity_of_growth(d->leak.slope);
            tp_finding_evidence(
                one, "%s: %.0f bytes per step (95 %% interval %.0f to %.0f, p %.2g, %zu step%s)",
                d->label, d->leak.slope, d->leak.lo, d->leak.hi, d->leak.p_rising, d->leak.n_used,
                tp_plural((uint64_t)d->leak.n_used));
        }
        bool is_known = d->peak_reserved > 0 && d->peak_bytes > 0;
        double unused = is_known ? 1 - (double)d->peak_bytes / (double)d->peak_reserved : 0;
        if (unused > 0.25) {
            tp_finding *one = add(f, "reserved memory is not used", TP_UNKNOWN, 1,
                                  "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; fewer "
                                  "different sizes; a memory snapshot shows the fragments");
            one->severity = unused > 0.5 ? TP_SEVERITY_MEDIUM : TP_SEVERITY_LOW;
            tp_finding_evidence(
                one, "%s: %.0f %% of the peak of reserved memory was never allocated at once",
                d->label, 100 * unused);
        }
    }
}

void tp_findings_make(const tp_finding_inputs *in, tp_findings *ret)
{
    tp_findings f = {.n = 0};
    if (in->sum && in->sum->span_ns > 0) {
        look_at_use(in, &f);
        look_at_idle(in, &f);
        look_at_comm(in, &f);
        look_at_copies(in, &f);
        look_at_kernels(in, &f);
        look_at_slow_kernels(in, &f);
        look_at_steps(in, &f);
    }
    look_at_memory(in, &f);
    tp_findings_sort(&f);
    *ret = f;
}
