#include <argp.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

enum { FIRST_KEY = 0x1000, MAX_FLAGS = 40, STATUS_HELP = -2, STATUS_BAD = -1 };

typedef struct {
    const tp_usage *usage;
    char *target;
    char **words;
    int n_words;
    bool failed;
} parse;

static bool store(parse *p, const tp_flag *flag, const char *text)
{
    void *field = p->target + flag->offset;
    switch (flag->type) {
    case TP_FLAG_BOOL:
        *(bool *)field = true;
        return true;
    case TP_FLAG_STRING:
        *(const char **)field = text;
        return true;
    case TP_FLAG_INT:
        return tp_str_to_i64(text, field);
    case TP_FLAG_FLOAT:
        return tp_str_to_f64(text, field);
    }
    return false;
}

static error_t on_key(int key, char *text, struct argp_state *state)
{
    parse *p = state->input;
    if (key == ARGP_KEY_ARG) {
        p->words[p->n_words++] = text;
        return 0;
    }
    if (key == '?') {
        argp_state_help(state, stdout, ARGP_HELP_LONG | ARGP_HELP_DOC | ARGP_HELP_PRE_DOC |
                                           ARGP_HELP_USAGE | ARGP_HELP_POST_DOC);
        p->n_words = STATUS_HELP;
        return ECANCELED;
    }
    for (int i = 0; p->usage->flags[i].name; i++) {
        const tp_flag *flag = &p->usage->flags[i];
        if (key != FIRST_KEY + i && !(flag->letter && key == flag->letter))
            continue;
        if (store(p, flag, text))
            return 0;
        fprintf(stderr, "temper %s: --%s takes a number, not '%s'\n", p->usage->command, flag->name,
                text);
        p->failed = true;
        return EINVAL;
    }
    return ARGP_ERR_UNKNOWN;
}

static void fill_options(const tp_usage *usage, struct argp_option *options)
{
    int i = 0;
    for (; usage->flags[i].name; i++)
        options[i] = (struct argp_option){.name = usage->flags[i].name,
                                          .key = usage->flags[i].letter ? usage->flags[i].letter
                                                                        : FIRST_KEY + i,
                                          .arg = usage->flags[i].argument,
                                          .doc = usage->flags[i].doc};
    options[i] = (struct argp_option){.name = "help", .key = '?', .doc = "this text"};
}

int tp_cli_parse(const tp_usage *usage, int argc, char **argv, void *target, char **ret_words)
{
    struct argp_option options[MAX_FLAGS + 2] = {0};
    char name[64], doc[4096];
    fill_options(usage, options);
    snprintf(doc, sizeof doc, "%s%s%s", usage->summary, usage->details ? "\v" : "",
             usage->details ? usage->details : "");
    snprintf(name, sizeof name, "temper %s", usage->command);
    struct argp argp = {
        .options = options, .parser = on_key, .args_doc = usage->arguments, .doc = doc};
    parse p = {.usage = usage, .target = target, .words = ret_words};
    char *first = argv[0];
    argv[0] = name;
    error_t status = argp_parse(&argp, argc, argv, ARGP_NO_EXIT | ARGP_NO_HELP, NULL, &p);
    argv[0] = first;
    if (p.n_words == STATUS_HELP)
        return STATUS_HELP;
    if (status || p.failed)
        return STATUS_BAD;
    if (p.n_words < usage->min_words || (usage->max_words >= 0 && p.n_words > usage->max_words)) {
        fprintf(stderr, "temper %s: expected %s; see 'temper help %s'\n", usage->command,
                usage->arguments, usage->command);
        return STATUS_BAD;
    }
    return p.n_words;
}

int tp_cli_exit_status(tp_status status)
{
    switch (status) {
    case TP_OK:
        return 0;
    case TP_ERR_NOMEM:
        return 5;
    case TP_ERR_NUMERIC:
        return 6;
    case TP_ERR_INTERRUPTED:
        return 130;
    default:
        return 2;
    }
}

int tp_cli_fail(const tp_error *err)
{
    fflush(stdout);
    fprintf(stderr, "temper: %s\n", err->message);
    return tp_cli_exit_status(err->status);
}

bool tp_cli_colour(FILE *out)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(fileno(out)) && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
}
