/* Headrace: runs mixture-of-experts language models that are far larger than memory. Public C interface.
 *
 * Objects. A model is opened from a folder and holds weights, caches and threads; a session is one sequence of tokens
 * in it; a tokenizer turns text into token ids and back, and needs no weights. Handles are opaque. Every handle that a
 * function makes is destroyed by its function below; sessions before their model. Destroying NULL does nothing.
 *
 * Errors. Functions that can fail return a headrace_status, and when `error` is not NULL they fill it. Nothing else is
 * changed by a call that failed, unless its description says so; results that it would have made are NULL and 0.
 *
 * Options. Structs of options and results begin with `struct_size`, which the caller sets to sizeof the struct; in
 * those that callbacks receive the library has set it. They grow at the end only. In options a field of zero always
 * means the default, so `headrace_model_options options = {sizeof options};` is complete. A caller that is newer than
 * the library gets HEADRACE_ARGUMENT when it sets a field that the library does not know.
 *
 * Memory. Text and arrays that a function hands over are freed with headrace_free. Text ends with a zero byte that its
 * length does not count; it may hold other zero bytes. Data passed to a callback lives until the callback returns.
 *
 * Threads. A tokenizer, and the constant functions of a model, may be used from any thread. Of all other calls on one
 * model and its sessions only one may run at a time, from whatever thread: the caller sees to that. (Those that
 * create, change or save a session notice a second call and refuse it with HEADRACE_ARGUMENT; the others do not.)
 * headrace_session_cancel and headrace_model_set_budget are the exceptions. Different models are independent.
 *
 * The library does not print, reads no environment variables, has no global state, writes only where
 * headrace_session_save is told, and does not throw. Results depend on model and token ids only, not on memory,
 * threads, chunk sizes or instruction set.
 */
#ifndef HEADRACE_HEADRACE_H
#define HEADRACE_HEADRACE_H

#include "headrace/chat.h"
#include "headrace/history.h"
#include "headrace/model.h"
#include "headrace/session.h"

#endif /* HEADRACE_HEADRACE_H */
