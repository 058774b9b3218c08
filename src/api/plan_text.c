/* plan_text.c - the plan of a run as text or JSON: does it fit, what does it take, how long is a
 * step. */
#include <math.h>

#include "api/tables.h"
#include "api/training.h"
#include "base/platform.h"
#include "base/sized.h"
#include "base/strings.h"
#include "engine/train/algorithm.h"
#include "engine/train/fit.h"
#include "engine/train/plan_ranks.h"
#include "temper/plan.h"

typedef struct {
    const tp_train_options *o;
    const tp_model *model;
    const tp_run_graphs *graphs;
    tp_run_plan plan;
    tp_plan_remedies remedies; /* when it does not fit */
    tp_lever_reports levers;
    size_t resumed_bytes; /* more, while a resumed run begins */
    const tp_plan_options *asked;
    tp_ranks_plan ranks; /* where there are several */
} report;

/* ---- text ---- */

static void add_model(const report *r, tp_buf *out)
{
    char a[32];
    const tp_model_info *info = tp_model_get_info(r->model);
    const tp_session_plan *s = &r->plan.session;
    tp_buf_addf(out,
                "model            %s: %lld layer%s, width %lld, %lld heads (%lld kv) of %lld,\n"
                "                 vocabulary %lld%s\n",
                info->family, (long long)info->layers, tp_plural((uint64_t)info->layers),
                (long long)info->hidden, (long long)info->heads, (long long)info->kv_heads,
                (long long)info->head_dim, (long long)info->vocab, info->tied ? ", tied head" : "");
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
        tp_buf_addf(out, "\n%-12s", is_sum ? "together" : tp_mem_kind_title((tp_mem_kind)k));
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
    tp_buf_addf(out, "step             %.0f micro-batch%s and %.0f update%s at most: %sFLOP,\n",
                p->micro_batches, p->micro_batches == 1 ? "" : "es", p->updates,
                p->updates == 1 ? "" : "s", tp_human_count(p->flops, a));
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

static void add_text(const report *r, tp_buf *out)
{
    char a[32];
    tp_run_plan_verdict(&r->plan, &r->remedies, "\n  ", out);
    if (r->o->said)
        tp_buf_addf(out, "\n  %s", r->o->said);
    tp_buf_adds(out, "\n\n");
    add_model(r, out);
    add_memory(r, out);
    add_work(r, out);
    tp_buf_addf(out, "checkpoint       %s\n\n",
                tp_human_bytes((double)r->plan.session.checkpoint_bytes, a));
    tp_table_levers(&r->levers, out);
    if (r->asked->ranks > 0) {
        tp_buf_addc(out, '\n');
        tp_ranks_plan_text(&r->ranks, out);
    }
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
    for (int i = 0; i < r->remedies.n; i++) {
        const tp_plan_remedy *l = &r->remedies.v[i];
        tp_json_w_begin(w, '{');
        tp_json_w_put_str(w, "change", l->change);
        tp_json_w_put_i64(w, "planned_peak_bytes", (int64_t)l->peak_bytes);
        tp_json_w_put_i64(w, "saved_bytes", (int64_t)(r->plan.peak_bytes - l->peak_bytes));
        tp_json_w_put_bool(w, "fits", l->fits);
        tp_json_w_end(w, '}');
    }
    tp_json_w_end(w, ']');
}

static void add_json(const report *r, tp_buf *out)
{
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
    tp_json_w w = tp_json_w_open(out, 2, '{');
    tp_json_w_put_bool(&w, "fits", p->fits);
    tp_json_w_put_str(&w, "chosen", r->o->said);
    put_remedies(r, &w);
    tp_levers_put(&r->levers, &w);
    tp_json_w_put_str(&w, "family", tp_model_get_info(r->model)->family);
    tp_json_w_put_i64(&w, "parameters", p->parameters);
    tp_json_w_put_i64(&w, "tokens_per_micro_batch", p->micro_tokens);
    tp_json_w_put_known(&w, "micro_batches_per_step_at_most", p->micro_batches);
    tp_json_w_put_known(&w, "updates_per_step", p->updates);
    put_memory(r, &w);
    for (size_t i = 0; i < TP_COUNTOF(numbers); i++)
        tp_json_w_put_known(&w, numbers[i].key, numbers[i].v);
    if (r->asked->ranks > 0)
        tp_ranks_plan_put(&r->ranks, &w);
    tp_json_w_close(&w, '}');
}

/* ---- the plan ---- */

static tp_status add_launches(const tp_run_graphs *g, const char *which, tp_buf *out, tp_error *err)
{
    int graph = tp_program_find(g->program, which);
    if (graph < 0)
        return tp_fail(err, TP_ERR_ARG,
                       "--print takes train, eval, norm or update, generate where answers are "
                       "generated and reference where there is such a model, not '%s'",
                       which);
    tp_exec_print(tp_program_exec(g->program, graph), out);
    return TP_OK;
}

static tp_status parse_network(const char *text, const tp_ranks *ranks, tp_network *ret,
                               tp_error *err)
{
    int on_host = TP_MAX(ranks->on_host, 1), hosts = (ranks->ranks + on_host - 1) / on_host;
    TP_TRY(tp_network_parse(text, ret, err));
    if (tp_network_nodes(ret) >= hosts)
        return TP_OK;
    return tp_fail(err, TP_ERR_ARG,
                   "'%.60s' has %lld nodes, %d ranks need %d: give a larger one, or more "
                   "ranks of a node (--ranks-per-node)",
                   text, (long long)tp_network_nodes(ret), ranks->ranks, hosts);
}

static tp_status make_report(const tp_config *config, report *r, tp_error *err)
{
    tp_machine machine;
    bool found = false;
    TP_TRY(tp_trainer_machine(r->o, &machine, &found, err));
    const tp_machine *measured = found ? &machine : NULL;
    TP_TRY(tp_run_plan_make(r->o, r->model, r->graphs, measured, &r->plan, err));
    if (r->o->algorithm->resumes_with_reference) { /* only its set differs when it is resumed */
        tp_run_plan resumed;
        TP_TRY(tp_run_plan_compute(r->o, r->model, true, NULL, &resumed, err));
        r->resumed_bytes = resumed.peak_bytes - r->plan.peak_bytes;
    }
    if (r->asked->ranks > 0) {
        tp_network network;
        const char *text = r->asked->network;
        if (text)
            TP_TRY(parse_network(text, &r->o->ranks, &network, err));
        TP_TRY(tp_ranks_plan_make(r->o, r->model, measured, tp_ranks_processes(&r->o->ranks),
                                  text ? &network : NULL, &r->ranks, err));
    }
    tp_levers_look(config, r->o, &r->levers);
    tp_levers_predict(config, r->o, r->model, &r->plan, false, measured, &r->levers);
    if (!r->plan.fits)
        tp_run_plan_remedies(r->o, r->model, false, &r->plan, &r->remedies);
    return TP_OK;
}

static tp_status write_report(const tp_recipe *recipe, const tp_plan_options *o,
                              const tp_model *model, const tp_run_graphs *graphs, tp_buf *out,
                              bool *ret_fits, tp_error *err)
{
    report r = {.o = &recipe->options, .model = model, .graphs = graphs, .asked = o};
    *ret_fits = true;
    if (o->graph)
        return add_launches(graphs, o->graph, out, err);
    TP_TRY(make_report(recipe->config, &r, err));
    if (o->form == TP_FORM_JSON)
        add_json(&r, out);
    else
        add_text(&r, out);
    *ret_fits = r.plan.fits;
    return TP_OK;
}

static tp_status plan(const tp_recipe *recipe, const tp_plan_options *o, tp_buf *out,
                      bool *ret_fits, tp_error *err)
{
    tp_model *model;
    TP_OWN(tp_run_graphs) graphs = {0};
    TP_OWN(tp_buf) said = {0};
    tp_run_graphs_options more = {0};
    const char *notice = tp_config_notice(recipe->config);
    if (notice && o->note)
        o->note(o->user, notice);
    TP_TRY(tp_run_model_open(&recipe->options, &model, NULL, err));
    tp_status status = tp_run_check_positions(&recipe->options, model, &said, err);
    if (said.len && o->note)
        o->note(o->user, said.data);
    if (status == TP_OK)
        status = tp_run_graphs_create(&recipe->options, model, &more, &graphs, err);
    if (status == TP_OK)
        status = write_report(recipe, o, model, &graphs, out, ret_fits, err);
    tp_model_free(model);
    return status;
}

static tp_status check_ranks(const tp_plan_options *asked, tp_error *err)
{
    enum { MOST_RANKS = 65536 };
    if (asked->ranks < 0 || asked->ranks > MOST_RANKS)
        return tp_fail(err, TP_ERR_ARG, "a plan is for 1 to %d ranks, not %d", MOST_RANKS,
                       asked->ranks);
    if (asked->network && asked->ranks < 1)
        return tp_fail(err, TP_ERR_ARG, "a network is between ranks: give their number (--ranks)");
    if (asked->ranks_per_node < 0 || asked->ranks_per_node > TP_MAX(asked->ranks, 0))
        return tp_fail(err, TP_ERR_ARG, "%d of %d ranks cannot share a host (--ranks-per-node)",
                       asked->ranks_per_node, asked->ranks);
    return TP_OK;
}

/* The recipe as those ranks run it. */
static tp_status place(tp_recipe *recipe, const tp_plan_options *asked, tp_error *err)
{
    tp_train_options *o = &recipe->options;
    int64_t on_host = asked->ranks_per_node ? asked->ranks_per_node : o->distributed.ranks_per_node;
    TP_TRY(check_ranks(asked, err));
    o->ranks = (tp_ranks){.ranks = asked->ranks};
    if (on_host != TP_OPT_UNSET_INT)
        o->ranks.on_host = (int)TP_MIN(on_host, asked->ranks);
    if (o->ranks.on_host > 1 && o->engine.threads == TP_OPT_UNSET_INT)
        o->threads_here = TP_MAX(tp_cpu_count() / o->ranks.on_host, 1);
    TP_TRY(tp_ranks_arrange(o, err));
    return tp_recipe_fit(recipe, true, err);
}

tp_status tp_training_plan_text(const char *config, const char *const *overrides,
                                size_t n_overrides, const tp_plan_options *options, char **ret_text,
                                bool *ret_fits, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_plan_options o;
    TP_CLEANUP(tp_recipe_close) tp_recipe recipe = {0};
    tp_buf out = {0};
    if (!ret_text || !ret_fits)
        return tp_fail(err, TP_ERR_ARG, "tp_training_plan_text: ret_text or ret_fits is NULL");
    TP_TRY(tp_sized_read(&o, sizeof o, options, "tp_plan_options", err));
    TP_TRY(tp_recipe_read_sizes(config, overrides, n_overrides, &recipe, err));
    tp_status status = tp_training_check_rules(recipe.config, &recipe.options, err);
    if (status == TP_OK)
        status = place(&recipe, &o, err);
    if (status == TP_OK)
        status = plan(&recipe, &o, &out, ret_fits, err);
    TP_HAND_OVER(status, ret_text, out.data, tp_buf_release(&out));
}
