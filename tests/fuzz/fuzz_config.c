/* fuzz_config.c - overrides and interpolations: each line of the input is one word
 * of the command line. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "override_lines.h"
#include "text/yaml/yaml.h"

typedef struct {
    const char *text;
    int64_t count;
    double rate;
    tp_f64_list betas;
    tp_str_list names;
    int word;
    bool flag;
    const tp_json *section;
} options;

static const tp_option table[] = {
    {.name = "a.text", .type = TP_OPT_STRING, .offset = offsetof(options, text)},
    {.name = "a.count",
     .type = TP_OPT_INT,
     .offset = offsetof(options, count),
     .default_value = "${mul:${a.b.rate}, 4}",
     .min = -1,
     .max = 1e6},
    {.name = "a.b.rate",
     .type = TP_OPT_FLOAT,
     .offset = offsetof(options, rate),
     .default_value = "0.5",
     .nullable = true},
    {.name = "a.b.betas",
     .type = TP_OPT_FLOAT_LIST,
     .offset = offsetof(options, betas),
     .default_value = "[1, 2]"},
    {.name = "c.names", .type = TP_OPT_STRING_LIST, .offset = offsetof(options, names)},
    {.name = "c.word",
     .type = TP_OPT_ENUM,
     .offset = offsetof(options, word),
     .default_value = "x",
     .choices = "x|yy"},
    {.name = "c.flag",
     .type = TP_OPT_BOOL,
     .offset = offsetof(options, flag),
     .default_value = "true"},
    {.name = "c.only",
     .type = TP_OPT_SECTION,
     .offset = TP_OPT_NOT_STORED,
     .ignored = true,
     .accepted = "false|null|[]|{}|1",
     .when = "c.flag",
     .doc = "A reason."},
    {.name = "s.below",
     .type = TP_OPT_SECTION,
     .offset = TP_OPT_NOT_STORED,
     .default_value = "1",
     .ignored = true,
     .when = "c.flag",
     .doc = "A reason."},
    {.name = "f", .type = TP_OPT_SECTION, .offset = TP_OPT_NOT_STORED, .belongs_to = "others"},
    {.name = "s", .type = TP_OPT_SECTION, .offset = offsetof(options, section), .ignored = true},
};

void try_config(tp_config *config)
{
    enum { N = sizeof table / sizeof *table };
    options o;
    tp_error err = {0};
    if (tp_config_bind(config, table, N, &o, &err) != TP_OK) {
        tp_buf shown = {0};
        if (!err.message[0])
            abort();
        if (tp_config_is_bound(config))
            tp_config_write(config, &shown);
        tp_buf_release(&shown);
        return;
    }
    if (o.word < 0 || o.word > 1 || o.count < -1 || o.count > 1000000)
        abort();
    tp_buf out = {0};
    tp_arena arena;
    const tp_json *again;
    tp_config_write(config, &out);
    if (tp_arena_init(&arena, 64 << 20, &err) == TP_OK) {
        if (tp_yaml_parse(&arena, "config.yaml", out.data, out.len, &again, &err) != TP_OK &&
            out.len < 1 << 16)
            abort();
        tp_arena_release(&arena);
    }
    tp_buf_release(&out);
}
