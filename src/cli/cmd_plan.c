/* cmd_plan.c - `temper plan`: does a run fit, what does it take, how long is a step. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "api/tables.h"
#include "base/platform.h"
#include "cli/cli.h"
#include "cli/find_recipe.h"
#include "cli/recipe.h"
#include "engine/train/algorithm.h"
#include "engine/train/plan.h"

typedef struct {
    bool json;
    const char *print, *isa, *level;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json, "as JSON"),
    TP_TEXT("print", 0, "GRAPH", print,
            "print the launches of train, eval, norm, update, generate or reference with their "
            "memory"),
    TP_TEXT("isa", 0, "LEVEL", isa, "the same as engine.isa=LEVEL"),
    TP_TEXT("level", 0, "LEVEL", level,
            "the same as optimization.level=LEVEL: basic, advanced, ultra"),
    {0}};

typedef struct {
    const tp_train_options *o;
    const tp_model *model;
    const tp_run_graphs *graphs;
    tp_run_plan plan;
    tp_plan_levers levers; /* when it does not fit */
    tp_lever_reports reports;
    size_t resumed_bytes; /* more, while a resumed run begins */
} report;

/* ---- text ---- */

static void add_model(const report *r, tp_buf *out)
{
    char a[32];
    const tp_model_info *info = tp_model_get_info(r->model);
    const tp_session_plan *s = &r->plan.session;
    tp_buf_addf(out,
                "model            %s: %lld layers, width %lld, %lld heads (%lld kv) of %lld,\n"
                "                 vocabulary %lld%s\n",
                info->family, (long long)info->layers, (long long)info->hidden,
                (long long)info->heads, (long long)info->kv_heads, (long long)info->head_dim,
                (long long)info->vocab, info->tied ? ", tied head" : "");
    tp_buf_addf(out, "parameters       %lld (%s)\n", (long long)r->plan.parameters,
                tp_human_count((double)r->plan.parameters, a));
    tp_buf_addf(out,
                "micro-batch      %lld tokens, %zu launches, recomputation %.1f %% of the "
                "arithmetic\n\n",
                (long long)r->plan.micro_tokens, s->n_launches,
                100 * s->recompute_flops / s->train_flops);
}

/* Kinds down, phases across: what a phase works with. */
static void add_phases(const tp_run_plan *p, tp_buf *out)
{
    char a[32];
    tp_buf_addf(out, "%-12s", "worked with");
    for (int i = 0; i < TP_PLAN_PHASES; i++)
        if (tp_plan_phase_bytes(p, (tp_plan_phase)i) > 0)
            tp_buf_addf(out, " %11s", tp_plan_phase_name((tp_plan_phase)i));
    for (int k = 0; k <= TP_MEM_KINDS; k++) {
        bool is_sum = k == TP_MEM_KINDS;
        if (!is_sum && p->bytes[k] == 0)
            continue;
        tp_buf_addf(out, "\n%-12s", is_sum ? "together" : tp_mem_kind_name((tp_mem_kind)k));
        for (int i = 0; i < TP_PLAN_PHASES; i++) {
            size_t all = tp_plan_phase_bytes(p, (tp_plan_phase)i);
            size_t bytes = is_sum ? all : p->phases[i][k];
            if (all > 0)
                tp_buf_addf(out, " %11s", bytes ? tp_human_bytes((double)bytes, a) : "-");
        }
    }
    tp_buf_adds(out, "\n");
}

static void add_memory(const report *r, tp_buf *out)
{
    char a[32];
    const tp_run_plan *p = &r->plan;
    tp_table_memory(p, NULL, out);
    tp_buf_addf(out, "(activations: %s live at the worst moment)\n",
                tp_human_bytes((double)p->session.activation_live_bytes, a));
    if (p->generator_bytes)
        tp_buf_addf(out, "(without generation it would be %s less)\n",
                    tp_human_bytes((double)p->generator_bytes, a));
    if (p->reference_bytes)
        tp_buf_addf(out, "(without the reference model it would be %s less)\n",
                    tp_human_bytes((double)p->reference_bytes, a));
    if (r->resumed_bytes)
        tp_buf_addf(out,
                    "(a run that is resumed takes %s more while it begins: the first weights)\n",
                    tp_human_bytes((double)r->resumed_bytes, a));
    tp_buf_addc(out, '\n');
    add_phases(p, out);
    tp_buf_addc(out, '\n');
}

static void add_part(tp_buf *out, const char *name, double s)
{
    char a[32];
    if (s != 0)
        tp_buf_addf(out, "  %-15s %s\n", name, tp_human_seconds(s, a));
}

