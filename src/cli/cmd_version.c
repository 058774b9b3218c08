#include "base/cpu.h"
#include "cli/cli.h"
#include "text/json/json.h"

static const tp_flag flags[] = {{.name = "json", .doc = "as JSON", .type = TP_FLAG_BOOL}, {0}};

int tp_cmd_version(int argc, char **argv)
{
    bool json = false;
    char *words[argc + 1];
    const tp_usage usage = {.command = "version",
                            .arguments = "",
                            .summary = "Version, compiler and instruction sets.",
                            .flags = flags};
    int n = tp_cli_parse(&usage, argc, argv, &json, words);
    if (n < 0)
        return n == -2 ? 0 : 2;
    const char *isa = tp_isa_name(tp_cpu_detect());
    if (!json) {
        printf("temper %s (compiler %s; this machine: %s, %s)\n", TEMPER_VERSION, __VERSION__,
               tp_cpu_model(), isa);
        return 0;
    }
    tp_buf out = {0};
    tp_json_w w;
    tp_json_w_init(&w, &out, 2);
    tp_json_w_begin(&w, '{');
    const char *const pairs[][2] = {{"version", TEMPER_VERSION},
                                    {"compiler", __VERSION__},
                                    {"cpu", tp_cpu_model()},
                                    {"isa", isa}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        tp_json_w_put_str(&w, pairs[i][0], pairs[i][1]);
    tp_json_w_end(&w, '}');
    puts(tp_buf_str(&out));
    tp_buf_release(&out);
    return 0;
}
