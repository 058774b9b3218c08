/* manual.c - manual pages, in mdoc, from the tables of flags: `temper help --man`.
 *
 * mandoc -T lint asks for lines of at most 80 bytes and for every sentence on a line of its own. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli/pages.h"

enum { LINE = 78 };

/* ---- text ---- */

/* One word as roff takes it; at the beginning of a line '.' and ''' would be requests. */
static size_t put_word(const char *word, size_t n, bool begins_line)
{
    size_t width = 0;
    if (begins_line && (*word == '.' || *word == '\''))
        width += (size_t)printf("\\&");
    for (size_t i = 0; i < n; i++)
        switch (word[i]) {
        case '\\':
            width += (size_t)printf("\\e");
            break;
        case '-':
            width += (size_t)printf("\\-");
            break;
        default:
            putchar(word[i]);
            width++;
        }
    return width;
}

static size_t width_of(const char *word, size_t n)
{
    size_t width = n + 2;
    for (size_t i = 0; i < n; i++)
        width += word[i] == '\\' || word[i] == '-';
    return width;
}

static bool ends_sentence(const char *word, size_t n)
{
    while (n > 0 && strchr(")'\"]", word[n - 1]))
        n--;
    return n > 0 && strchr(".!?", word[n - 1]);
}

static void put_prose(const char *text, size_t n)
{
    size_t column = 0;
    bool begins = true;
    for (size_t i = 0; i < n;) {
        if (text[i] == ' ') {
            i++;
            continue;
        }
        size_t end = i;
        while (end < n && text[end] != ' ')
            end++;
        if (!begins && column + 1 + width_of(text + i, end - i) > LINE) {
            putchar('\n');
            begins = true;
        }
        if (!begins)
            putchar(' ');
        column = begins ? 0 : column + 1;
        column += put_word(text + i, end - i, begins);
        begins = ends_sentence(text + i, end - i);
        if (begins)
            putchar('\n');
        i = end;
    }
    if (!begins)
        putchar('\n');
}

static void put_text(const char *text) { put_prose(text, strlen(text)); }

/* A line that is set in columns. */
static bool is_set(const char *line, size_t n)
{
    for (size_t i = 0; i + 3 <= n; i++)
        if (memcmp(line + i, "   ", 3) == 0)
            return true;
    return n > 0 && *line == ' ';
}

/* Paragraphs, and lines in columns as they are. */
static void put_details(const char *text)
{
    bool in_display = false, wants_paragraph = true;
    while (*text) {
        size_t n = strcspn(text, "\n");
        bool set = is_set(text, n);
        if (in_display && !set) {
            printf(".Ed\n");
            in_display = false;
        }
        if (set && !in_display) {
            printf(".Bd -literal -offset indent\n");
            in_display = true;
        }
        if (n == 0)
            wants_paragraph = true;
        else if (!set && wants_paragraph)
            printf(".Pp\n");
        wants_paragraph = wants_paragraph && (n == 0 || set);
        if (set) {
            put_word(text, n, true);
            putchar('\n');
        } else {
            put_prose(text, n);
        }
        text += n + (text[n] == '\n');
    }
    if (in_display)
        printf(".Ed\n");
}

/* ---- sections ---- */

static void put_name(const char *name)
{
    for (const char *p = name; *p; p++)
        putchar(*p == ' ' ? '-' : *p);
}

/* The first part of a sentence, which is no sentence of its own. */
static void put_subject(const char *summary) { put_prose(summary, strcspn(summary, ".:;?\n")); }

static void put_head(const char *name, const char *summary)
{
    printf(".\\\" Made by 'temper help --man' from the tables of options of %s.\n"
           ".Dd %s\n.Dt ",
           TEMPER_VERSION, TEMPER_DATE);
    for (const char *p = name; *p; p++)
        putchar(*p == ' ' ? '-' : toupper((unsigned char)*p));
    printf(" 1\n.Os\n.Sh NAME\n.Nm ");
    put_name(name);
    printf("\n.Nd ");
    put_subject(summary);
}

static void put_flag(const tp_flag *f)
{
    printf(".It ");
    if (f->letter)
        printf("Fl %c , ", f->letter);
    printf("Fl \\-%s", f->name);
    if (f->argument)
        printf(" Ns = Ns Ar \"%s\"", f->argument);
    putchar('\n');
    put_text(f->doc);
}

static void put_flags(const tp_flag *flags)
{
    static const tp_flag help = {.name = "help", .letter = 'h', .doc = "these options, in short"};
    printf(".Sh OPTIONS\n.Bl -tag -width Ds\n");
    for (const tp_flag *f = flags; f->name; f++)
        put_flag(f);
    put_flag(tp_cli_color_flag());
    put_flag(&help);
    printf(".El\n");
}

/* Each way to call it. */
static void put_synopsis(const char *name, const char *arguments)
{
    printf(".Sh SYNOPSIS\n");
    do {
        size_t n = strcspn(arguments, "\n");
        printf(".Nm temper %s\n.Op Ar option ...\n", name);
        if (n)
            put_prose(arguments, n);
        arguments += n + (arguments[n] == '\n');
    } while (*arguments);
}