static void add_work(const report *r, tp_buf *out)
{
    char a[32], b[32];
    const tp_run_plan *p = &r->plan;
    tp_buf_addf(out, "micro-batch      %sFLOP, %s moved\n",
                tp_human_count(p->session.train_flops, a),
                tp_human_bytes(p->session.train_bytes, b));
    tp_buf_addf(out, "step             %.0f micro-batches and %.0f update%s at most: %sFLOP,\n",
                p->micro_batches, p->updates, p->updates == 1 ? "" : "s",
                tp_human_count(p->flops, a));
    tp_buf_addf(out, "                 %s moved\n", tp_human_bytes(p->moved_bytes, a));
    if (isnan(p->step_s)) {
        tp_buf_adds(out,
                    "step time        unknown: run 'temper doctor' once to measure this machine\n");
        return;
    }
    tp_buf_addf(out, "step time        %s, an estimate: all work at this machine's measured\n",
                tp_human_seconds(p->step_s, a));
    tp_buf_addf(out, "                 ceilings, every sequence full%s\n",
                p->generation_s != 0 ? ", every answer as long as it may be" : "");
    add_part(out, "generation", p->generation_s);
    add_part(out, "log-probs", p->logprob_s);
    add_part(out, "reference", p->reference_s);
    add_part(out, "training", p->training_s);
    add_part(out, "update", p->update_s);
}

static void print_text(const report *r)
{
    char a[32];
    tp_buf out = {0};
    tp_run_plan_verdict(&r->plan, &r->levers, "\n  ", &out);
    tp_buf_adds(&out, "\n\n");
    add_model(r, &out);
    add_memory(r, &out);
    add_work(r, &out);
    tp_buf_addf(&out, "checkpoint       %s\n",
                tp_human_bytes((double)r->plan.session.checkpoint_bytes, a));
    tp_buf_addc(&out, '\n');
    tp_table_levers(&r->reports, &out);
    fwrite(out.data, 1, out.len, stdout);
    tp_buf_release(&out);
}

/* ---- JSON ---- */

static void put_memory(const report *r, tp_json_w *w)
{
    const tp_run_plan *p = &r->plan;
    tp_json_w_put_begin(w, "memory", '{');
    tp_json_w_put_i64(w, "planned_peak_bytes", (int64_t)p->peak_bytes);
    for (int k = 0; k < TP_MEM_KINDS; k++)
        tp_json_w_put_i64(w, tp_mem_kind_name((tp_mem_kind)k), (int64_t)p->bytes[k]);
    tp_json_w_put_begin(w, "by_phase", '{');
    for (int i = 0; i < TP_PLAN_PHASES; i++) {
        size_t bytes = tp_plan_phase_bytes(p, (tp_plan_phase)i);
        if (bytes == 0)
            continue;
        tp_json_w_put_begin(w, tp_plan_phase_name((tp_plan_phase)i), '{');
        for (int k = 0; k < TP_MEM_KINDS; k++)
            tp_json_w_put_i64(w, tp_mem_kind_name((tp_mem_kind)k), (int64_t)p->phases[i][k]);
        tp_json_w_put_i64(w, "together", (int64_t)bytes);
        tp_json_w_end(w, '}');
    }
    tp_json_w_end(w, '}');
    tp_json_w_put_i64(w, "generator_bytes", (int64_t)p->generator_bytes);
    tp_json_w_put_i64(w, "reference_bytes", (int64_t)p->reference_bytes);
    tp_json_w_put_i64(w, "more_when_resumed_bytes", (int64_t)r->resumed_bytes);
    tp_json_w_put_i64(w, "limit_bytes", (int64_t)p->allowance.bytes);
    tp_json_w_put_str(w, "limit_source", p->allowance.source);
    tp_json_w_end(w, '}');
}

static void put_remedies(const report *r, tp_json_w *w)
{
    tp_json_w_put_begin(w, "remedies", '[');
    for (int i = 0; i < r->levers.n; i++) {
        const tp_plan_lever *l = &r->levers.v[i];
        tp_json_w_begin(w, '{');
        tp_json_w_put_str(w, "change", l->change);
        tp_json_w_put_i64(w, "planned_peak_bytes", (int64_t)l->peak_bytes);
        tp_json_w_put_i64(w, "saved_bytes", (int64_t)(r->plan.peak_bytes - l->peak_bytes));
        tp_json_w_put_bool(w, "fits", l->fits);
        tp_json_w_end(w, '}');
    }
    tp_json_w_end(w, ']');
}

