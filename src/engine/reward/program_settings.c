/* program_settings.c - the rows of env.<name> for a program; `temper eval --keys` prints them. */
#include "engine/reward/program_settings.h"

#include "config/option_rows.h"

/* clang-format off */
#define HOLDER tp_program_settings
#define HOLDER_AT 0
const tp_option tp_program_rows[TP_PROGRAM_ROWS] = {
    TEXTS("command", command, "\?\?\?", "The program and its arguments, [python3, judge.py]; one text goes to the shell.")
    REAL("timeout", timeout, "10.0", 0.001, 86400, "Seconds for one answer.")
    REAL("grace", grace, "1.0", 0, 86400, "Seconds more, without new questions, before a late program is killed.")
    COUNT("in_flight", in_flight, "1", 1, TP_PROGRAM_MOST_IN_FLIGHT, "Questions that one program has at a time; it may answer them in any order.")
    COUNT("retries", retries, "1", 0, 100, "Times that a question is asked again after the program died over it.")
    REAL("backoff", backoff, "0.05", 0, 60, "Seconds before a second start in a row; doubled each time, to 0.5 at most.")
    COUNT("max_failures", max_failures, "20", 1, 1e6, "Programs lost in a row, without one verdict between, that end the run.")
    COUNT("max_line_bytes", max_line_bytes, "1048576", 1024, 1 << 26, "Longest answer; a program that says more than 16 times this without a verdict is killed.")
};
/* clang-format on */
