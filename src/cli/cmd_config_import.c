/* cmd_config_import.c - `temper config import`: another trainer's configuration as a recipe. */
#include "cli/commands.h"
#include "temper/import.h"

typedef struct {
    bool json, keys, partly;
    const char *from, *algorithm;
    int64_t rows, processes;
    double tokens;
} flags;

static const tp_flag flag_table[] = {
    TP_TEXT("from", 0, "NAME", from, "whose file it is: nemo-rl, trl, axolotl (as its keys say)"),
    TP_TEXT("algorithm", 0, "NAME", algorithm, "sft, dpo, grpo (as its keys say)"),
    TP_NUMBER("rows", 0, "N", INT, rows, 1, 1e12,
              "rows of the training data, for schedules over the whole run (counted, where the "
              "file is here)"),
    TP_NUMBER("tokens", 0, "N", FLOAT, tokens, 1, 1e9,
              "mean length of an example, for batches of packed rows (temper doctor says it)"),
    TP_NUMBER("processes", 0, "N", INT, processes, 1, 1e6,
              "processes that the other trainer runs (1): batches are times that"),
    TP_SWITCH("partly", 0, partly, "write the recipe although keys are refused or unknown"),
    TP_SWITCH("json", 0, json, "every key with its value, state and remark, and the recipe"),
    TP_SWITCH("doc", 0, keys, "with --from: what becomes of every key there is, as Markdown"),
    {0}};

static int print_keys(const flags *f)
{
    char *text = NULL;
    tp_error err;
    if (!f->from)
        return tp_cli_refuse("config import", "--doc needs --from: nemo-rl, trl or axolotl");
    tp_status status = tp_import_keys(f->from, &text, &err);
    return tp_cli_print(status, text, &err);
}

/* With a file for the recipe the report is what is printed; without, it is on standard error. */
static tp_status report(const tp_imported *imported, const flags *f, bool has_out, tp_error *err)
{
    char *text = NULL;
    tp_status status =
        tp_imported_report(imported, f->json ? TP_FORM_JSON : TP_FORM_TEXT, &text, err);
    if (status == TP_OK)
        fputs(text, f->json || has_out ? stdout : stderr);
    tp_free(text);
    return status;
}

static int run(const flags *f, char **words, int n)
{
    const tp_import_options options = {.size = sizeof options,
                                       .from = f->from,
                                       .algorithm = f->algorithm,
                                       .rows = f->rows,
                                       .tokens = f->tokens,
                                       .processes = f->processes};
    tp_imported *imported = NULL;
    tp_error err, fault;
    tp_waiting_begin("temper config import: reading"); /* rows may have to be counted */
    tp_status opened = tp_imported_open(words[0], &options, &imported, &err);
    tp_waiting_end();
    if (opened != TP_OK)
        return tp_cli_fail(&err);
    tp_status status = report(imported, f, n > 1, &err);
    bool is_sound = status == TP_OK && tp_imported_check(imported, &fault) == TP_OK;
    if (status == TP_OK && (is_sound || f->partly) && (n > 1 || !f->json)) {
        if (n == 1)
            fputc('\n', stderr);
        status = tp_imported_write(imported, n > 1 ? words[1] : "-", &err);
    }
    tp_imported_free(imported);
    if (status != TP_OK)
        return tp_cli_fail(&err);
    if (n > 1 && (is_sound || f->partly))
        fprintf(stderr, "temper config import: wrote %s\n", words[1]);
    if (!is_sound && f->partly)
        fprintf(stderr, "temper config import: left out of the recipe: %s\n", fault.message);
    if (is_sound || f->partly)
        return 0;
    int exit_status = tp_cli_fail(&fault);
    fputs("temper config import: no recipe was written; --partly leaves these keys out of it\n",
          stderr);
    return exit_status;
}

static int execute(const void *given, char **words, int n)
{
    const flags *f = given;
    if (f->keys)
        return print_keys(f);
    if (n == 0)
        return tp_cli_refuse("config import", "expected a FILE; see 'temper help config import'");
    if (!f->json)
        tp_cli_wrap();
    return run(f, words, n);
}

const tp_usage tp_usage_config_import = {
    .command = "config import",
    .arguments = "FILE [OUT.yaml]",
    .summary = "Make a recipe of a configuration for NeMo RL (YAML), TRL (arguments as YAML or "
               "JSON) or Axolotl (YAML), and say key by key what each became.",
    .flags = flag_table,
    .details = "Without OUT.yaml the recipe goes to standard output and the report to standard "
               "error.  Keys that would change the result and that Temper does not have are "
               "refused, all at once (exit status 2, no recipe); defaults of the other trainer "
               "that are not Temper's are written out; ??? is what is still to be set.",
    .max_words = 2,
    .size = sizeof(flags),
    .run = execute};
