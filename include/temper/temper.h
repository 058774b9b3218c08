/* temper.h - the whole library in one include.
 *
 *     error.h, version.h, log.h   what everything shares
 *     text.h, terminal.h          numbers and text of strangers, for people
 *     program.h, exit_status.h    for the program around the library
 *     tokenizer.h, chat.h         text and token ids
 *     model.h, generator.h        a model folder, and text from it
 *     evaluate.h                  questions for a model, and what the answers are worth
 *     config.h, doctor.h          a configuration resolved; machine, runs: is all sound?
 *     plan.h, train.h             a training configuration: what it costs, running it
 *     trace.h                     what ran when, on which thread
 *     profile.h                   where a step's time and memory go
 *     trace_report.h              where time and memory went, from traces of any tool
 *     stats.h                     what numbers say, and how surely
 *     bench.h                     measure and compare speed and memory
 *     experiment.h                what each lever gives on this machine and model
 *     analysis.h                  what runs recorded, whoever ran them
 *     import.h                    configurations of NeMo RL, TRL and Axolotl as recipes
 *     runs.h, serve.h             all runs of a folder: a list, a local page
 *     monitor.h                   alarms over a run, live or over
 *     environment.h               for judges of answers that are libraries of their own */
#ifndef TEMPER_TEMPER_H
#define TEMPER_TEMPER_H

#include "temper/analysis.h"
#include "temper/bench.h"
#include "temper/cache.h"
#include "temper/chat.h"
#include "temper/config.h"
#include "temper/doctor.h"
#include "temper/environment.h"
#include "temper/error.h"
#include "temper/evaluate.h"
#include "temper/exit_status.h"
#include "temper/experiment.h"
#include "temper/generator.h"
#include "temper/import.h"
#include "temper/levers.h"
#include "temper/log.h"
#include "temper/model.h"
#include "temper/monitor.h"
#include "temper/plan.h"
#include "temper/plugin.h"
#include "temper/profile.h"
#include "temper/program.h"
#include "temper/runs.h"
#include "temper/serve.h"
#include "temper/simulate.h"
#include "temper/stats.h"
#include "temper/terminal.h"
#include "temper/text.h"
#include "temper/tokenizer.h"
#include "temper/trace.h"
#include "temper/trace_report.h"
#include "temper/train.h"
#include "temper/version.h"

#endif
