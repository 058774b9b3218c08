#include <math.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/recipe.h"
#include "cli/tables.h"
#include "engine/data/pack.h"
#include "engine/train/trainer.h"

typedef struct {
    bool json;
    const char *print, *isa;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json, "as JSON"),
    TP_TEXT("print", 0, "GRAPH", print,
            "print the launches of train, eval, norm or update with their memory"),
    TP_TEXT("isa", 0, "LEVEL", isa, "the same as engine.isa=LEVEL"),
    {0}};

typedef struct {
    const tp_train_options *o;
    const tp_model *model;
    const tp_session *session;
    tp_session_plan plan;
    tp_machine machine;
    bool has_machine;
    double micro_batches; /* per step, when every sequence has the full length */
    double micro_s, update_s;
    size_t data_bytes;
    bool has_reference; /* a second model besides what is planned */
} report;

static double launches_seconds(const tp_exec *e, const tp_machine *m, tp_dtype dtype)
{
    double s = 0;
    for (size_t i = 0; i < tp_exec_launch_count(e); i++) {
        const tp_launch_info *l = tp_exec_launch(e, i);
        bool contracts = (tp_ops[l->op]->traits & TP_OP_CONTRACTS) != 0;
        s +=
            contracts ? tp_machine_seconds(m, dtype, l->flops, l->bytes) : l->bytes / m->copy_bytes;
    }
    return s;
}

static void predict(report *r)
{
    const tp_session_options *so = tp_session_get_options(r->session);
    double tokens = (double)r->o->policy.train_global_batch_size *
                    (double)r->o->policy.max_total_sequence_length;
    r->micro_batches = ceil(tokens / (double)so->tokens);
    r->micro_s = r->update_s = NAN;
    if (r->has_machine) {
        r->micro_s =
            launches_seconds(tp_session_exec(r->session, "train"), &r->machine, so->compute_dtype);
        r->update_s = r->plan.update_bytes / r->machine.update_bytes;
    }
    r->has_reference = r->o->algorithm == TP_ALGORITHM_GRPO && r->o->loss.kl_penalty != 0 &&
                       !r->o->grpo.skip_reference;
    r->data_bytes = tp_microbatch_bytes((int32_t)so->tokens);
    if (r->o->algorithm != TP_ALGORITHM_SFT)
        return;
    /* Buffers of the training and validation loaders. */
    int64_t each = r->o->data.num_workers * r->o->data.prefetch_factor + 1;
    r->data_bytes *= 2 * (size_t)each;
}

static void print_text(const report *r)
{
    char a[32], b[32], c[32];
    tp_buf out = {0};
    const tp_model_info *info = tp_model_get_info(r->model);
    const tp_session_options *so = tp_session_get_options(r->session);
    tp_buf_addf(&out,
                "model            %s: %lld layers, width %lld, %lld heads (%lld kv) of %lld,\n"
                "                 vocabulary %lld%s\n",
                info->family, (long long)info->layers, (long long)info->hidden,
                (long long)info->heads, (long long)info->kv_heads, (long long)info->head_dim,
                (long long)info->vocab, info->tied ? ", tied head" : "");
    tp_buf_addf(&out, "parameters       %lld (%s)\n", (long long)tp_model_param_count(r->model),
                tp_human_count((double)tp_model_param_count(r->model), a));
    tp_buf_addf(&out,
                "micro-batch      %lld tokens, %zu launches, recomputation %.1f %% of the "
                "arithmetic\n\n",
                (long long)so->tokens, r->plan.n_launches,
                100 * r->plan.recompute_flops / r->plan.train_flops);
    tp_table_memory(r->session, r->data_bytes, NULL, &out);
    tp_buf_addf(&out, "(activations: %s live at the worst moment)\n\n",
                tp_human_bytes((double)r->plan.activation_live_bytes, a));
    if (r->has_reference) {
        bool bf16 = tp_session_get_options(r->session)->compute_dtype == TP_DTYPE_BF16;
        double weights = (double)r->plan.bytes[TP_MEM_WEIGHTS] * (bf16 ? 1.5 : 1);
        tp_buf_addf(&out,
                    "The reference model (loss_fn.reference_policy_kl_penalty) takes its\n"
                    "weights besides, about %s.\n\n",
                    tp_human_bytes(weights, a));
    }
    tp_buf_addf(&out, "micro-batch      %sFLOP, %s moved\n", tp_human_count(r->plan.train_flops, a),
                tp_human_bytes(r->plan.train_bytes, b));
    tp_buf_addf(&out,
                "step             %.0f micro-batches when every sequence is full: %sFLOP,\n"
                "                 %s moved, of that %s by the update\n",
                r->micro_batches, tp_human_count(r->plan.train_flops * r->micro_batches, a),
                tp_human_bytes(r->plan.train_bytes * r->micro_batches + r->plan.update_bytes, b),
                tp_human_bytes(r->plan.update_bytes, c));
    if (r->has_machine)
        tp_buf_addf(&out,
                    "step time        at least %s: %s per micro-batch, %s for the update\n"
                    "                 (estimate at this machine's measured ceilings)\n",
                    tp_human_seconds(r->micro_s * r->micro_batches + r->update_s, a),
                    tp_human_seconds(r->micro_s, b), tp_human_seconds(r->update_s, c));
    else
        tp_buf_addf(&out, "step time        unknown: run 'temper doctor' once to measure this "
                          "machine\n");
    tp_buf_addf(&out, "checkpoint       %s\n", tp_human_bytes((double)r->plan.checkpoint_bytes, a));
    fwrite(out.data, 1, out.len, stdout);
    tp_buf_release(&out);
}

