/* cmd_doctor.c - what this machine can do, and whether a run could begin or has left sound results.
 */
#include <math.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/doctor_checks.h"
#include "cli/doctor_paths.h"
#include "api/tables.h"
#include "engine/backend/cpu/paths.h"

typedef struct {
    bool json, cached, resume;
    int64_t threads;
    double seconds;
    const char *isa;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json, "as JSON"),
    TP_SWITCH("cached", 0, cached, "use ceilings on file, measure only what is missing"),
    TP_SWITCH("resume", 'r', resume, "as 'temper train --resume' would begin"),
    TP_NUMBER("threads", 0, "N", INT, threads, 1, 4096, "default: one per core"),
    TP_NUMBER("seconds", 0, "S", FLOAT, seconds, 0.1, 3600, "time for the measurement (default 3)"),
    TP_TEXT("isa", 0, "LEVEL", isa,
            "highest instruction set to use: portable, avx2, avx512, avx512_bf16, amx"),
    {0}};

static volatile sig_atomic_t stop_signal;

/* The first signal ends the look behind what is at work, so that nothing is left lying; the
 * second ends at once. */
static void on_signal(int number)
{
    if (stop_signal)
        _exit(128 + number);
    stop_signal = number;
}

static bool is_stopped(void *user)
{
    (void)user;
    return stop_signal != 0;
}

static tp_status measure(const flags *f, int threads, tp_machine *m, tp_error *err)
{
    bool found = false;
    if (f->cached)
        TP_TRY(tp_machine_load(&tp_backend_cpu, threads, m, &found, err));
    if (found)
        return TP_OK;
    TP_TRY(tp_machine_measure(&tp_backend_cpu, threads, f->seconds, m, err));
    return m->disturbed_by[0] ? TP_OK : tp_machine_save(m, err);
}

/* What failed comes with the sentence that training would end with. */
static void print_checks(const tp_doctor_checks *c)
{
    static const char *const words[] = {
        [TP_FOUND_OK] = "ok", [TP_FOUND_FAILED] = "FAILED", [TP_FOUND_UNKNOWN] = "unknown"};
    for (size_t i = 0; i < c->n; i++) {
        const tp_doctor_check *k = &c->v[i];
        printf("%-16s %s%s%s\n", k->what, k->is_note ? "" : words[k->found], k->is_note ? "" : ": ",
               k->text);
    }
}

static void add_limits(const tp_limits *l, bool bytes, tp_buf *out)
{
    char a[32];
    const tp_limit *least = tp_limits_least(l);
    for (int i = 0; i < l->n; i++) {
        const char *name = i ? "" : bytes ? "memory" : "processors";
        if (bytes)
            tp_human_bytes(l->v[i].value, a);
        else
            snprintf(a, sizeof a, "%g", l->v[i].value);
        tp_buf_addf(out, "%-16s %s%s: %s\n", name, l->n > 1 && &l->v[i] == least ? "limit " : "", a,
                    l->v[i].source);
    }
}

/* Every limit with what set it; the one that counts is marked. */
static void print_limits(void)
{
    tp_buf out = {0};
    tp_limits limits;
    tp_limits_memory(&limits);
    add_limits(&limits, true, &out);
    tp_limits_processors(&limits);
    add_limits(&limits, false, &out);
    fwrite(out.data, 1, out.len, stdout);
    tp_buf_release(&out);
}

/* When the ceilings were measured, and whether the machine was free. */
static void print_conditions(const tp_machine *m)
{
    char age[32];
    printf("measured         %s ago", tp_human_seconds(fmax(tp_wall_s() - m->measured_at, 0), age));
    if (isfinite(m->processor_share))
        printf(", its threads had %.0f %% of their processor time", 100 * m->processor_share);
    if (m->disturbed_by[0])
        printf("\n                 DISTURBED: %s;\n"
               "                 these figures are not kept",
               m->disturbed_by);
    if (m->is_doubted)
        printf("\n                 DOUBTED: a run was faster; the next one measures again");
    printf("\n");
}

/* "467.2 GFLOP/s (1 thread 236.3)" */
static void print_rate(const char *name, tp_machine_rate r, const char *unit, const char *what)
{
    printf("%-16s %.1f %s (1 thread %.1f; %s)\n", name, r.all * 1e-9, unit, r.one * 1e-9, what);
}

static void print_units(const tp_machine_units *u)
{
    char bytes[32], text[64];
    print_rate("unit bf16", u->bf16, "GFLOP/s", u->bf16_unit);
    print_rate("unit f32", u->f32, "GFLOP/s", u->f32_unit);
    if (u->threads_share_unit)
        printf("%-16s the threads share a unit: more of them multiply no faster\n", "");
    for (int i = 0; i < u->n_levels; i++) {
        snprintf(text, sizeof text, "reading %s each",
                 tp_human_bytes((double)u->levels[i].bytes, bytes));
        print_rate(u->levels[i].level, u->levels[i].read, "GB/s", text);
    }
}

