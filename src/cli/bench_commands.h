/* bench_commands.h - the commands below `temper bench`; argv[0] is their own name. */
#ifndef TP_CLI_BENCH_COMMANDS_H
#define TP_CLI_BENCH_COMMANDS_H

int tp_bench_history_command(int argc, char **argv);

#endif
