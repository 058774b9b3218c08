#include <math.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/doctor_paths.h"
#include "cli/recipe.h"
#include "cli/tables.h"
#include "engine/backend/cpu/paths.h"
#include "engine/data/tokenizer.h"
#include "engine/train/trainer.h"

typedef struct {
    bool json, cached;
    int64_t threads;
    double seconds;
    const char *isa;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json, "as JSON"),
    TP_SWITCH("cached", 0, cached, "use ceilings on file, measure only what is missing"),
    TP_NUMBER("threads", 't', "N", INT, threads, 1, 4096, "default: one per core"),
    TP_NUMBER("seconds", 's', "S", FLOAT, seconds, 0.1, 3600,
              "time for the measurement (default 3)"),
    TP_TEXT("isa", 0, "LEVEL", isa,
            "highest instruction set to use: portable, avx2, avx512, avx512_bf16, amx"),
    {0}};

enum { MAX_CHECKS = 16 };

typedef struct {
    const char *what;
    bool ok;
    char text[1200];
} check;

typedef struct {
    check v[MAX_CHECKS];
    int n;
} checks;

static check *add(checks *c, const char *what, bool ok, const char *text)
{
    TP_ASSERT(c->n < MAX_CHECKS);
    check *k = &c->v[c->n++];
    *k = (check){.what = what, .ok = ok};
    snprintf(k->text, sizeof k->text, "%s", text);
    return k;
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

/* The sentence of `temper plan` and of a run that is refused. */
static void check_memory(const tp_train_options *o, const tp_model *model,
                         const tp_run_graphs *graphs, checks *c)
{
    tp_run_plan plan;
    tp_plan_levers levers = {0};
    tp_error err = {0};
    tp_buf text = {0};
    if (tp_run_plan_make(o, model, graphs, NULL, &plan, &err) != TP_OK) {
        add(c, "memory", false, err.message);
        return;
    }
    if (!plan.fits)
        tp_run_plan_levers(o, model, false, &plan, &levers);
    tp_run_plan_verdict(&plan, &levers, "; ", &text);
    add(c, "memory", plan.fits, tp_buf_str(&text));
    tp_buf_release(&text);
}

static void check_plan(const tp_recipe *r, checks *c)
{
    tp_error err = {0};
    tp_model *model;
    tp_run_graphs graphs;
    tp_run_graphs_options more = {0};
    char text[256];
    if (tp_run_model_open(&r->options, &model, NULL, &err) != TP_OK) {
        add(c, "model", false, err.message);
        return;
    }
    if (tp_run_graphs_create(&r->options, model, &more, &graphs, &err) != TP_OK) {
        add(c, "model", false, err.message);
        tp_model_free(model);
        return;
    }
    snprintf(text, sizeof text, "%s, %lld parameters", tp_model_get_info(model)->family,
             (long long)tp_model_param_count(model));
    add(c, "model", true, text);
    check_memory(&r->options, model, &graphs, c);
    if (r->options.policy.init == TP_INIT_PRETRAINED) {
        tp_load_report report;
        tp_states *states = tp_session_states(graphs.session);
        bool ok = tp_states_alloc(states, &err) == TP_OK &&
                  tp_model_load(model, states, &report, &err) == TP_OK;
        if (ok)
            snprintf(text, sizeof text, "%zu of %zu tensors, %zu unused%s", report.n_loaded,
                     report.n_expected, report.n_unused,
                     report.has_nonfinite ? "; NaN or infinity inside" : "");
        add(c, "weights", ok && !report.has_nonfinite, ok ? text : err.message);
    }
    tp_run_graphs_release(&graphs);
    tp_model_free(model);
}

static void check_tokenizer(const tp_recipe *r, checks *c)
{
    tp_error err = {0};
    tp_tokenizer *tok;
    char text[128];
    if (!r->options.policy.tokenizer_name) {
        add(c, "tokenizer", r->options.policy.tokenizer_train_vocab_size != TP_OPT_UNSET_INT,
            "trained by the run (policy.tokenizer.train_vocab_size)");
        return;
    }
    if (tp_tokenizer_load(r->options.policy.tokenizer_name, &tok, &err) != TP_OK) {
        add(c, "tokenizer", false, err.message);
        return;
    }
    snprintf(text, sizeof text, "%d ids%s", tp_tokenizer_vocab_size(tok),
             tp_tokenizer_chat_template(tok) ? ", chat template" : ", no chat template");
    add(c, "tokenizer", true, text);
    tp_tokenizer_free(tok);
}

static void check_data(const tp_recipe *r, checks *c)
{
    char text[300], size[32];
    const char *path = r->options.data.train.data_path;
    if (!path) {
        bool generated = r->options.data.train.dataset_name != NULL;
        add(c, "data", generated, generated ? "generated" : "data.train.data_path is not set");
        return;
    }
    int64_t bytes = tp_file_size(path);
    if (bytes > 0)
        snprintf(text, sizeof text, "%s, %s", path, tp_human_bytes((double)bytes, size));
    else
        snprintf(text, sizeof text, "'%s' %s", path, bytes == 0 ? "is empty" : "cannot be read");
    add(c, "data", bytes > 0, text);
}

static tp_status check_recipe(char **words, int n, checks *c, tp_error *err)
{
    tp_recipe recipe;
    TP_TRY(tp_cli_open_recipe(words, n, &recipe, err));
    tp_cli_print_notice("doctor", recipe.config);
    add(c, "configuration", true, words[0]);
    check_plan(&recipe, c);
    check_tokenizer(&recipe, c);
    check_data(&recipe, c);
    tp_recipe_close(&recipe);
    return TP_OK;
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
    printf("\n");
}

static void print_ceilings(const tp_machine *m)
{
    printf("GEMM bf16        %.1f GFLOP/s\n", m->gemm_bf16_flops * 1e-9);
    printf("GEMM f32         %.1f GFLOP/s\n", m->gemm_f32_flops * 1e-9);
    printf("read             %.1f GB/s\n", m->read_bytes * 1e-9);
    printf("copy             %.1f GB/s (read + written)\n", m->copy_bytes * 1e-9);
    printf("optimizer        %.1f GB/s (28 bytes per parameter)\n", m->update_bytes * 1e-9);
}

static void print_text(const tp_machine *m, const char *why_unknown, const checks *c)
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
    if (m->measured_at > 0) {
        print_ceilings(m);
        print_conditions(m);
    } else
        printf("ceilings         unknown: %s\n", why_unknown);
    for (int i = 0; i < c->n; i++)
        printf("%-16s %s: %s\n", c->v[i].what, c->v[i].ok ? "ok" : "FAILED", c->v[i].text);
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

static void print_json(const tp_machine *m, const checks *c)
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
    put_limits(&w);
    tp_doctor_write_paths(&w);
    tp_json_w_put_begin(&w, "checks", '[');
    for (int i = 0; i < c->n; i++) {
        tp_json_w_begin(&w, '{');
        tp_json_w_put_str(&w, "what", c->v[i].what);
        tp_json_w_put_bool(&w, "ok", c->v[i].ok);
        tp_json_w_put_str(&w, "text", c->v[i].text);
        tp_json_w_end(&w, '}');
    }
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
    checks c = {.n = 0};
    const tp_usage usage = {
        .command = "doctor",
        .arguments = "[CONFIG [KEY=VALUE...]]",
        .summary = "Measure what this machine can do; with a configuration, check that it, its "
                   "model, tokenizer, memory and data are sound.",
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
    if (f.cached)
        tp_paths_prove();
    else
        tp_paths_prove_again();
    if (n > 0 && check_recipe(words, n, &c, &err) != TP_OK)
        return tp_cli_fail(&err);
    tp_status measured = measure(&f, threads, &machine, &err);
    if (measured == TP_ERR_NOMEM) /* the rest can be told all the same */
        machine = tp_machine_describe(&tp_backend_cpu, threads);
    else if (measured != TP_OK)
        return tp_cli_fail(&err);
    if (f.json)
        print_json(&machine, &c);
    else
        print_text(&machine, err.message, &c);
    for (int i = 0; i < c.n; i++)
        if (!c.v[i].ok)
            return 2;
    return 0;
}
