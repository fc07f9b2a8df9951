/* Headrace: what a session does with its past. Part of headrace.h, which includes it and says what holds for all of it.
 */
#ifndef HEADRACE_HISTORY_H
#define HEADRACE_HISTORY_H

#include "headrace/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The sequence; free with headrace_free. */
HEADRACE_API headrace_status headrace_session_ids(const headrace_session* session, int32_t** ids, size_t* id_count,
                                                  headrace_error* error);

/** Starts another session with the same sequence. The two go on independently, each as if it were alone.
 * HEADRACE_BUDGET when the budget has no room for one more. */
HEADRACE_API headrace_status headrace_session_branch(headrace_session* session, headrace_session** branch,
                                                     headrace_error* error);

/** Back to the first `token_count` tokens. Computes nothing: the session goes back to the last copy of its state at or
 * before them, or to the empty sequence, and the next call runs the tokens between again. What follows has the same
 * bits as in a session that never went further. HEADRACE_ARGUMENT when the sequence has fewer tokens. */
HEADRACE_API headrace_status headrace_session_rewind(headrace_session* session, size_t token_count,
                                                     headrace_error* error);

/** Rewinds to the longest prefix that the sequence shares with `ids`, which are what the caller wants it to be. Sets
 * `kept_count` to its length: the caller appends the ids after it. */
HEADRACE_API headrace_status headrace_session_keep_prefix(headrace_session* session, const int32_t* ids,
                                                          size_t id_count, size_t* kept_count, headrace_error* error);

/** Asks for memory for up to `count` (at most 64) copies of the state, so that rewinding need not run everything again;
 * 0 gives it back. `granted_count` is how many there are then (may be NULL): all sessions together get no more than an
 * eighth of what the budget has above the floor, and lose them when it becomes smaller. From then on the session keeps
 * its state before and after each prompt, and on the way through long prompts and answers; when all places are taken,
 * the newest and spaced ones stay. For sessions that are going to be edited: a copy takes 43 MiB with Kimi-Linear and
 * 444 MiB with Kimi K3, which experts and layers give. */
HEADRACE_API headrace_status headrace_session_keep_copies(headrace_session* session, size_t count,
                                                          size_t* granted_count, headrace_error* error);

/** Keeps the state as it is now in a copy that outlives those that the session keeps by itself; when all places hold
 * marked ones, the newest and spaced ones stay. HEADRACE_ARGUMENT when there is room for none. */
HEADRACE_API headrace_status headrace_session_mark(headrace_session* session, headrace_error* error);

/** Writes sequence and state to the file `path` (UTF-8), which only its owner can read: as a whole or not at all. When
 * anything fails (HEADRACE_IO) what was there before stays, and nothing else remains. (When only the folder's entry
 * cannot be sent to the drive, the new file is there.) The `note_bytes` bytes at `note`, at most
 * HEADRACE_NOTE_BYTES_MAX, are kept with it as they are: what the program knows of the sequence. */
HEADRACE_API headrace_status headrace_session_save(headrace_session* session, const char* path, const char* note,
                                                   size_t note_bytes, headrace_error* error);
#define HEADRACE_NOTE_BYTES_MAX (16 << 20)

/** Becomes what was saved, and goes on with the same bits under any budget, thread count and instruction set.
 * Everything is checked before anything changes: HEADRACE_FORMAT for a damaged file, HEADRACE_ARGUMENT for one of
 * another model or longer than the context, HEADRACE_UNSUPPORTED for one of a newer version leave the session as it
 * was. (Only if the file changes, or the drive fails, after that, the session needs headrace_session_reset or another
 * load.) Models are told apart by configuration, tensor directory and small tensors: two that differ in large matrices
 * alone are not. Allowed after a call that failed. `note` receives the note, to be freed with headrace_free; it and
 * `note_bytes` may be NULL together. */
HEADRACE_API headrace_status headrace_session_load(headrace_session* session, const char* path, char** note,
                                                   size_t* note_bytes, headrace_error* error);

#ifdef __cplusplus
}
#endif

#endif /* HEADRACE_HISTORY_H */
