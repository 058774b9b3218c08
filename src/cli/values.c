/* values.c - fractions, times and sizes on the command line. */
#include "cli/cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "temper/text.h"

bool tp_cli_fraction(const char *text, double *ret)
{
    char number[64];
    size_t n = strlen(text);
    bool percent = n > 0 && text[n - 1] == '%';
    double v;
    snprintf(number, sizeof number, "%.*s", (int)(n - percent), text);
    if (n >= sizeof number || !tp_str_to_f64(number, &v) || !(v >= 0))
        return false;
    v = percent ? v / 100 : v;
    if (v >= 1)
        return false;
    *ret = v;
    return true;
}

bool tp_cli_time(const char *text, double *ret)
{
    char *end;
    double v = strtod(text, &end);
    double scale = strcmp(end, "") == 0 || strcmp(end, "s") == 0 ? 1
                   : strcmp(end, "ms") == 0                      ? 1e-3
                   : strcmp(end, "m") == 0                       ? 60
                   : strcmp(end, "h") == 0                       ? 3600
                                                                 : NAN;
    *ret = v * scale;
    return end != text && *ret > 0 && *ret < 1e7;
}

bool tp_cli_bytes(const char *text, uint64_t *ret)
{
    static const char units[] = "KMG";
    char *end;
    *ret = 0;
    double value = strtod(text, &end);
    if (end == text || !(value > 0))
        return false;
    const char *unit = *end ? strchr(units, *end >= 'a' ? *end - 32 : *end) : NULL;
    if (unit) {
        for (const char *u = units; u <= unit; u++)
            value *= 1024;
        end++;
        end += strncmp(end, "iB", 2) == 0 ? 2 : 0;
    }
    end += *end == 'B';
    *ret = value < 1e15 ? (uint64_t)value : 0;
    return *end == 0 && *ret > 0;
}
