/* args.c - options by argp, exit statuses, errors, and what the terminal can do.
 *
 * Two options belong to every command: --help and --color. */
#include <argp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "temper/program.h"

enum { COLOR_KEY = 0x0fff, FIRST_KEY = 0x1000, MAX_FLAGS = 64, STATUS_HELP = -2, STATUS_BAD = -1 };

static const tp_flag color_flag = {.name = "color",
                                   .argument = "WHEN",
                                   .choices = "auto always never",
                                   .doc = "colours: auto (default), always or never",
                                   .type = TP_FLAG_STRING};
static const char *color_when = "auto";

typedef struct {
    const tp_usage *usage;
    char *target;
    char **words;
    int n_words;
    bool failed;
} parse;

/* ---- one flag ---- */

static bool is_in_range(const tp_flag *flag, double v)
{
    return (flag->least == 0 && flag->most == 0) || (v >= flag->least && v <= flag->most);
}

static bool store(parse *p, const tp_flag *flag, const char *text)
{
    void *field = p->target + flag->offset;
    int64_t whole;
    double number;
    switch (flag->type) {
    case TP_FLAG_BOOL:
        *(bool *)field = true;
        return true;
    case TP_FLAG_STRING:
        *(const char **)field = text;
        return true;
    case TP_FLAG_LIST: {
        tp_flag_list *list = field;
        if (list->n == TP_FLAG_MOST || !*text)
            return false;
        list->items[list->n++] = text;
        return true;
    }
    case TP_FLAG_INT:
        if (!tp_str_to_i64(text, &whole) || !is_in_range(flag, (double)whole))
            return false;
        *(int64_t *)field = whole;
        return true;
    case TP_FLAG_FLOAT:
        if (!tp_str_to_f64(text, &number) || !is_in_range(flag, number))
            return false;
        *(double *)field = number;
        return true;
    case TP_FLAG_SHARE:
        if (!tp_cli_fraction(text, &number) || !(number > 0))
            return false;
        *(double *)field = number;
        return true;
    }
    return false;
}

static void print_refusal(const parse *p, const tp_flag *flag, const char *text)
{
    if (flag->type == TP_FLAG_LIST) {
        fprintf(stderr, "temper %s: --%s takes a text that is not empty, at most %d times\n",
                p->usage->command, flag->name, TP_FLAG_MOST);
        return;
    }
    const char *kind = flag->type == TP_FLAG_INT     ? "whole number"
                       : flag->type == TP_FLAG_SHARE ? "share above 0 and below 1 (5%, 0.05)"
                                                     : "number";
    fprintf(stderr, "temper %s: --%s takes a %s", p->usage->command, flag->name, kind);
    if (flag->least != 0 || flag->most != 0)
        fprintf(stderr, " from %.10g to %.10g", flag->least, flag->most);
    fprintf(stderr, ", not '%s'\n", text);
}

static bool set_color(parse *p, const char *when)
{
    static const char *const known[] = {"auto", "always", "never"};
    for (int i = 0; i < 3; i++)
        if (strcmp(when, known[i]) == 0) {
            color_when = known[i];
            return true;
        }
    fprintf(stderr, "temper %s: --color is auto, always or never, not '%s'\n", p->usage->command,
            when);
    p->failed = true;
    return false;
}

static error_t on_key(int key, char *text, struct argp_state *state)
{
    parse *p = state->input;
    if (key == COLOR_KEY)
        return set_color(p, text) ? 0 : EINVAL;
    if (key == ARGP_KEY_ARG) {
        p->words[p->n_words++] = text;
        return 0;
    }
    if (key == 'h') {
        setenv("ARGP_HELP_FMT", "no-dup-args-note", 0);
        argp_state_help(state, stdout,
                        ARGP_HELP_LONG | ARGP_HELP_DOC | ARGP_HELP_PRE_DOC | ARGP_HELP_USAGE |
                            ARGP_HELP_POST_DOC);
        p->n_words = STATUS_HELP;
        return ECANCELED;
    }
    for (int i = 0; p->usage->flags[i].name; i++) {
        const tp_flag *flag = &p->usage->flags[i];
        if (key != FIRST_KEY + i && !(flag->letter && key == flag->letter))
            continue;
        if (store(p, flag, text))
            return 0;
        print_refusal(p, flag, text);
        p->failed = true;
        return EINVAL;
    }
    return ARGP_ERR_UNKNOWN;
}

