/* folder_lock.h - a folder belongs to one process at a time: flock on its .lock.  The lock ends
 * with the process, however it ends. */
#ifndef TP_ENGINE_CHECKPOINT_FOLDER_LOCK_H
#define TP_ENGINE_CHECKPOINT_FOLDER_LOCK_H

#include "base/error.h"

/* The folder exists.  *ret_fd is closed to let go.  `remedy` ends the sentence about a folder
 * that another process has. */
TP_CHECKED tp_status tp_folder_lock(const char *folder, const char *remedy, int *ret_fd,
                                    tp_error *err);
/* Whether it would be refused now; nothing is left there.  The folder may be missing. */
TP_CHECKED tp_status tp_folder_lock_check(const char *folder, const char *remedy, tp_error *err);

#endif
