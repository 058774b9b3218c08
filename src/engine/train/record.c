/* record.c - what a run says about itself: events, metrics.jsonl, run.json. */
#include <math.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/log.h"
#include "base/platform.h"
#include "engine/train/trainer_internal.h"

static const char *const mfu_formula =
    "3 * (2 * P_matmul * tokens + 4 * L * H * D * sum_s s*(s+1)/2) / seconds / peak FLOP/s "
    "of the unit, measured; tokens of the data only (no padding), no recomputation, LM head "
    "counted, embedding "
    "look-up not, causal attention; seconds are those of steps (data to optimizer)";

double tp_trainer_step_flops(const tp_model *model, int64_t tokens, double sum_of_squares)
{
    size_t n;
    const tp_model_info *info = tp_model_get_info(model);
    const tp_param *params = tp_model_params(model, &n);
    double matmul = 0;
    for (size_t i = 0; i < n; i++)
        if (params[i].rank == 2 && params[i].is_matrix)
            matmul += (double)params[i].dim[0] * (double)params[i].dim[1];
    /* Every table that is only looked up: the embedding unless the head is tied to it. */
    double tables = info->tied ? 0 : (double)info->vocab * (double)info->hidden;
    if (info->rope_theta == 0)
        tables += (double)info->max_positions * (double)info->hidden;
    double pairs = 0.5 * (sum_of_squares + (double)tokens);
    double attention = 4.0 * (double)(info->layers * info->heads * info->head_dim) * pairs;
    return 3.0 * (2.0 * (matmul - tables) * (double)tokens + attention);
}

/* The peak of the unit that multiplies in the run's precision. */
static double ceiling(const trainer *t)
{
    bool is_bf16 = t->o->policy.precision == TP_PRECISION_BFLOAT16;
    return t->hooks->machine
               ? tp_machine_unit_flops(t->hooks->machine, is_bf16 ? TP_DTYPE_BF16 : TP_DTYPE_F32)
               : NAN;
}

/* NaN where the ceiling is unknown, or so far below the work done that it was measured while
 * the machine was busy with something else. */
static double model_flops_utilization(trainer *t, double flops, double seconds)
{
    double share = flops / seconds / ceiling(t);
    if (!(share > TP_MOST_SHARE))
        return share;
    tp_error ignored;
    if (!t->has_doubted_ceiling) {
        tp_log(TP_LOG_WARNING, "train",
               "a step did %.3g FLOP/s, more than the %.3g that this machine was measured at, "
               "which must have been busy then: MFU is unknown; %s",
               flops / seconds, ceiling(t),
               t->hooks->machine->is_measured_again
                   ? "it was measured twice, 'temper doctor' measures with more care"
                   : "the next run measures again");
        (void)!tp_machine_doubt(t->hooks->machine, &ignored);
    }
    t->has_doubted_ceiling = true;
    return NAN;
}

/* ---- memory ---- */

tp_mem_stats tp_trainer_memory(const trainer *t)
{
    tp_mem_stats s = tp_mem_get_stats();
    const tp_mem_stats *before = &t->memory_before;
    for (int k = 0; k < TP_MEM_KINDS; k++) {
        s.current[k] -= TP_MIN(s.current[k], before->current[k]);
        s.peak[k] -= TP_MIN(s.peak[k], before->current[k]);
    }
    s.total_current -= TP_MIN(s.total_current, before->total_current);
    s.total_peak -= TP_MIN(s.total_peak, before->total_current);
    s.n_allocs -= before->n_allocs;
    return s;
}

/* ---- events ---- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Median of the last steps times what is left; the interval from their quartiles. */
static void estimate_end(const trainer *t, tp_train_event *e)
{
    double sorted[RECENT_STEPS];
    int n = t->n_recent < RECENT_STEPS ? t->n_recent : RECENT_STEPS;
    e->eta_s = e->eta_low_s = e->eta_high_s = NAN;
    if (n == 0)
        return;
    memcpy(sorted, t->recent_step_s, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, compare_doubles);
    double left = (double)(t->max_steps - t->state.step);
    e->eta_s = sorted[n / 2] * left;
    e->eta_low_s = sorted[n / 4] * left;
    e->eta_high_s = sorted[(3 * n) / 4] * left;
}

