/* test_passes.c - what each pass makes of a graph, as text.
 *
 * A file tests/passes/<name>.ir holds cases:
 *
 *     # why this case is here
 *     pass NAME [recompute=MODE] [dtype=bf16] [pack] [ranks=N] [sharded] [bucket=BYTES]
 *               [parts=ROLE]... [node=N] [tensor=I/N] [part=I/N] [rows] [again] [compresses]
 *               [wire=FORMAT] [errors]
 *     in:
 *       <graph>
 *     out:
 *       <graph>              or the one word "unchanged"
 *
 * Only that pass runs.  Graphs are compared after renumbering.  TP_UPDATE_GOLDEN=1
 * writes what came out into the `out:` sections instead of comparing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>

#include "base/files.h"
#include "base/strings.h"
#include "engine/passes/pipeline.h"

enum { MAX_FILES = 64 };

typedef struct {
    const char *path;
    int line; /* of its `pass` line */
    char words[1024];
    tp_buf in, out;
} test_case;

typedef struct {
    const char *path;
    const char *at;
    int line;
    tp_buf rewritten;
    int n_cases, n_failed;
} golden;

static bool take_line(golden *f, char *line, size_t cap)
{
    if (!*f->at)
        return false;
    size_t n = strcspn(f->at, "\n");
    assert_true(n < cap);
    memcpy(line, f->at, n);
    line[n] = 0;
    f->at += n + (f->at[n] == '\n');
    f->line++;
    return true;
}

/* Lines that begin with a blank. */
static void take_section(golden *f, tp_buf *text)
{
    char line[1024];
    while (*f->at == ' ') {
        take_line(f, line, sizeof line);
        tp_buf_addf(text, "%s\n", line + strspn(line, " "));
    }
}

static void parse(const test_case *c, const char *what, const char *text, size_t n, tp_graph *ret)
{
    tp_error err;
    if (tp_graph_parse(what, text, n, ret, &err) == TP_OK)
        return;
    fail_msg("%s:%d: %s", c->path, c->line, err.message);
}

/* References numbered in the order of definition. */
static void print_renumbered(const test_case *c, const tp_graph *g, tp_buf *out)
{
    tp_buf text = {0};
    tp_graph again;
    tp_graph_print(g, &text);
    parse(c, "result", text.data, text.len, &again);
    tp_graph_print(&again, out);
    tp_graph_release(&again);
    tp_buf_release(&text);
}

static bool read_parts(const char *word, tp_graph *g)
{
    tp_role role;
    if (!tp_str_starts(word, "parts=") || !tp_role_parse(word + 6, &role))
        return false;
    g->parts |= 1u << role;
    return true;
}

static void read_options(const test_case *c, const char **ret_pass, tp_pass_options *ret,
                         tp_graph *g)
{
    static char words[1024];
    strcpy(words, c->words);
    *ret = (tp_pass_options){.compute_dtype = TP_DTYPE_F32, .recompute_every = 1};
    *ret_pass = strtok(words, " ");
    for (const char *word; (word = strtok(NULL, " "));) {
        bool is_known =
            (tp_str_starts(word, "recompute=") &&
             tp_recompute_parse(word + 10, &ret->recompute, &ret->recompute_every, NULL) ==
                 TP_OK) ||
            (tp_str_starts(word, "dtype=") && tp_dtype_parse(word + 6, &ret->compute_dtype)) ||
            sscanf(word, "ranks=%d", &ret->ranks) == 1 ||
            sscanf(word, "bucket=%zu", &ret->bucket_bytes) == 1 ||
            sscanf(word, "node=%d", &ret->node) == 1 ||
            sscanf(word, "tensor=%d/%d", &ret->tensor.index, &ret->tensor.count) == 2 ||
            sscanf(word, "part=%d/%d", &ret->part.index, &ret->part.count) == 2 ||
            read_parts(word, g) || sscanf(word, "wire=%d", &ret->wire) == 1 ||
            (strcmp(word, "errors") == 0 && (ret->keeps_errors = true)) ||
            (strcmp(word, "rows") == 0 && (ret->shares_rows = true)) ||
            (strcmp(word, "again") == 0 && (ret->gathers_again = true)) ||
            (strcmp(word, "compresses") == 0 && (ret->compresses = true)) ||
            (strcmp(word, "sharded") == 0 && (ret->shards_optimizer = true)) ||
            (strcmp(word, "pack") == 0 && (g->weights_stay = true));
        if (!is_known)
            fail_msg("%s:%d: '%s' is no option", c->path, c->line, word);
    }
}