static void print_ceilings(const tp_machine *m)
{
    printf("GEMM bf16        %.1f GFLOP/s, %.0f %% of the unit\n", m->gemm_bf16_flops * 1e-9,
           100 * m->gemm_bf16_flops / m->unit_bf16_flops);
    printf("GEMM f32         %.1f GFLOP/s, %.0f %% of the unit\n", m->gemm_f32_flops * 1e-9,
           100 * m->gemm_f32_flops / m->unit_f32_flops);
    printf("read             %.1f GB/s\n", m->read_bytes * 1e-9);
    printf("copy             %.1f GB/s (read + written)\n", m->copy_bytes * 1e-9);
    printf("optimizer        %.1f GB/s (28 bytes per parameter)\n", m->update_bytes * 1e-9);
}

/* `u` may be NULL: not measured now. */
static void print_text(const tp_machine *m, const tp_machine_units *u, const char *why_unknown,
                       const tp_doctor_checks *c)
{
    tp_cpu_caches caches = tp_cpu_cache_sizes();
    char a[32], b[32], d[32];
    printf("processor        %s, %d threads, %s\n", m->cpu_model, m->threads, m->isa);
    printf("caches           L1d %s, L2 %s, L3 %s\n",
           caches.l1d ? tp_human_bytes((double)caches.l1d, a) : "unknown",
           caches.l2 ? tp_human_bytes((double)caches.l2, b) : "unknown",
           caches.l3 ? tp_human_bytes((double)caches.l3, d) : "unknown");
    print_limits();
    tp_doctor_print_paths();
    if (u)
        print_units(u);
    if (m->measured_at > 0) {
        print_ceilings(m);
        print_conditions(m);
    } else
        printf("ceilings         unknown: %s\n", why_unknown);
    print_checks(c);
}

static void put_list(tp_json_w *w, const char *key, const tp_limits *l)
{
    tp_json_w_put_begin(w, key, '[');
    for (int i = 0; i < l->n; i++) {
        tp_json_w_begin(w, '{');
        tp_json_w_put_f64(w, "value", l->v[i].value);
        tp_json_w_put_str(w, "source", l->v[i].source);
        tp_json_w_end(w, '}');
    }
    tp_json_w_end(w, ']');
}

static void put_limits(tp_json_w *w)
{
    tp_limits limits;
    tp_limits_memory(&limits);
    tp_json_w_put_f64(w, "memory_limit_bytes", tp_limits_least(&limits)->value);
    put_list(w, "memory_limits", &limits);
    tp_limits_processors(&limits);
    put_list(w, "processor_limits", &limits);
}

static void put_rate(tp_json_w *w, const char *key, const char *name, size_t bytes,
                     tp_machine_rate r, const char *per_s)
{
    char member[64];
    tp_json_w_begin(w, '{');
    tp_json_w_put_str(w, key, name);
    if (bytes)
        tp_json_w_put_i64(w, "working_set_bytes", (int64_t)bytes);
    snprintf(member, sizeof member, "%s_per_s_one_thread", per_s);
    tp_json_w_put_known(w, member, r.one);
    snprintf(member, sizeof member, "%s_per_s", per_s);
    tp_json_w_put_known(w, member, r.all);
    tp_json_w_end(w, '}');
}

static void put_units(tp_json_w *w, const tp_machine_units *u)
{
    tp_json_w_put_begin(w, "units", '[');
    put_rate(w, "instruction", u->bf16_unit, 0, u->bf16, "flops");
    put_rate(w, "instruction", u->f32_unit, 0, u->f32, "flops");
    tp_json_w_end(w, ']');
    tp_json_w_put_bool(w, "threads_share_unit", u->threads_share_unit);
    tp_json_w_put_begin(w, "read", '[');
    for (int i = 0; i < u->n_levels; i++)
        put_rate(w, "level", u->levels[i].level, u->levels[i].bytes, u->levels[i].read, "bytes");
    tp_json_w_end(w, ']');
}