static void put_exit_status(void)
{
    printf(".Sh EXIT STATUS\n.Bl -tag -width Ds\n");
#define EXIT(name, number, meaning) \
    printf(".It %d\n", number);     \
    put_text(meaning);
#include "temper/exit_status.def"
#undef EXIT
    printf(".It %d + N\nstopped by signal N\n.El\n", TP_EXIT_SIGNAL);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "temper", "temper-ablate" ... in the order of the alphabet, which mandoc asks for: of everything,
 * or of a command and its parts; not of the page itself. */
static void put_see_also(const char *command, const char *own)
{
    char names[128][64], *sorted[128];
    size_t n = 0;
    printf(".Sh SEE ALSO\n");
    snprintf(names[n++], sizeof *names, "temper");
    for (size_t i = 0; i < tp_n_commands && n < 64; i++)
        if (!command || strcmp(command, tp_commands[i].name) == 0)
            snprintf(names[n++], sizeof *names, "temper-%s", tp_commands[i].name);
    for (size_t k = 0; k < tp_n_command_parts && n < 128; k++)
        if (tp_command_parts[k].usage && command &&
            strcmp(tp_command_parts[k].command, command) == 0)
            snprintf(names[n++], sizeof *names, "temper-%s-%s", command, tp_command_parts[k].part);
    size_t n_shown = 0;
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], own) != 0)
            sorted[n_shown++] = names[i];
    qsort(sorted, n_shown, sizeof *sorted, compare_names);
    for (size_t i = 0; i < n_shown; i++)
        printf(".Xr %s 1%s\n", sorted[i], i + 1 < n_shown ? " ," : "");
}

static void put_page(const tp_usage *usage, const tp_command *command)
{
    char name[64];
    bool is_part = strcmp(usage->command, command->name) != 0;
    snprintf(name, sizeof name, "temper %s", usage->command);
    put_head(name, is_part ? usage->summary : command->summary);
    put_synopsis(usage->command, usage->arguments);
    printf(".Sh DESCRIPTION\n");
    put_text(usage->summary);
    if (usage->details)
        put_details(usage->details);
    put_flags(usage->flags);
    put_exit_status();
    for (char *p = name; *p; p++)
        *p = *p == ' ' ? '-' : *p;
    put_see_also(command->name, name);
}

/* ---- temper itself ---- */

static void put_variables(void)
{
    static const struct {
        const char *name, *meaning;
    } variables[] = {
        {"COLUMNS", "width of what is printed, in place of the terminal's"},
        {"NO_COLOR", "no colours, unless --color=always"},
        {"TEMPER_ISA", "highest instruction set to use, as --isa"},
        {"TEMPER_RUNS", "folder of new runs (runs)"},
        {"XDG_CACHE_HOME", "in its folder temper: tokenised data, and what was measured of this "
                           "machine (~/.cache)"},
        {"XDG_DATA_HOME", "in its folder temper: the history of benchmarks (~/.local/share)"}};
    printf(".Sh ENVIRONMENT\n.Bl -tag -width XDG_CACHE_HOME\n");
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        printf(".It Ev %s\n", variables[i].name);
        put_text(variables[i].meaning);
    }
    printf(".El\n");
}

static void put_temper(void)
{
    put_head("temper", "post-train transformer language models, and measure it");
    printf(".Sh SYNOPSIS\n.Nm\n.Ar command\n.Op Ar option ...\n.Op Ar argument ...\n"
           ".Sh DESCRIPTION\n");
    put_text("Temper fine-tunes Hugging Face language models on the processor, says what a run "
             "needs before it runs and where its time went, and reads the traces and records of "
             "other trainers. Each command has a manual page of its own, and says its options "
             "with --help.");
    printf(".Bl -tag -width tokenizer\n");
    for (size_t i = 0; i < tp_n_commands; i++) {
        printf(".It Cm %s\n", tp_commands[i].name);
        put_text(tp_commands[i].summary);
    }
    printf(".El\n");
    put_variables();
    printf(".Sh FILES\n.Bl -tag -width Ds\n.It Pa share/temper/recipes\n");
    put_text("beside the folder of the program: recipes, found by their names, as in 'temper train "
             "demo'");
    printf(".It Pa runs\n");
    put_text("folders of runs, one each");
    printf(".El\n");
    put_exit_status();
    printf(".Sh EXAMPLES\n");
    put_text("From nothing to sums, in a minute or two, and ask it one:");
    printf(
        ".Bd -literal -offset indent\ntemper train demo\ntemper generate runs/demo 12+34=\n.Ed\n");
    put_see_also(NULL, "temper");
}

void tp_print_manual(const tp_command *command, const char *part)
{
    const tp_command_part *found = part ? tp_command_find_part(command->name, part) : NULL;
    if (command)
        put_page(found && found->usage ? found->usage : command->usage, command);
    else
        put_temper();
}