static void run_pass(const test_case *c, tp_graph *g)
{
    const char *pass, **disabled;
    size_t n_passes = 0;
    tp_pass_options options;
    tp_error err;
    read_options(c, &pass, &options, g);
    if (!tp_pass_find(pass))
        fail_msg("%s:%d: there is no pass '%s'", c->path, c->line, pass);
    while (tp_pass_pipeline[n_passes])
        n_passes++;
    disabled = calloc(n_passes, sizeof *disabled);
    assert_non_null(disabled);
    for (const tp_pass *const *p = tp_pass_pipeline; *p; p++)
        if (strcmp((*p)->name, pass) != 0)
            disabled[options.n_disabled++] = (*p)->name;
    options.disabled = disabled;
    if (tp_passes_run(&g, 1, &options, &err) != TP_OK)
        fail_msg("%s:%d: %s", c->path, c->line, err.message);
    free(disabled);
}

static void add_indented(tp_buf *out, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        tp_buf_addf(out, "  %.*s\n", (int)n, text);
        text += n + (text[n] == '\n');
    }
}

static void run_case(golden *f, const test_case *c)
{
    tp_graph g;
    tp_buf before = {0}, after = {0}, expected = {0};
    parse(c, "in", c->in.data, c->in.len, &g);
    print_renumbered(c, &g, &before);
    run_pass(c, &g);
    print_renumbered(c, &g, &after);
    bool is_unchanged = strcmp(tp_buf_str(&before), tp_buf_str(&after)) == 0;

    if (strcmp(tp_buf_str(&c->out), "unchanged\n") == 0)
        tp_buf_adds(&expected, tp_buf_str(&before));
    else
        tp_buf_adds(&expected, tp_buf_str(&c->out));
    if (strcmp(tp_buf_str(&expected), tp_buf_str(&after)) != 0) {
        f->n_failed++;
        fprintf(stderr, "%s:%d: expected\n%sgot\n%s\n", c->path, c->line, tp_buf_str(&expected),
                tp_buf_str(&after));
    }
    add_indented(&f->rewritten, is_unchanged ? "unchanged" : tp_buf_str(&after));
    tp_buf_release(&before);
    tp_buf_release(&after);
    tp_buf_release(&expected);
    tp_graph_release(&g);
}

static void expect_line(golden *f, const char *want)
{
    char line[1024] = "";
    take_line(f, line, sizeof line);
    if (strcmp(line, want) != 0)
        fail_msg("%s:%d: expected '%s'", f->path, f->line, want);
    tp_buf_addf(&f->rewritten, "%s\n", line);
}

static void take_case(golden *f, const char *words)
{
    test_case c = {.path = f->path, .line = f->line};
    snprintf(c.words, sizeof c.words, "%s", words);
    expect_line(f, "in:");
    take_section(f, &c.in);
    add_indented(&f->rewritten, tp_buf_str(&c.in));
    expect_line(f, "out:");
    take_section(f, &c.out);
    run_case(f, &c);
    f->n_cases++;
    tp_buf_release(&c.in);
    tp_buf_release(&c.out);
}

static void run_file(void **state)
{
    tp_buf text = {0};
    char line[1024];
    golden f = {.path = *state};
    assert_int_equal(tp_file_read(f.path, 1 << 20, &text, NULL), TP_OK);
    f.at = tp_buf_str(&text);
    while (take_line(&f, line, sizeof line)) {
        tp_buf_addf(&f.rewritten, "%s\n", line);
        if (tp_str_starts(line, "pass "))
            take_case(&f, line + 5);
        else if (line[0] && line[0] != '#')
            fail_msg("%s:%d: expected a comment or 'pass NAME'", f.path, f.line);
    }

    if (getenv("TP_UPDATE_GOLDEN"))
        assert_int_equal(tp_file_write_atomic(f.path, f.rewritten.data, f.rewritten.len, NULL),
                         TP_OK);
    else
        assert_int_equal(f.n_failed, 0);
    assert_true(f.n_cases >= 2); /* one that fires and one that must not */
    tp_buf_release(&f.rewritten);
    tp_buf_release(&text);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct CMUnitTest *)a)->name, ((const struct CMUnitTest *)b)->name);
}

int main(void)
{
    static const char folder[] = TP_SOURCE_DIR "/tests/passes";
    static char paths[MAX_FILES][512];
    struct CMUnitTest tests[MAX_FILES];
    size_t n = 0;
    DIR *dir = opendir(folder);
    if (!dir)
        return 1;
    for (const struct dirent *e; (e = readdir(dir)) && n < MAX_FILES;) {
        if (!tp_str_ends(e->d_name, ".ir"))
            continue;
        snprintf(paths[n], sizeof paths[n], "%s/%s", folder, e->d_name);
        tests[n] = (struct CMUnitTest){
            .name = strrchr(paths[n], '/') + 1, .test_func = run_file, .initial_state = paths[n]};
        n++;
    }
    closedir(dir);
    qsort(tests, n, sizeof *tests, by_name);
    if (n == 0)
        return 1;
    return _cmocka_run_group_tests("passes", tests, n, NULL, NULL);
}