static void print_json(const tp_machine *m, const tp_machine_units *u, const tp_doctor_checks *c)
{
    tp_buf out = {0};
    tp_json_w w;
    tp_json_w_init(&w, &out, 2);
    tp_json_w_begin(&w, '{');
    const char *const words[][2] = {
        {"cpu", m->cpu_model}, {"isa", m->isa}, {"fingerprint", m->fingerprint}};
    for (int i = 0; i < 3; i++)
        tp_json_w_put_str(&w, words[i][0], words[i][1]);
    const struct {
        const char *key;
        double v;
    } numbers[] = {{"threads", m->threads},
                   {"unit_bf16_flops_per_s", m->unit_bf16_flops},
                   {"unit_f32_flops_per_s", m->unit_f32_flops},
                   {"gemm_bf16_flops_per_s", m->gemm_bf16_flops},
                   {"gemm_f32_flops_per_s", m->gemm_f32_flops},
                   {"read_bytes_per_s", m->read_bytes},
                   {"copy_bytes_per_s", m->copy_bytes},
                   {"optimizer_bytes_per_s", m->update_bytes}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        tp_json_w_put_known(&w, numbers[i].key, numbers[i].v > 0 ? numbers[i].v : NAN);
    tp_json_w_put_known(&w, "measured_at", m->measured_at > 0 ? m->measured_at : NAN);
    tp_json_w_put_known(&w, "processor_share", m->processor_share);
    tp_json_w_put_known(&w, "spread", m->spread);
    tp_json_w_put_str(&w, "disturbed_by", m->disturbed_by);
    if (u)
        put_units(&w, u);
    put_limits(&w);
    tp_doctor_write_paths(&w);
    tp_json_w_put_begin(&w, "checks", '[');
    for (size_t i = 0; i < c->n; i++) {
        const tp_doctor_check *k = &c->v[i];
        if (k->is_note)
            continue;
        tp_json_w_begin(&w, '{');
        tp_json_w_put_str(&w, "what", k->what);
        tp_json_w_key(&w, "ok");
        if (k->found == TP_FOUND_UNKNOWN)
            tp_json_w_null(&w);
        else
            tp_json_w_raw(&w, k->found == TP_FOUND_OK ? "true" : "false");
        tp_json_w_put_str(&w, "text", c->v[i].text);
        tp_json_w_end(&w, '}');
    }
    tp_json_w_end(&w, ']');
    tp_json_w_put_begin(&w, "notes", '[');
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].is_note)
            tp_json_w_str(&w, c->v[i].text);
    tp_json_w_end(&w, ']');
    tp_json_w_end(&w, '}');
    puts(tp_buf_str(&out));
    tp_buf_release(&out);
}

int tp_cmd_doctor(int argc, char **argv)
{
    flags f = {.seconds = 3};
    char *words[argc + 1];
    tp_error err = {0};
    tp_machine machine;
    tp_machine_units units;
    bool has_units = false;
    tp_doctor_checks c = {0};
    const tp_usage usage = {
        .command = "doctor",
        .arguments = "[CONFIG [KEY=VALUE...]]\nRUN",
        .summary = "Measure what this machine can do.  With a configuration, of a training or an "
                   "evaluation, go through everything that comes before the first step with the "
                   "same code: every row of the data, files it names, model, weights, tokenizer, "
                   "memory, disk, run folder; a judge is asked one question.  With a run folder, "
                   "check its records and every file of its checkpoints.",
        .flags = flag_table,
        .details = "The ceilings are kept and used for MFU and for predictions.  Exit status 2 "
                   "when a check fails.",
        .max_words = -1};
    int n = tp_cli_parse(&usage, argc, argv, &f, words);
    if (n < 0)
        return n == -2 ? 0 : 2;
    if (!tp_cli_force_isa(f.isa))
        return 2;
    int threads = f.threads > 0 ? (int)f.threads : tp_cpu_count();
    tp_cli_catch(SIGINT, on_signal);
    tp_cli_catch(SIGTERM, on_signal);
    if (f.cached)
        tp_paths_prove();
    else
        tp_paths_prove_again();
    tp_status status = n > 0 ? tp_doctor_look(words, n, f.resume, is_stopped, &c, &err) : TP_OK;
    if (status == TP_OK && !stop_signal)
        status = measure(&f, threads, &machine, &err);
    if (status == TP_OK && !stop_signal && !f.cached) {
        status = tp_machine_measure_units(&tp_backend_cpu, threads, f.seconds / 2, &units, &err);
        has_units = status == TP_OK;
    }
    if (status == TP_ERR_NOMEM) { /* the rest can be told all the same */
        machine = tp_machine_describe(&tp_backend_cpu, threads);
        status = TP_OK;
    }
    if (stop_signal) {
        tp_doctor_release(&c);
        return 128 + stop_signal;
    }
    if (status != TP_OK) {
        tp_doctor_release(&c);
        return tp_cli_fail(&err);
    }
    if (f.json)
        print_json(&machine, has_units ? &units : NULL, &c);
    else
        print_text(&machine, has_units ? &units : NULL, err.message, &c);
    bool failed = tp_doctor_failures(&c) > 0;
    tp_doctor_release(&c);
    return failed ? 2 : 0;
}