double tp_trainer_mean_step(const trainer *t)
{
    return t->n_recent > 0 ? t->step_phase_s / (double)t->n_recent : NAN;
}

static void list_programs(const trainer *t, tp_train_event *e)
{
    const char *eval = t->a && t->a->eval_part ? t->a->eval_part : "validation";
    const tp_train_program own[] = {
        {eval, t->session ? tp_session_exec(t->session, "eval") : NULL},
        {"train", t->session ? tp_session_exec(t->session, "train") : NULL},
        {"update", t->session ? tp_session_exec(t->session, "norm") : NULL},
        {"update", t->session ? tp_session_exec(t->session, "update") : NULL}};
    int n = t->a && t->a->programs && t->own ? t->a->programs(t, e->programs) : 0;
    for (size_t i = 0; i < TP_COUNTOF(own); i++)
        if (own[i].exec)
            e->programs[n++] = own[i];
    e->n_programs = n;
}

tp_train_event tp_trainer_event(trainer *t, tp_train_event_kind kind)
{
    tp_train_event e = {.kind = kind,
                        .algorithm = t->o->algorithm,
                        .is_packed = t->o->policy.packing.enabled,
                        .reward = NAN,
                        .reward_se = NAN,
                        .kl = NAN,
                        .entropy = NAN,
                        .clip_fraction = NAN,
                        .mean_length = NAN,
                        .truncated_share = NAN,
                        .flat_groups = NAN,
                        .generated_tokens_per_s = NAN,
                        .logp_difference = NAN,
                        .accuracy = NAN,
                        .margin = NAN,
                        .val_accuracy = t->val_accuracy,
                        .best_reward = t->shown.best_reward,
                        .run_dir = t->run ? tp_run_dir(t->run) : "",
                        .run_name = t->run ? tp_run_name(t->run) : "",
                        .model_name = t->o->policy.model_name ? t->o->policy.model_name
                                                              : t->o->policy.model_config,
                        .attempt = t->run ? tp_run_attempt(t->run) : 1,
                        .step = t->state.step,
                        .first_step = t->first_step,
                        .max_steps = t->max_steps,
                        .loss = t->last_loss,
                        .val_loss = t->val_loss,
                        .best_val_loss = t->state.best_metric,
                        .lr = NAN,
                        .grad_norm = NAN,
                        .step_s = NAN,
                        .mean_step_s = tp_trainer_mean_step(t),
                        .wait_s = NAN,
                        .trained_tokens_per_s = NAN,
                        .used_tokens_per_s = NAN,
                        .mfu = NAN,
                        .elapsed_s = tp_clock_s() - t->started_s,
                        .memory = tp_trainer_memory(t),
                        .plan = &t->plan,
                        .last_checkpoint_step = t->last_checkpoint_step,
                        .checkpoint_bytes = t->checkpoint_bytes,
                        .skipped = t->state.skipped,
                        .session = t->session,
                        .custom = &t->custom,
                        .profile = t->profile.is_done ? &t->profile : NULL};
    e.epoch = t->steps_per_epoch ? (double)t->state.step / (double)t->steps_per_epoch : NAN;
    tp_phases_wall(&t->phases);
    for (int i = 0; i < TP_TIME_COUNT; i++)
        e.phase_s[i] = (double)t->phases.ns[i] * 1e-9;
    estimate_end(t, &e);
    list_programs(t, &e);
    return e;
}

void tp_trainer_send(const trainer *t, const tp_train_event *event)
{
    if (t->hooks->observe)
        t->hooks->observe(t->hooks->user, event);
}

/* ---- metrics ---- */

static double padding_ratio(const step_result *r)
{
    int64_t all = r->used + r->padded;
    return all > 0 ? (double)r->padded / (double)all : 0;
}

