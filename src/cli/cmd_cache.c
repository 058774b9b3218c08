/* cmd_cache.c - `temper cache`: tokenised data that is kept between runs, and cleaning up. */
#include "cli/commands.h"
#include "temper/cache.h"

typedef struct {
    bool json, clear;
    const char *folder, *limit;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("json", 0, json, "{\"folder\", \"bytes\", \"files\": [...]}"),
    TP_TEXT("limit", 0, "SIZE", limit,
            "delete what was not used for longest beyond 5GiB or the like"),
    TP_SWITCH("clear", 0, clear, "delete all of it"),
    TP_TEXT("dir", 0, "DIR", folder, "a data.cache_dir (the user's cache folder)"),
    {0}};

static int trim(const flags *f)
{
    char bytes[32];
    double limit = 0;
    uint64_t n, freed;
    tp_error err = {0};
    if (f->limit && !f->clear && !tp_str_to_bytes(f->limit, &limit))
        return tp_cli_refuse("cache", "--limit is a size such as 5GiB, not '%s'", f->limit);
    if (tp_token_cache_trim(f->folder, limit, &n, &freed, &err) != TP_OK)
        return tp_cli_fail(&err);
    tp_waiting_end();
    fprintf(stderr, "deleted %llu cache%s, %s\n", (unsigned long long)n, n == 1 ? "" : "s",
            tp_human_bytes((double)freed, bytes));
    return 0;
}

static int execute(const void *given, char **words, int n)
{
    const flags *f = given;
    (void)words, (void)n;
    char *text = NULL;
    tp_error err = {0};
    tp_waiting_begin("temper cache: looking");
    int status = f->clear || f->limit ? trim(f) : 0;
    if (status != 0)
        return status;
    tp_status done =
        tp_token_cache_text(f->folder, tp_cli_form(f->json, false, false), &text, &err);
    return tp_cli_print(done, text, &err);
}

const tp_usage tp_usage_cache = {
    .command = "cache",
    .arguments = "",
    .summary = "Tokenised data that is kept between runs: what there is, and cleaning up.",
    .flags = flag_table,
    .details = "Runs keep to data.cache_limit by themselves.  What is deleted is made again "
               "when it is needed; a run that has it open goes on.",
    .max_words = 0,
    .size = sizeof(flags),
    .run = execute};