static void print_json(const report *r)
{
    tp_buf out = {0};
    tp_json_w w;
    tp_json_w_init(&w, &out, 2);
    tp_json_w_begin(&w, '{');
    tp_json_w_put_str(&w, "family", tp_model_get_info(r->model)->family);
    tp_json_w_put_known(&w, "parameters", (double)tp_model_param_count(r->model));
    tp_json_w_put_known(&w, "tokens_per_micro_batch",
                        (double)tp_session_get_options(r->session)->tokens);
    tp_json_w_put_known(&w, "micro_batches_per_step_at_most", r->micro_batches);
    tp_json_w_put_begin(&w, "memory", '{');
    tp_json_w_put_known(&w, "planned_peak_bytes", (double)(r->plan.peak_bytes + r->data_bytes));
    for (int k = 0; k < TP_MEM_KINDS; k++)
        tp_json_w_put_known(&w, tp_mem_kind_name((tp_mem_kind)k),
                            (double)(r->plan.bytes[k] + (k == TP_MEM_DATA ? r->data_bytes : 0)));
    tp_json_w_end(&w, '}');
    tp_json_w_put_known(&w, "flops_per_micro_batch", r->plan.train_flops);
    tp_json_w_put_known(&w, "bytes_per_micro_batch", r->plan.train_bytes);
    tp_json_w_put_known(&w, "flops_per_step", r->plan.train_flops * r->micro_batches);
    tp_json_w_put_known(&w, "bytes_per_step",
                        r->plan.train_bytes * r->micro_batches + r->plan.update_bytes);
    tp_json_w_put_known(&w, "predicted_micro_batch_s", r->micro_s);
    tp_json_w_put_known(&w, "predicted_step_s", r->micro_s * r->micro_batches + r->update_s);
    tp_json_w_put_known(&w, "checkpoint_bytes", (double)r->plan.checkpoint_bytes);
    tp_json_w_end(&w, '}');
    puts(tp_buf_str(&out));
    tp_buf_release(&out);
}

static int show(const tp_recipe *recipe, const flags *f, tp_model *model, tp_session *session)
{
    tp_error err = {0};
    report r = {.o = &recipe->options, .model = model, .session = session};
    tp_session_get_plan(session, &r.plan);
    if (tp_machine_load(&tp_backend_cpu, tp_session_get_options(session)->threads, &r.machine,
                        &r.has_machine, &err) != TP_OK)
        return tp_cli_fail(&err);
    predict(&r);
    if (f->print) {
        const tp_exec *e = tp_session_exec(session, f->print);
        if (!e) {
            fprintf(stderr, "temper plan: --print takes train, eval, norm or update, not '%s'\n",
                    f->print);
            return 2;
        }
        tp_buf out = {0};
        tp_exec_print(e, &out);
        fwrite(out.data, 1, out.len, stdout);
        tp_buf_release(&out);
    } else if (f->json)
        print_json(&r);
    else
        print_text(&r);
    return 0;
}

int tp_cmd_plan(int argc, char **argv)
{
    flags f = {0};
    char *words[argc + 1];
    tp_error err = {0};
    tp_recipe recipe;
    tp_model *model;
    tp_session *session;
    const tp_usage usage = {.command = "plan",
                            .arguments = "CONFIG [KEY=VALUE...]",
                            .summary = "Memory, work and time of a run before it runs.",
                            .flags = flag_table,
                            .details = "Nothing large is read or allocated.",
                            .min_words = 1,
                            .max_words = -1};
    int n = tp_cli_parse(&usage, argc, argv, &f, words);
    if (n < 0)
        return n == -2 ? 0 : 2;
    char isa[64];
    n = tp_cli_add_isa(words, n, f.isa, isa);
    if (tp_cli_open_recipe(words, n, &recipe, &err) != TP_OK)
        return tp_cli_fail(&err);
    tp_cli_print_notice("plan", recipe.config);
    int status;
    if (tp_train_plan(&recipe.options, &model, &session, &err) != TP_OK)
        status = tp_cli_fail(&err);
    else {
        status = show(&recipe, &f, model, session);
        tp_session_free(session);
        tp_model_free(model);
    }
    tp_recipe_close(&recipe);
    return status;
}