static void write_step_metrics(trainer *t, const step_result *r, const tp_train_event *e)
{
    tp_run *run = t->run;
    tp_run_record_begin(run, "train", t->state.step);
    tp_run_metric(run, "train/loss", r->loss);
    tp_run_metric(run, "train/grad_norm", r->grad_norm);
    tp_run_metric(run, "train/lr", r->lr);
    tp_run_metric(run, "train/global_valid_toks", (double)r->trained);
    tp_run_metric(run, "train/global_valid_seqs", (double)r->sequences);
    tp_run_metric(run, "train/num_micro_batches", r->n_micro);
    tp_run_metric(run, "train/padding_ratio", padding_ratio(r));
    tp_run_metric(run, "train/skipped", r->skipped);
    tp_run_metric(run, "train/epoch", e->epoch);
    tp_run_metric(run, "timing/train/total_step_time", r->seconds);
    tp_run_metric(run, "performance/samples_per_sec", (double)r->sequences / r->seconds);
    tp_run_metric(run, "performance/tokens_per_sec", e->used_tokens_per_s);
    tp_run_metric(run, "performance/trained_tokens_per_sec", e->trained_tokens_per_s);
    tp_run_metric(run, "performance/padded_tokens_per_sec",
                  (double)(r->used + r->padded) / r->seconds);
    tp_run_metric(run, "performance/model_flops", r->flops);
    if (!isnan(e->mfu)) /* otherwise it is unknown */
        tp_run_metric(run, "train/train_fp_utilization", e->mfu);
    tp_run_metric(run, "memory/peak_bytes", (double)e->memory.total_peak);
    tp_run_metric(run, "memory/allocated_bytes", (double)e->memory.total_current);
    tp_run_metric(run, "memory/resident_bytes", t->custom.stats[TP_CUSTOM_RESIDENT].last);
    if (t->custom.stats[TP_CUSTOM_PROCESSOR].n) /* there is a step before */
        tp_run_metric(run, "system/processor_utilization",
                      t->custom.stats[TP_CUSTOM_PROCESSOR].last);
    for (int m = TP_CUSTOM_ACCELERATOR; m <= TP_CUSTOM_ACCELERATOR_MEMORY; m++)
        if (t->custom.stats[m].n)
            tp_run_metric(run, tp_custom_name((tp_custom_metric)m), t->custom.stats[m].last);
    if (t->a->record)
        t->a->record(t, r);
    tp_run_record_end(run);
}

static void copy_shown(const trainer *t, tp_train_event *e)
{
    const tp_train_event *s = &t->shown;
    if (t->o->algorithm == TP_ALGORITHM_SFT)
        return;
    e->reward = s->reward;
    e->reward_se = s->reward_se;
    e->kl = s->kl;
    e->entropy = s->entropy;
    e->clip_fraction = s->clip_fraction;
    e->mean_length = s->mean_length;
    e->truncated_share = s->truncated_share;
    e->flat_groups = s->flat_groups;
    e->generated_tokens_per_s = s->generated_tokens_per_s;
    e->logp_difference = s->logp_difference;
    e->answers = s->answers;
    e->unrewarded = s->unrewarded;
    e->accuracy = s->accuracy;
    e->margin = s->margin;
    e->best_reward = s->best_reward;
}

static void note_custom_metrics(trainer *t, const step_result *r)
{
    tp_custom_metrics *c = &t->custom;
    tp_custom_note_process(c, tp_device_threads(t->device));
    tp_custom_note(c, TP_CUSTOM_ALLOCATED, (double)tp_trainer_memory(t).total_current);
    tp_custom_note(c, TP_CUSTOM_BATCH, (double)r->sequences);
    tp_custom_note(c, TP_CUSTOM_TOKENS, (double)r->used);
    tp_custom_note(c, TP_CUSTOM_PADDING, padding_ratio(r));
    tp_custom_note(c, TP_CUSTOM_LR, r->lr);
    tp_custom_note(c, TP_CUSTOM_PARAMETERS, (double)tp_model_param_count(t->model));
}

