/* check.c - the stages of a run's opening, each told apart: for `temper doctor`. */
#include "engine/train/trainer_internal.h"

typedef struct {
    void (*report)(void *user, const tp_train_finding *finding);
    void *user;
} reporter;

static void tell(const reporter *r, const char *what, tp_found found, const char *text)
{
    r->report(r->user, &(tp_train_finding){what, found, text});
}

static const char *missing(unsigned needs)
{
    static const char *const words[] = {
        "a model",   "a run folder",       "a tokenizer", "its data",        "an environment",
        "its steps", "the memory planned", "the weights", "a plan that fits"};
    for (int i = 0; i < (int)(sizeof words / sizeof *words); i++)
        if (needs & (1u << i))
            return words[i];
    return "";
}

static void open_stage(trainer *t, const tp_trainer_stage *s, unsigned *had, const reporter *r)
{
    tp_error err = {0};
    TP_OWN(tp_buf) text = {0};
    if (s->open(t, &err) != TP_OK) {
        tell(r, s->name, TP_FOUND_FAILED, err.message);
        return;
    }
    *had |= s->gives;
    if (s->describe) {
        s->describe(t, &text);
        tell(r, s->name, TP_FOUND_OK, tp_buf_str(&text));
    }
}

static void check_stage(trainer *t, const tp_trainer_stage *s, unsigned *had, const reporter *r)
{
    unsigned lacking = s->needs & ~*had;
    char text[100];
    snprintf(text, sizeof text, "not looked at: that takes %s", missing(lacking));
    if (!lacking)
        open_stage(t, s, had, r);
    else if (s->describe)
        tell(r, s->name, TP_FOUND_UNKNOWN, text);
}

void tp_train_check(tp_config *config, const tp_train_options *options, const tp_train_hooks *hooks,
                    void (*report)(void *user, const tp_train_finding *finding), void *user)
{
    trainer t = tp_trainer_of(config, options, hooks);
    tp_trainer_stage stages[TP_STAGES];
    reporter r = {report, user};
    unsigned had = 0;
    t.only_checks = true;
    tp_phases_start(&t.phases, TP_TIME_SETUP);
    int n = tp_trainer_stages(&t, stages);
    for (int i = 0; i < n && !tp_trainer_should_stop(&t); i++)
        check_stage(&t, &stages[i], &had, &r);
    tp_trainer_close(&t);
}
