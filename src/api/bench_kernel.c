/* bench_kernel.c - one operator, as the executor would run it.
 *
 * A kernel is a graph in text; T stands for the number of rows (sequence_length) and TYPE
 * for the precision.  One more is one more row. */
#include <string.h>

#include "api/bench_subjects.h"
#include "base/rng.h"
#include "engine/exec/program.h"

enum { THROUGHPUT, TIME, FLOPS, BYTES, OWN };

static const struct {
    const char *name, *graph;
} kernels[] = {
    {"linear", "%1 = input TYPE[T,512] \"x\"\n"
               "%2 = state TYPE[512,512] \"w\" role=weight\n"
               "%3 = linear %1, %2\n"
               "output %3\n"},
    {"attention", "%1 = input TYPE[T,256] \"q\"\n"
                  "%2 = input TYPE[T,128] \"k\"\n"
                  "%3 = input TYPE[T,128] \"v\"\n"
                  "%4 = input i32[2] \"cu\"\n"
                  "%5, %6 = attention %1, %2, %3, %4 {heads=4, kv_heads=2, head_dim=64, "
                  "scale=0.125}\n"
                  "output %5\n"},
    {"rmsnorm", "%1 = input TYPE[T,512] \"x\"\n"
                "%2 = state f32[512] \"w\" role=weight\n"
                "%3, %4 = rmsnorm %1, %2 {eps=1e-05}\n"
                "output %3\n"},
    {"swiglu", "%1 = input TYPE[T,1536] \"gate\"\n"
               "%2 = input TYPE[T,1536] \"up\"\n"
               "%3 = swiglu %1, %2\n"
               "output %3\n"},
};

typedef struct {
    tp_bench_subject base;
    tp_states states;
    tp_program *program;
    tp_exec *exec;
    const tp_graph *graph;
    tp_device *device;
} kernel_subject;

static void substitute(const char *graph, const tp_bench_case *c, tp_dtype dtype, tp_buf *out)
{
    for (const char *p = graph; *p;) {
        if (strncmp(p, "TYPE", 4) == 0) {
            tp_buf_adds(out, dtype == TP_DTYPE_F32 ? "f32" : "bf16");
            p += 4;
        } else if (strncmp(p, "[T", 2) == 0) {
            tp_buf_addf(out, "[%lld", (long long)c->sequence_length);
            p += 2;
        } else
            tp_buf_addc(out, *p++);
    }
}

static tp_status parse(const kernel_subject *s, tp_graph *ret, tp_error *err)
{
    const tp_bench_case *c = s->base.c;
    tp_dtype dtype;
    TP_TRY(tp_bench_precision(c->precision, &dtype, err));
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        TP_OWN(tp_buf) text = {0};
        if (strcmp(kernels[i].name, c->model) != 0)
            continue;
        substitute(kernels[i].graph, c, dtype, &text);
        return tp_graph_parse(c->model, text.data, text.len, ret, err);
    }
    return tp_fail(
        err, TP_ERR_CONFIG,
        "there is no kernel benchmark '%s'; known are linear, attention, rmsnorm, swiglu",
        c->model);
}

/* Values of a size that sums keep finite; for integers the sequence boundaries 0 .. T. */
static void fill_values(const kernel_subject *s, const tp_value *v, void *data)
{
    tp_rng rng = tp_rng_make(1, 4);
    size_t n = tp_value_count(v);
    for (size_t i = 0; i < n; i++) {
        float x = (float)(tp_rng_uniform(&rng) - 0.5);
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        if (v->dtype == TP_DTYPE_F32)
            ((float *)data)[i] = x;
        else if (v->dtype == TP_DTYPE_BF16)
            ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
        else if (v->dtype == TP_DTYPE_I32)
            ((int32_t *)data)[i] = i == 0 ? 0 : (int32_t)s->base.c->sequence_length;
    }
}

static tp_status fill(kernel_subject *s, const tp_value *v, bool is_state, tp_error *err)
{
    TP_FREED void *data = malloc(tp_value_bytes(v));
    if (!data)
        return tp_fail(err, TP_ERR_NOMEM, "no memory for the values of '%s'", v->name);
    fill_values(s, v, data);
    tp_status status =
        is_state
            ? tp_tensor_write(tp_states_find(&s->states, v->name), 0, data, tp_value_bytes(v), err)
            : tp_exec_write(s->exec, tp_exec_input(s->exec, v->name), data, -1, err);
    if (status == TP_OK)
        status = tp_device_wait(s->device, err);
    return status;
}

static tp_status compile(kernel_subject *s, tp_error *err)
{
    int graph;
    TP_TRY(tp_bench_device(s->base.c, &s->device, err));
    const tp_program_options options = {.device = s->device, .share_memory = true};
    TP_TRY(tp_states_init(&s->states, err));
    TP_TRY(tp_program_create(&options, &s->program, err));
    TP_TRY(tp_program_add(s->program, "kernel", &s->states, (double)s->base.c->sequence_length / 2,
                          &graph, err));
    tp_graph *g = tp_program_graph(s->program, graph);
    tp_graph_release(g); /* for the one of the text */
    TP_TRY(parse(s, g, err));
    s->graph = g;
    TP_TRY(tp_program_compile(s->program, err));
    s->exec = tp_program_exec(s->program, graph);
    return tp_program_alloc(s->program, &s->states, err);
}

static tp_status set_up(tp_subject *subject, tp_error *err)
{
    kernel_subject *s = (kernel_subject *)subject;
    TP_TRY(compile(s, err));
    for (uint32_t i = 1; i < s->graph->n_nodes; i++) {
        const tp_value *v = &s->graph->values[s->graph->nodes[i].out[0]];
        bool is_state = s->graph->nodes[i].op == TP_OP_state;
        if (is_state || s->graph->nodes[i].op == TP_OP_input)
            TP_TRY(fill(s, v, is_state, err));
    }
    for (int64_t i = 0; i < s->base.c->warm_up; i++)
        TP_TRY(tp_program_run(s->program, 0, false, err));
    return TP_OK;
}

static tp_status run(tp_subject *subject, uint64_t work, tp_bench_sample *ret, tp_error *err)
{
    kernel_subject *s = (kernel_subject *)subject;
    double flops = tp_exec_flops(s->exec, false), bytes = tp_exec_bytes(s->exec);
    for (uint64_t i = 0; i < work; i++)
        TP_TRY(tp_program_run(s->program, 0, false, err));
    ret->amount[THROUGHPUT] = (flops > 0 ? flops : bytes) * (double)work;
    ret->values[FLOPS] = flops;
    ret->values[BYTES] = bytes;
    tp_bench_fill_memory(ret, OWN, (double)tp_mem_get_stats().total_current);
    return TP_OK;
}

static void tear_down(tp_subject *subject)
{
    kernel_subject *s = (kernel_subject *)subject;
    tp_program_free(s->program);
    tp_states_release(&s->states);
    tp_device_close(s->device);
    free(s);
}

static const tp_metric own[OWN] = {[THROUGHPUT] = TP_THROUGHPUT_ROW("FLOP/s"),
                                   [TIME] = TP_RUN_TIME_ROW,
                                   [FLOPS] = TP_FLOPS_ROW,
                                   [BYTES] = TP_BYTES_ROW};

const tp_bench_kind tp_bench_kernel = {
    .name = "kernel",
    .class = {.set_up = set_up, .run = run, .tear_down = tear_down},
    .size = sizeof(kernel_subject),
    .metrics = own,
    .n_metrics = OWN,
    .work_unit = "runs",
};