void tp_trainer_record_step(trainer *t, const step_result *r)
{
    note_custom_metrics(t, r);
    t->recent_step_s[t->n_recent++ % RECENT_STEPS] = r->seconds;
    t->used_tokens += r->used;
    t->padded_tokens += r->padded;
    t->trained_tokens += r->trained;
    t->model_flops += r->flops;
    t->step_phase_s += r->seconds;
    tp_train_event e = tp_trainer_event(t, TP_EVENT_STEP);
    e.loss = r->loss;
    e.lr = r->lr;
    e.grad_norm = r->grad_norm;
    e.step_s = r->seconds;
    e.wait_s = r->wait_s;
    e.trained_tokens = r->trained;
    e.used_tokens = r->used;
    e.padded_tokens = r->padded;
    e.trained_tokens_per_s = (double)r->trained / r->seconds;
    e.used_tokens_per_s = (double)r->used / r->seconds;
    e.mfu = model_flops_utilization(t, r->flops, r->seconds);
    copy_shown(t, &e);
    write_step_metrics(t, r, &e);
    tp_trainer_send(t, &e);
}

void tp_trainer_record_validation(trainer *t, const tp_metric_value *metrics, size_t n)
{
    tp_run_record_begin(t->run, "validation", t->state.step);
    for (size_t i = 0; i < n; i++)
        tp_run_metric(t->run, metrics[i].tag, metrics[i].value);
    tp_run_record_end(t->run);
    tp_train_event e = tp_trainer_event(t, TP_EVENT_VALIDATION);
    tp_trainer_send(t, &e);
}

/* ---- run.json ---- */

static void put_identity(trainer *t, tp_json_w *w, const char *state)
{
    char iso[32];
    struct utsname host;
    char checkpoints[4096];
    tp_json_w_put_str(w, "run", tp_run_name(t->run));
    tp_json_w_put_str(w, "id", tp_run_id(t->run));
    tp_json_w_put_str(w, "state", state);
    tp_json_w_put_i64(w, "attempt", tp_run_attempt(t->run));
    tp_json_w_put_i64(w, "step", t->state.step);
    tp_json_w_put_i64(w, "max_steps", t->max_steps);
    tp_json_w_put_i64(w, "seed", t->o->seed);
    tp_json_w_put_str(w, "algorithm", tp_algorithm_name(t->o->algorithm));
    tp_json_w_put_str(
        w, "model", t->o->policy.model_name ? t->o->policy.model_name : t->o->policy.model_config);
    if (t->model_folder[0])
        tp_json_w_put_str(w, "model_folder", t->model_folder);
    if (t->checkpoint_dir[0])
        tp_json_w_put_str(w, "checkpoint_dir",
                          tp_run_record_path(tp_run_dir(t->run), t->checkpoint_dir, checkpoints));
    tp_json_w_put_str(w, "temper", TEMPER_VERSION);
    tp_wall_iso(t->started_wall, iso);
    tp_json_w_put_str(w, "attempt_started", iso);
    tp_wall_iso(tp_wall_s(), iso);
    tp_json_w_put_str(w, "written", iso);
    tp_json_w_put_str(w, "host", uname(&host) == 0 ? host.nodename : NULL);
    tp_json_w_put_begin(w, "machine", '{');
    tp_json_w_put_str(w, "cpu", tp_cpu_model());
    tp_json_w_put_str(w, "isa", tp_isa_name(tp_cpu_isa()));
    tp_json_w_put_i64(w, "threads", tp_device_threads(t->device));
    const tp_machine *m = t->hooks->machine;
    tp_json_w_put_str(w, "fingerprint", m ? m->fingerprint : NULL);
    tp_json_w_put_known(w, "unit_flops_per_s", ceiling(t));
    tp_json_w_end(w, '}');
}

static void put_memory(trainer *t, tp_json_w *w)
{
    const tp_run_plan *plan = &t->plan;
    tp_mem_stats stats = tp_trainer_memory(t);
    tp_json_w_put_begin(w, "memory", '{');
    tp_json_w_put_i64(w, "planned_peak_bytes", (int64_t)plan->peak_bytes);
    tp_json_w_put_i64(w, "measured_peak_bytes", (int64_t)stats.total_peak);
    tp_json_w_put_begin(w, "planned_bytes_by_kind", '{');
    for (int k = 0; k < TP_MEM_KINDS; k++)
        tp_json_w_put_i64(w, tp_mem_kind_name((tp_mem_kind)k), (int64_t)plan->bytes[k]);
    tp_json_w_end(w, '}');
    tp_json_w_put_begin(w, "peak_bytes_by_kind", '{');
    for (int k = 0; k < TP_MEM_KINDS; k++)
        tp_json_w_put_i64(w, tp_mem_kind_name((tp_mem_kind)k), (int64_t)stats.peak[k]);
    tp_json_w_end(w, '}');
    tp_json_w_put_i64(w, "activation_live_peak_bytes",
                      (int64_t)plan->session.activation_live_bytes);
    tp_json_w_end(w, '}');
}