/* ---- the command line ---- */

/* Options that do not exist, before getopt sees them: it cannot say what was meant, points at
 * options that are not there, and takes abbreviations, on which no script should rest. */

/* "max_tokens" is in "max-new-tokens": its words, in their order. */
static bool has_words(const char *option, const char *name)
{
    while (*name) {
        size_t n = strcspn(name, "-_");
        while (*option && (strcspn(option, "-") != n || strncmp(option, name, n) != 0)) {
            option += strcspn(option, "-");
            option += *option == '-';
        }
        if (!*option)
            return false;
        option += n;
        option += *option == '-';
        name += n;
        name += *name != 0;
    }
    return true;
}

/* The only option with all words of the name; NULL: none, or several. */
static const char *same_words(const tp_usage *usage, const char *name)
{
    const char *found = NULL;
    int n = 0;
    for (const tp_flag *f = usage->flags; f->name && *name; f++)
        if (has_words(f->name, name)) {
            found = f->name;
            n++;
        }
    return n == 1 ? found : NULL;
}

static bool fail_name(const tp_usage *usage, const char *name)
{
    const char *longer = NULL;
    int n_longer = 0;
    tp_nearest near = {.word = name};
    tp_nearest_offer(&near, "help");
    tp_nearest_offer(&near, color_flag.name);
    for (const tp_flag *f = usage->flags; f->name; f++) {
        tp_nearest_offer(&near, f->name);
        if (*name && strncmp(f->name, name, strlen(name)) == 0) {
            longer = f->name;
            n_longer++;
        }
    }
    if (*name && strncmp("help", name, strlen(name)) == 0 && n_longer++ == 0)
        longer = "help";
    const char *meant = n_longer == 1 ? longer : near.best ? near.best : same_words(usage, name);
    const char *setting = meant || !strstr(usage->arguments, "KEY=VALUE") ? ""
                          : strcmp(usage->command, "eval") == 0
                              ? "; settings are written KEY=VALUE, as generation.model_name=DIR"
                              : "; settings are written KEY=VALUE, as policy.model_name=DIR";
    fprintf(stderr, "temper %s: there is no option '--%s'%s%s%s%s; see 'temper help %s'\n",
            usage->command, name, meant ? "; did you mean '--" : "", meant ? meant : "",
            meant ? "'" : "", setting, usage->command);
    return false;
}

/* One word that begins with "--"; *ret_takes: the next one is its value. */
static bool check_name(const tp_usage *usage, const char *word, bool *ret_takes)
{
    char name[64];
    size_t n = strcspn(word + 2, "=");
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name), word + 2);
    *ret_takes = false;
    if (strcmp(name, "help") == 0)
        return true;
    if (strcmp(name, color_flag.name) == 0) {
        *ret_takes = !word[2 + n];
        return true;
    }
    for (const tp_flag *f = usage->flags; f->name; f++) {
        if (strcmp(f->name, name) != 0)
            continue;
        *ret_takes = f->argument && !word[2 + n];
        return true;
    }
    return fail_name(usage, name);
}

/* One word of letters, "-qn5". */
static bool check_letters(const tp_usage *usage, const char *word, bool *ret_takes)
{
    *ret_takes = false;
    for (const char *p = word + 1; *p; p++) {
        const tp_flag *f = usage->flags;
        while (f->name && f->letter != *p)
            f++;
        if (f->name && f->argument) {
            *ret_takes = !p[1]; /* else the rest of the word is the value */
            return true;
        }
        if (!f->name && *p != 'h' && *p != '?') {
            fprintf(stderr, "temper %s: there is no option '-%c'; see 'temper help %s'\n",
                    usage->command, *p, usage->command);
            return false;
        }
    }
    return true;
}

static bool check_options(const tp_usage *usage, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        bool takes = false;
        if (argv[i][0] != '-' || !argv[i][1])
            continue;
        if (argv[i][1] == '-' ? !check_name(usage, argv[i], &takes)
                              : !check_letters(usage, argv[i], &takes))
            return false;
        i += takes;
    }
    return true;
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
    options[i++] = (struct argp_option){.name = color_flag.name,
                                        .key = COLOR_KEY,
                                        .arg = color_flag.argument,
                                        .doc = color_flag.doc};
    options[i++] = (struct argp_option){.name = "help", .key = 'h', .doc = "this text"};
    options[i] = (struct argp_option){.key = '?', .flags = OPTION_ALIAS};
}

