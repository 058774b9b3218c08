/* record.c - what a run says about itself: events, metrics.jsonl, run.json. */
#include <math.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/log.h"
#include "engine/model/adapter.h"
#include "engine/train/trainer_internal.h"

static const char *const mfu_formula =
    "3 * (2 * P_matmul * tokens + 4 * L * H * D * sum_s s*(s+1)/2) / seconds / peak FLOP/s "
    "(2 in place of 3 for the weights of a frozen base) "
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
    /* A frozen base has no gradient of its own; its adapter has. */
    double adapter = 0, passes = tp_model_has_adapter(model) ? 2 : 3;
    params = tp_model_trained(model, &n);
    for (size_t i = 0; passes < 3 && i < n; i++)
        adapter += params[i].rank == 2 ? (double)params[i].dim[0] * (double)params[i].dim[1] : 0;
    double pairs = 0.5 * (sum_of_squares + (double)tokens);
    double attention = 4.0 * (double)(info->layers * info->heads * info->head_dim) * pairs;
    return passes * 2.0 * (matmul - tables) * (double)tokens +
           3.0 * (2.0 * adapter * (double)tokens + attention);
}

/* What is measured is one process of so many threads; a figure of all of them has as many
 * ceilings. */
static double processes(const trainer *t) { return TP_MAX(t->o->ranks.ranks, 1); }

/* The peak of the unit that multiplies in the run's precision, of this process. */
static double ceiling(const trainer *t)
{
    const tp_machine *m = t->hooks->machine;
    return m ? tp_machine_unit_flops(m, tp_trainer_product_dtype(t->o)) : NAN;
}

static double best_product(const trainer *t)
{
    const tp_machine *m = t->hooks->machine;
    return m ? tp_machine_product_flops(m, tp_trainer_product_dtype(t->o)) : NAN;
}

/* A launch whose operands stay in the caches beats memory's line: its own time is the least. */
double tp_trainer_least_seconds(trainer *t)
{
    const tp_machine *m = t->hooks->machine;
    double sum = 0;
    if (!m)
        return NAN;
    tp_train_event e = tp_trainer_event(t, TP_EVENT_STEP);
    for (int p = 0; p < e.n_programs; p++)
        for (size_t i = 0; i < tp_exec_launch_count(e.programs[p].exec); i++) {
            const tp_launch_info *l = tp_exec_launch(e.programs[p].exec, i);
            double arithmetic = l->done_flops / ceiling(t);
            if (tp_launch_is_counted(l))
                sum += fmin(fmax(arithmetic, l->done_bytes / m->copy_bytes), (double)l->ns * 1e-9);
        }
    return sum;
}

/* NaN where the ceiling is unknown, or so far below the work done that it was measured while
 * the machine was busy with something else. */
static double model_flops_utilization(trainer *t, double flops, double seconds)
{
    double all = processes(t) * ceiling(t), share = flops / seconds / all;
    if (!(share > TP_MOST_SHARE))
        return share;
    tp_error ignored;
    if (!t->has_doubted_ceiling) {
        tp_log(TP_LOG_WARNING, "train",
               "a step did %.3g FLOP/s, more than the %.3g that this machine was measured at, "
               "which must have been busy then: MFU is unknown; %s",
               flops / seconds, all,
               t->hooks->machine->is_measured_again
                   ? "it was measured twice, 'temper doctor' measures with more care"
                   : "the next run measures again");
        (void)!tp_machine_doubt(t->hooks->machine, &ignored);
    }
    t->has_doubted_ceiling = true;
    return NAN;
}

/* ---- metrics ---- */

static double padding_ratio(const step_result *r)
{
    int64_t all = r->used + r->padded;
    return all > 0 ? (double)r->padded / (double)all : 0;
}

/* By what it holds; a kind that this run never had is left out. */
static void put_memory_kinds(tp_metric_bus *bus, const tp_mem_stats *memory)
{
    char name[64];
    for (int k = 0; k < TP_MEM_KINDS; k++) {
        snprintf(name, sizeof name, "memory/kind/%s_bytes", tp_mem_kind_name((tp_mem_kind)k));
        if (memory->peak[k])
            tp_metric_put(bus, name, (double)memory->current[k]);
    }
}

static double epochs(const trainer *t)
{
    if (t->prompts_per_epoch)
        return (double)t->state.prompts / (double)t->prompts_per_epoch;
    return t->steps_per_epoch ? (double)t->state.step / (double)t->steps_per_epoch : NAN;
}