static void put_time(trainer *t, tp_json_w *w)
{
    double wall = (double)tp_phases_wall(&t->phases) * 1e-9;
    tp_json_w_put_begin(w, "time", '{');
    tp_json_w_put_known(w, "wall_s", wall);
    tp_json_w_put_known(w, "planned_step_s", t->plan.step_s);
    tp_json_w_put_known(w, "measured_step_s", tp_trainer_mean_step(t));
    tp_json_w_put_begin(w, "phases_s", '{');
    for (int i = 0; i < TP_TIME_UNACCOUNTED; i++)
        tp_json_w_put_known(w, tp_time_name((tp_time_phase)i), (double)t->phases.ns[i] * 1e-9);
    tp_json_w_end(w, '}');
    tp_json_w_put_known(w, "unaccounted_s", (double)t->phases.ns[TP_TIME_UNACCOUNTED] * 1e-9);
    tp_json_w_put_known(w, "waited_for_data_s",
                        t->loader ? tp_loader_get_stats(t->loader).waited_s : NAN);
    tp_json_w_end(w, '}');
}

static void put_throughput(trainer *t, tp_json_w *w)
{
    double s = t->step_phase_s > 0 ? t->step_phase_s : NAN;
    tp_json_w_put_begin(w, "throughput", '{');
    tp_json_w_put_known(w, "trained_tokens_per_s", (double)t->trained_tokens / s);
    tp_json_w_put_known(w, "data_tokens_per_s", (double)t->used_tokens / s);
    tp_json_w_put_known(w, "padded_tokens_per_s", (double)(t->used_tokens + t->padded_tokens) / s);
    double all = (double)(t->used_tokens + t->padded_tokens);
    tp_json_w_put_known(w, "padding_ratio", all > 0 ? (double)t->padded_tokens / all : NAN);
    if (t->o->algorithm == TP_ALGORITHM_GRPO)
        tp_json_w_put_known(w, "generated_tokens_per_s",
                            t->generation_s > 0 ? (double)t->generated_tokens / t->generation_s
                                                : NAN);
    tp_json_w_end(w, '}');
    tp_json_w_put_known(w, "mfu", model_flops_utilization(t, t->model_flops, s));
    tp_json_w_put_str(w, "mfu_formula", mfu_formula);
}

static void put_result(trainer *t, tp_json_w *w)
{
    tp_json_w_put_begin(w, "result", '{');
    if (t->n_recent) /* "NaN" is what the last step had */
        tp_json_w_put_f64(w, "loss", t->last_loss);
    else
        tp_json_w_put_known(w, "loss", t->last_loss);
    if (t->a->result)
        t->a->result(t, w);
    tp_json_w_put_i64(w, "trained_tokens", t->state.tokens);
    tp_json_w_put_i64(w, "skipped_steps", t->state.skipped);
    tp_json_w_put_i64(w, "last_checkpoint_step", t->last_checkpoint_step);
    tp_json_w_end(w, '}');
}

tp_status tp_trainer_write_run_json(trainer *t, const char *state, tp_error *err)
{
    tp_buf out = {0};
    tp_json_w w;
    tp_json_w_init(&w, &out, 2);
    tp_json_w_begin(&w, '{');
    put_identity(t, &w, state);
    tp_attempt_put(t, state, &w);
    put_memory(t, &w);
    put_time(t, &w);
    put_throughput(t, &w);
    put_result(t, &w);
    tp_json_w_key(&w, "custom_metrics");
    tp_custom_write(&t->custom, &w);
    tp_json_w_end(&w, '}');
    tp_buf_addc(&out, '\n');
    tp_status status = tp_run_write(t->run, "run.json", &out, err);
    tp_buf_release(&out);
    return status;
}
