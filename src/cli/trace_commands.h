/* trace_commands.h - the commands below `temper trace`; argv[0] is their own name. */
#ifndef TP_CLI_TRACE_COMMANDS_H
#define TP_CLI_TRACE_COMMANDS_H

int tp_trace_compare_command(int argc, char **argv);
int tp_trace_export_command(int argc, char **argv);
int tp_trace_stats_command(int argc, char **argv);

#endif