static void publish_step(trainer *t, const step_result *r)
{
    tp_metric_bus *bus = &t->metrics;
    tp_mem_stats memory = tp_trainer_memory(t);
    double mfu = model_flops_utilization(t, r->flops, r->seconds);
    tp_metric_begin(bus, "train", t->state.step);
    tp_metric_put(bus, "train/loss", r->loss);
    tp_metric_put(bus, "train/grad_norm", r->grad_norm);
    tp_metric_put(bus, "train/lr", r->lr);
    tp_metric_put(bus, "train/global_valid_toks", (double)r->trained);
    tp_metric_put(bus, "train/global_valid_seqs", (double)r->sequences);
    tp_metric_put(bus, "train/num_micro_batches", r->n_micro);
    tp_metric_put(bus, "train/padding_ratio", padding_ratio(r));
    tp_metric_put(bus, "train/skipped", r->skipped);
    if (t->wire.plain_bytes > 0)
        tp_metric_put(bus, "train/compression_error", r->wire_error);
    if (r->loss_scale != 0) {
        tp_metric_put(bus, "train/loss_scale", r->loss_scale);
        tp_metric_put(bus, "train/overflow", r->overflowed);
    }
    tp_metric_put(bus, "train/epoch", epochs(t));
    tp_metric_put(bus, "train/data_fingerprint", (double)(r->data_hash >> 11)); /* 53 bits */
    tp_metric_put(bus, "timing/train/total_step_time", r->seconds);
    tp_metric_put(bus, "timing/train/data_processing", r->wait_s);
    tp_metric_put(bus, "performance/samples_per_sec", (double)r->sequences / r->seconds);
    tp_metric_put(bus, "performance/tokens_per_sec", (double)r->used / r->seconds);
    tp_metric_put(bus, "performance/trained_tokens_per_sec", (double)r->trained / r->seconds);
    if (t->custom.own_share > 0) /* NaN: unknown */
        tp_metric_put(bus, "performance/undisturbed_tokens_per_sec",
                      (double)r->used / (r->seconds * t->custom.own_share));
    tp_metric_put(bus, "performance/padded_tokens_per_sec",
                  (double)(r->used + r->padded) / r->seconds);
    tp_metric_put(bus, "performance/model_flops", r->flops);
    if (!isnan(mfu)) { /* otherwise it is unknown */
        tp_metric_put(bus, "train/train_fp_utilization", mfu);
        tp_metric_put(bus, "train/best_product_utilization",
                      r->flops / r->seconds / (processes(t) * best_product(t)));
        tp_metric_put(bus, "train/roofline_share", r->least_s / r->seconds);
    }
    tp_metric_put(bus, "memory/peak_bytes", (double)memory.total_peak);
    tp_metric_put(bus, "memory/allocated_bytes", (double)memory.total_current);
    put_memory_kinds(bus, &memory);
    tp_metric_put(bus, "memory/resident_bytes", t->custom.stats[TP_CUSTOM_RESIDENT].last);
    if (t->custom.stats[TP_CUSTOM_PROCESSOR].n) /* there is a step before */
        tp_metric_put(bus, "system/processor_utilization",
                      t->custom.stats[TP_CUSTOM_PROCESSOR].last);
    for (int m = TP_CUSTOM_ACCELERATOR; m <= TP_CUSTOM_ACCELERATOR_MEMORY; m++)
        if (t->custom.stats[m].n)
            tp_metric_put(bus, tp_custom_name((tp_custom_metric)m), t->custom.stats[m].last);
    if (t->a->record)
        t->a->record(t, r);
    tp_metric_end(bus);
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
    publish_step(t, r);
    tp_train_event e = tp_trainer_event(t, TP_EVENT_STEP);
    e.trained_tokens = r->trained;
    e.used_tokens = r->used;
    e.padded_tokens = r->padded;
    tp_trainer_send(t, &e);
}

void tp_trainer_begin_validation(trainer *t)
{
    tp_metric_begin(&t->metrics, "validation", t->state.step);
}

void tp_trainer_end_validation(trainer *t)
{
    tp_metric_end(&t->metrics);
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
    tp_json_w_put_str(w, "algorithm", t->a->name);
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
    if (t->phases.peak_bytes) {
        tp_json_w_put_i64(w, "peak_resident_bytes", (int64_t)t->phases.peak_bytes);
        tp_json_w_put_str(w, "peak_resident_phase", tp_time_name(t->phases.peak_phase));
        tp_json_w_put_i64(w, "peak_resident_step", t->phases.peak_step);
    }
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
    if (t->a->generates)
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
    if (t->state.loss_scale != 0)
        tp_json_w_put_i64(w, "overflow_steps", t->state.overflows);
    if (t->state.restores)
        tp_json_w_put_i64(w, "restores", t->state.restores);
    tp_json_w_put_i64(w, "last_checkpoint_step", t->last_checkpoint_step);
    tp_json_w_end(w, '}');
}

tp_status tp_trainer_write_run_json(trainer *t, const char *state, tp_error *err)
{
    TP_OWN(tp_buf) out = {0};
    tp_json_w w = tp_json_w_open(&out, 2, '{');
    put_identity(t, &w, state);
    tp_attempt_put(t, state, &w);
    put_memory(t, &w);
    tp_memory_watch_put(t, &w);
    put_time(t, &w);
    put_throughput(t, &w);
    tp_ranks_put(t, &w);
    put_result(t, &w);
    tp_levers_measure(t, &t->levers);
    tp_levers_put(&t->levers, &w);
    tp_json_w_key(&w, "custom_metrics");
    tp_custom_write(&t->custom, &w);
    tp_json_w_close(&w, '}');
    return tp_run_write(t->run, "run.json", &out, err);
}
