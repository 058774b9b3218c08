/* config_commands.h - commands of `temper config`. */
#ifndef TP_CLI_CONFIG_COMMANDS_H
#define TP_CLI_CONFIG_COMMANDS_H

int tp_config_import_command(int argc, char **argv);

#endif