static void print_json(const report *r)
{
    tp_buf out = {0};
    tp_json_w w;
    const tp_run_plan *p = &r->plan;
    const struct {
        const char *key;
        double v;
    } numbers[] = {{"flops_per_micro_batch", p->session.train_flops},
                   {"bytes_per_micro_batch", p->session.train_bytes},
                   {"flops_per_step", p->flops},
                   {"bytes_per_step", p->moved_bytes},
                   {"predicted_micro_batch_s", p->micro_s},
                   {"predicted_generation_s", p->generation_s},
                   {"predicted_logprob_s", p->logprob_s},
                   {"predicted_reference_s", p->reference_s},
                   {"predicted_training_s", p->training_s},
                   {"predicted_update_s", p->update_s},
                   {"predicted_step_s", p->step_s},
                   {"checkpoint_bytes", (double)p->session.checkpoint_bytes}};
    tp_json_w_init(&w, &out, 2);
    tp_json_w_begin(&w, '{');
    tp_json_w_put_bool(&w, "fits", p->fits);
    put_remedies(r, &w);
    tp_levers_put(&r->reports, &w);
    tp_json_w_put_str(&w, "family", tp_model_get_info(r->model)->family);
    tp_json_w_put_i64(&w, "parameters", p->parameters);
    tp_json_w_put_i64(&w, "tokens_per_micro_batch", p->micro_tokens);
    tp_json_w_put_known(&w, "micro_batches_per_step_at_most", p->micro_batches);
    tp_json_w_put_known(&w, "updates_per_step", p->updates);
    put_memory(r, &w);
    for (size_t i = 0; i < TP_COUNTOF(numbers); i++)
        tp_json_w_put_known(&w, numbers[i].key, numbers[i].v);
    tp_json_w_end(&w, '}');
    puts(tp_buf_str(&out));
    tp_buf_release(&out);
}

/* ---- the command ---- */

static int print_launches(const tp_run_graphs *g, const char *which)
{
    int graph = tp_program_find(g->program, which);
    if (graph < 0) {
        fprintf(stderr,
                "temper plan: --print takes train, eval, norm or update, generate where answers "
                "are generated and reference where there is such a model, not '%s'\n",
                which);
        return 2;
    }
    tp_buf out = {0};
    tp_exec_print(tp_program_exec(g->program, graph), &out);
    fwrite(out.data, 1, out.len, stdout);
    tp_buf_release(&out);
    return 0;
}

static tp_status make_report(const tp_config *config, report *r, tp_error *err)
{
    tp_machine machine;
    bool found = false;
    TP_TRY(tp_machine_load(&tp_backend_cpu, tp_trainer_threads(r->o), &machine, &found, err));
    TP_TRY(tp_run_plan_make(r->o, r->model, r->graphs, found ? &machine : NULL, &r->plan, err));
    if (r->o->algorithm->resumes_with_reference) { /* only its set differs when it is resumed */
        tp_run_plan resumed;
        TP_TRY(tp_run_plan_compute(r->o, r->model, true, NULL, &resumed, err));
        r->resumed_bytes = resumed.peak_bytes - r->plan.peak_bytes;
    }
    tp_levers_look(config, r->o, &r->reports);
    tp_levers_predict(config, r->model, &r->plan, false, found ? &machine : NULL, &r->reports);
    if (!r->plan.fits)
        tp_run_plan_levers(r->o, r->model, false, &r->plan, &r->levers);
    return TP_OK;
}

static int show(const tp_recipe *recipe, const flags *f, const tp_model *model,
                const tp_run_graphs *graphs)
{
    tp_error err = {0};
    report r = {.o = &recipe->options, .model = model, .graphs = graphs};
    if (f->print)
        return print_launches(graphs, f->print);
    if (make_report(recipe->config, &r, &err) != TP_OK)
        return tp_cli_fail(&err);
    if (f->json)
        print_json(&r);
    else
        print_text(&r);
    return r.plan.fits ? 0 : tp_status_exit(TP_ERR_NOMEM);
}

static int plan(const tp_recipe *recipe, const flags *f)
{
    const tp_train_options *o = &recipe->options;
    tp_error err = {0};
    tp_model *model;
    tp_run_graphs graphs;
    tp_run_graphs_options more = {0};
    if (tp_run_model_open(o, &model, NULL, &err) != TP_OK)
        return tp_cli_fail(&err);
    int status;
    if (tp_run_graphs_create(o, model, &more, &graphs, &err) != TP_OK)
        status = tp_cli_fail(&err);
    else {
        status = show(recipe, f, model, &graphs);
        tp_run_graphs_release(&graphs);
    }
    tp_model_free(model);
    return status;
}

int tp_cmd_plan(int argc, char **argv)
{
    flags f = {0};
    char *words[argc + 2];
    tp_error err = {0};
    tp_recipe recipe;
    const tp_usage usage = {.command = "plan",
                            .arguments = "CONFIG [KEY=VALUE...]",
                            .summary = "Memory, work and time of a run before it runs.",
                            .flags = flag_table,
                            .details = "No data is read, nothing large is read or allocated.  Exit "
                                       "status 5 when the run does not fit.",
                            .min_words = 1,
                            .max_words = -1};
    int n = tp_cli_parse(&usage, argc, argv, &f, words);
    if (n < 0)
        return n == -2 ? 0 : 2;
    char isa[TP_CLI_SETTING], level[TP_CLI_SETTING];
    n = tp_cli_add_setting(words, n, "engine.isa", f.isa, isa);
    n = tp_cli_add_setting(words, n, "optimization.level", f.level, level);
    if (tp_cli_open_recipe_sizes(words, n, &recipe, &err) != TP_OK)
        return tp_cli_fail(&err);
    tp_cli_print_notice("plan", recipe.config);
    int status = plan(&recipe, &f);
    tp_recipe_close(&recipe);
    return status;
}