int tp_cli_parse(const tp_usage *usage, int argc, char **argv, void *target, char **ret_words)
{
    struct argp_option options[MAX_FLAGS + 4] = {0};
    char name[64], doc[4096];
    if (!check_options(usage, argc, argv))
        return STATUS_BAD;
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
    tp_terminal_colour(tp_cli_colour(stdout));
    if (p.n_words == STATUS_HELP)
        return STATUS_HELP;
    if (status || p.failed)
        return STATUS_BAD;
    if (p.n_words < usage->min_words || (usage->max_words >= 0 && p.n_words > usage->max_words)) {
        const char *wanted = *usage->arguments ? usage->arguments : "no arguments";
        fprintf(stderr, "temper %s: expected %s; see 'temper help %s'\n", usage->command, wanted,
                usage->command);
        return STATUS_BAD;
    }
    return p.n_words;
}

const tp_flag *tp_cli_color_flag(void) { return &color_flag; }

/* Is it data that was asked for? */
static bool asks_for_data(const tp_usage *usage, const void *flags)
{
    static const char *const forms[] = {"json", "csv", "markdown"};
    bool any = false;
    for (const tp_flag *f = usage->flags; f->name; f++)
        for (int i = 0; i < 3; i++)
            any |= f->type == TP_FLAG_BOOL && strcmp(f->name, forms[i]) == 0 &&
                   *(const bool *)((const char *)flags + f->offset);
    return any;
}

int tp_cli_run(const tp_usage *usage, int argc, char **argv)
{
    char *words[argc + 2];
    void *flags = calloc(1, usage->size);
    if (!flags)
        return tp_cli_no_memory();
    if (usage->defaults)
        memcpy(flags, usage->defaults, usage->size);
    int n = tp_cli_parse(usage, argc, argv, flags, words);
    if (n >= 0 && usage->wraps && !asks_for_data(usage, flags))
        tp_cli_wrap();
    int status = n >= 0             ? usage->run(flags, words, n)
                 : n == STATUS_HELP ? TP_EXIT_OK
                                    : TP_EXIT_INPUT;
    free(flags);
    return status;
}

/* ---- the end of a command ---- */

void tp_cli_catch(int signal, void (*handler)(int))
{
    sigaction(signal, &(struct sigaction){.sa_handler = handler, .sa_flags = SA_RESTART}, NULL);
}

int tp_cli_no_memory(void)
{
    return tp_cli_fail(&(tp_error){.status = TP_ERR_NOMEM, .message = "out of memory"});
}

int tp_cli_fail(const tp_error *err)
{
    tp_waiting_end();
    char *message = tp_error_shown(err);
    fflush(stdout);
    fprintf(stderr, "temper: %s\n", message);
    tp_free(message);
    return tp_status_exit(err->status);
}

int tp_cli_refuse(const char *command, const char *fmt, ...)
{
    char message[4096]; /* as one piece, so that it can be wrapped */
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    tp_waiting_end();
    fprintf(stderr, "temper%s%s: %s\n", *command ? " " : "", command, message);
    return TP_EXIT_INPUT;
}

int tp_cli_print(tp_status status, char *text, const tp_error *err)
{
    tp_waiting_end();
    if (status != TP_OK)
        return tp_cli_fail(err);
    if (text)
        fputs(text, stdout);
    tp_free(text);
    return TP_EXIT_OK;
}

int tp_cli_verdict(int exit_status, bool is_worse)
{
    return exit_status == TP_EXIT_OK && is_worse ? TP_EXIT_WORSE : exit_status;
}

bool tp_cli_colour(FILE *out)
{
    const char *no = getenv("NO_COLOR");
    if (strcmp(color_when, "auto") != 0)
        return strcmp(color_when, "always") == 0;
    return tp_cli_terminal(out) && !(no && *no);
}

bool tp_cli_force_isa(const char *name)
{
    tp_error err = {0};
    if (!name || tp_cpu_use_isa(name, &err) == TP_OK)
        return true;
    tp_cli_fail(&err);
    return false;
}

tp_form tp_cli_form(bool json, bool csv, bool markdown)
{
    return json ? TP_FORM_JSON : csv ? TP_FORM_CSV : markdown ? TP_FORM_MARKDOWN : TP_FORM_TEXT;
}
