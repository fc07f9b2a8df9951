/* Headrace: runs mixture-of-experts language models that are far larger than memory. Public C interface.
 *
 * Objects. A model is opened from a folder and holds weights, caches and threads; a session is one sequence of tokens
 * in it; a tokenizer turns text into token ids and back, and needs no weights. Handles are opaque. Every handle that a
 * function makes is destroyed by its function below; sessions before their model. Destroying NULL does nothing.
 *
 * Errors. Functions that can fail return a headrace_status, and when `error` is not NULL they fill it. Nothing else is
 * changed by a call that failed, unless its description says so; results that it would have made are NULL and 0.
 *
 * Options. Structs begin with `struct_size`, which the caller sets to sizeof the struct. They grow at the end only. A
 * field of zero always means the default, so `headrace_model_options options = {sizeof options};` is complete. A caller
 * that is newer than the library gets HEADRACE_ARGUMENT when it sets a field that the library does not know.
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

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HEADRACE_API __attribute__((visibility("default")))
#else
#define HEADRACE_API
#endif

/* ---- Status and errors ---- */

/** What the caller can do about a failure; the text of the error holds the rest. Values stay, new ones may be added. */
typedef enum headrace_status {
  HEADRACE_OK = 0,
  HEADRACE_ARGUMENT = 1,    /**< The call asks for something impossible: correct it. */
  HEADRACE_BUDGET = 2,      /**< The memory limit is too small: raise it to the number in the message. */
  HEADRACE_FORMAT = 3,      /**< A file is damaged: fetch it again. */
  HEADRACE_UNSUPPORTED = 4, /**< A valid file or request that this build cannot serve. */
  HEADRACE_IO = 5,          /**< A read or write failed: check path and drive. */
  HEADRACE_CANCELLED = 6,   /**< The caller cancelled. */
  HEADRACE_BUG = 7          /**< A bug of the library: please report it. */
} headrace_status;

/** Bytes of an error's text, the final zero counted. Longer messages are cut between characters. */
#define HEADRACE_ERROR_BYTES 1024

/** Filled by a call that fails; untouched by one that succeeds. Owned by the caller; no cleaning up. */
typedef struct headrace_error {
  size_t struct_size;
  headrace_status status;
  char message[HEADRACE_ERROR_BYTES]; /**< UTF-8: what failed, on which object, and why. */
} headrace_error;

/** "argument", "budget", ... A constant; "unknown" for other values. */
HEADRACE_API const char* headrace_status_name(headrace_status status);

/** Frees text or an array handed over by the library. NULL is allowed. */
HEADRACE_API void headrace_free(void* memory);

/* ---- The build ---- */

/** "1.2.3": the version of the library. A constant. */
HEADRACE_API const char* headrace_version(void);

/** The build as a JSON object: `version`, `compiler`, `isas` (tables that this processor can run, best first), `isa`
 * (the one in use by default), `io_backends`, `io_backend` (the one in use by default). */
HEADRACE_API headrace_status headrace_build_json(char** json, size_t* json_bytes, headrace_error* error);

/* ---- Tokenizer ---- */

typedef struct headrace_tokenizer headrace_tokenizer;

/** Opens the tokenizer of the model in `folder` (UTF-8 path). Reads no weights. */
HEADRACE_API headrace_status headrace_tokenizer_open(const char* folder, headrace_tokenizer** tokenizer,
                                                     headrace_error* error);
/** Not for a tokenizer that belongs to a model. */
HEADRACE_API void headrace_tokenizer_close(headrace_tokenizer* tokenizer);

/** Ids of the `text_bytes` bytes at `text`, byte for byte: nothing is added, trimmed or normalised; text need not be
 * UTF-8 and may hold zero bytes. With `markup` 0 the spelling of a control token is ordinary text: the only way to
 * encode what comes from a user, a document or a model. With `markup` 1 such spellings become their ids: only for text
 * that the program composed itself. HEADRACE_ARGUMENT for other values. */
HEADRACE_API headrace_status headrace_tokenize(const headrace_tokenizer* tokenizer, const char* text, size_t text_bytes,
                                               int markup, int32_t** ids, size_t* id_count, headrace_error* error);

/** The bytes of `id_count` ids; control tokens give their name. Token borders do not respect characters, so the bytes
 * need not be UTF-8. HEADRACE_ARGUMENT when an id is outside the vocabulary. */
HEADRACE_API headrace_status headrace_detokenize(const headrace_tokenizer* tokenizer, const int32_t* ids,
                                                 size_t id_count, char** text, size_t* text_bytes,
                                                 headrace_error* error);

/** A JSON object: `vocabulary_size`, and `chat_format` (the name of the format in which the model was trained to
 * converse, or null). */
HEADRACE_API headrace_status headrace_tokenizer_json(const headrace_tokenizer* tokenizer, char** json,
                                                     size_t* json_bytes, headrace_error* error);

/* ---- Model ---- */

typedef struct headrace_model headrace_model;

typedef enum headrace_log_level {
  HEADRACE_LOG_ERROR = 0,
  HEADRACE_LOG_WARN = 1,
  HEADRACE_LOG_INFO = 2,
  HEADRACE_LOG_DEBUG = 3
} headrace_log_level;

/** Receives lines for a person, `bytes` long, without a newline. Called from any thread, until the model is closed. */
typedef void (*headrace_log_callback)(void* user, headrace_log_level level, const char* line, size_t bytes);

/** As `budget_bytes`: the least with which the model runs. */
#define HEADRACE_BUDGET_FLOOR UINT64_MAX

typedef struct headrace_model_options {
  size_t struct_size;
  /** Ceiling on all memory of the model and its sessions, in bytes; HEADRACE_BUDGET_FLOOR; or 0: 80 % of what machine
   * and control group let this process keep. */
  uint64_t budget_bytes;
  /** Tokens that a session can hold. 0: 4096, or what the model allows when that is less. */
  size_t context_tokens;
  /** Compute threads, the calling one counted; at most 256. 0: what affinity and CPU quota allow. */
  size_t thread_count;
  /** Processors on which the threads run, such as "0-3,6". The thread that opens the model is confined to them too.
   * NULL: wherever the system puts them. */
  const char* cpus;
  /** "scalar", "avx2", "avx512" or "neon"; one that is not available is HEADRACE_ARGUMENT. NULL: the best. */
  const char* isa;
  /** 1: read through the page cache. 0: past it, where the file system can. */
  int32_t buffered_io;
  /** Greatest level handed to `log`; 0 is HEADRACE_LOG_ERROR. */
  int32_t log_level;
  headrace_log_callback log; /**< NULL: no log. */
  void* log_user;
  /** Tokens that pass through the layers together while a prompt is read. Never changes results. 0: for each prompt
   * what reads the fewest bytes. */
  size_t prefill_chunk_tokens;
  /** Rows of logits that a session computes at once in headrace_session_evaluate with `all_logits`; each takes 4 bytes
   * per entry of the vocabulary. Never changes results. 0: 1. */
  size_t logits_rows;
  /** How files are read: "uring" or "threads"; one that does not work here is HEADRACE_ARGUMENT. NULL: the best. */
  const char* io_backend;
  /** Reads in flight, at most 256. 0: the default. */
  size_t io_depth;
  /** Which experts stay in memory: "phase" or "lru". Never changes results. NULL: "phase". */
  const char* cache_policy;
  /** Layers whose weights, but for the experts, stay in memory. -1: none. 0: what the plan finds best. */
  int64_t pinned_layers;
  /** For headrace_plan_json alone: memory of the machine that is meant, in bytes, of which 80 % are the default budget.
   * 0: this one's. */
  uint64_t ram_bytes;
} headrace_model_options;

/** Opens the model in `folder` (UTF-8 path): checks every tensor, reads what stays resident, and takes its memory.
 * `options` may be NULL. HEADRACE_BUDGET names the floor. */
HEADRACE_API headrace_status headrace_model_open(const char* folder, const headrace_model_options* options,
                                                 headrace_model** model, headrace_error* error);
HEADRACE_API void headrace_model_close(headrace_model* model);

/** What the model is, as a JSON object; `headrace info --help` lists the keys. Constant once the model is open. */
HEADRACE_API headrace_status headrace_model_info_json(const headrace_model* model, char** json, size_t* json_bytes,
                                                      headrace_error* error);

/** The same of the model in `folder` without opening it for use: reads its configuration and directory, no weights. */
HEADRACE_API headrace_status headrace_describe(const char* folder, char** json, size_t* json_bytes,
                                               headrace_error* error);

/** How the budget is divided, as a JSON object; sizes in bytes. `budget_bytes`; `floor_bytes`: the least budget;
 * `fits`; `fixed_bytes`: all that is always there, among it `process_bytes`, `session_bytes` and `scratch_bytes`;
 * `ring_bytes` through which streamed layers pass; `pinned_bytes` of weights that stay; `pinned_layers`,
 * `streamed_layers`; `slots` of `slot_bytes` for experts, `all_slots` would hold all; `spare_bytes`; `chunk_tokens`;
 * `ctx`; `bytes_per_token`: expected from the drive for a generated token, of it `streamed_bytes` of streamed layers;
 * `expected_hit_share` of experts; for a prompt that fills the context (`prefill_tokens`): `prefill_chunk_tokens`,
 * `prefill_lent_bytes` of slots and pinned layers, `prefill_bytes` from the drive; `expected_tok_s` (null where the
 * speed of the drive is not known); `threads`; `isa`; `name`. Changes with headrace_model_set_budget. */
HEADRACE_API headrace_status headrace_model_plan_json(const headrace_model* model, char** json, size_t* json_bytes,
                                                      headrace_error* error);

/** The same plan for the model in `folder`, or for a released one by its name ("kimi-linear-48b", "kimi-k3"), without
 * loading it. A budget below the floor is no error: `fits` is false, and the plan is that of the floor. `drive_gb_s`:
 * 10^9 bytes per second of the drive, or 0. */
HEADRACE_API headrace_status headrace_plan_json(const char* folder, const headrace_model_options* options,
                                                double drive_gb_s, char** json, size_t* json_bytes,
                                                headrace_error* error);

/** Another ceiling, in bytes, HEADRACE_BUDGET_FLOOR, or 0 for the default; from any thread, also while a session works:
 * memory is given back to the system, or taken, at once or before the next token or chunk of a prompt. Calls that begin
 * meanwhile wait. Changes no result. HEADRACE_BUDGET names the floor; after a failure the old ceiling stands. */
HEADRACE_API headrace_status headrace_model_set_budget(headrace_model* model, uint64_t budget_bytes,
                                                       headrace_error* error);

/** The tokenizer of the model; lives as long as the model, whose owner must not close it. NULL when the folder has
 * none: such a model takes and gives ids only. */
HEADRACE_API const headrace_tokenizer* headrace_model_tokenizer(const headrace_model* model);

/** Entries of the vocabulary: token ids are 0 <= id < this, logits have this many columns. */
HEADRACE_API size_t headrace_model_vocabulary_size(const headrace_model* model);

/* ---- Session ---- */

/** One sequence of tokens and its attention state. Token ids are checked: HEADRACE_ARGUMENT names the first bad one.
 * After a call that computes and failed with anything but HEADRACE_ARGUMENT or HEADRACE_CANCELLED only
 * headrace_session_reset, headrace_session_load and headrace_session_destroy are allowed. */
typedef struct headrace_session headrace_session;

/** Starts an empty sequence. The plan of the model holds memory for one session; more fit when the budget has room left
 * (HEADRACE_BUDGET). */
HEADRACE_API headrace_status headrace_session_create(headrace_model* model, headrace_session** session,
                                                     headrace_error* error);
HEADRACE_API void headrace_session_destroy(headrace_session* session);

/** Back to the empty sequence; keeps the counters. */
HEADRACE_API headrace_status headrace_session_reset(headrace_session* session, headrace_error* error);

/** Tokens in the sequence: given by calls, and generated. */
HEADRACE_API size_t headrace_session_token_count(const headrace_session* session);

/** Stops the running call after the token or chunk at work: generation ends with HEADRACE_FINISH_CANCELLED, evaluation
 * with HEADRACE_CANCELLED. When no call runs, the next one stops at once. From any thread and from signal handlers,
 * while the session exists. */
HEADRACE_API void headrace_session_cancel(headrace_session* session);

/** The experts of one token in one layer, ascending by id. */
typedef struct headrace_routed_experts {
  uint32_t layer; /**< 0-based layer of the model, dense layers counted. */
  uint32_t count;
  const uint32_t* experts; /**< [count] */
  const float* weights;    /**< [count]: factors in the combination. */
} headrace_routed_experts;

/** What evaluation found at one token. */
typedef struct headrace_token_result {
  size_t struct_size;
  size_t index; /**< Of the token among the ids of the call. */
  int32_t id;
  uint32_t routed_count;
  /** [vocabulary size]: logits of the token that follows; NULL where they were not asked for. */
  const float* logits;
  /** [routed_count]: one entry per layer with experts, ascending; NULL unless asked for. */
  const headrace_routed_experts* routed;
} headrace_token_result;

/** Return 0 to go on; anything else ends the call with HEADRACE_CANCELLED. Must not call into the model. */
typedef int (*headrace_token_callback)(void* user, const headrace_token_result* result);

/** Called after each chunk of a prompt: `done_tokens` of `total_tokens` are taken in. Return 0 to go on; anything else
 * cancels. Must not call into the model. */
typedef int (*headrace_progress_callback)(void* user, size_t done_tokens, size_t total_tokens);

typedef struct headrace_evaluate_options {
  size_t struct_size;
  int32_t all_logits;                     /**< 1: logits after every id; 0: after the last. */
  int32_t routing;                        /**< 1: also the routed experts of every id. */
  headrace_progress_callback on_progress; /**< NULL: none. */
  void* progress_user;
} headrace_evaluate_options;

/** Appends `id_count` ids (at least one) to the sequence. `on_token` is called in order, once for each id that has
 * logits or routing. HEADRACE_ARGUMENT before any work when they do not fit the context; HEADRACE_FORMAT when a logit
 * is not a finite number. `options` may be NULL. */
HEADRACE_API headrace_status headrace_session_evaluate(headrace_session* session, const int32_t* ids, size_t id_count,
                                                       const headrace_evaluate_options* options,
                                                       headrace_token_callback on_token, void* user,
                                                       headrace_error* error);

/** Why a generation ended. */
typedef enum headrace_finish {
  HEADRACE_FINISH_STOP = 0,     /**< A stop id of the model, or a stop string. */
  HEADRACE_FINISH_LENGTH = 1,   /**< The token limit, or the context is full. */
  HEADRACE_FINISH_CANCELLED = 2 /**< headrace_session_cancel, or a callback that asked for it. */
} headrace_finish;

/** A piece of the answer. */
typedef struct headrace_piece {
  size_t struct_size;
  /** Valid UTF-8, possibly empty: bytes that may still become a character or a stop string are held back. Bytes that
   * cannot become a character are U+FFFD. Not zero-terminated. */
  const char* text;
  size_t text_bytes;
  int32_t id; /**< The token just generated, or -1 in the last piece, which releases what was held back. */
} headrace_piece;

/** Return 0 to go on; anything else cancels. Must not call into the model. */
typedef int (*headrace_piece_callback)(void* user, const headrace_piece* piece);

/** Most stop strings of a call, and most bytes of each. */
#define HEADRACE_STOP_STRINGS_MAX 16
#define HEADRACE_STOP_STRING_BYTES_MAX 256

/** Most logit biases of a call. */
#define HEADRACE_LOGIT_BIASES_MAX 1024

/** What is added to the logit of one token: -100 to 100, of which -100, like minus infinity, bans the token. */
typedef struct headrace_logit_bias {
  int32_t id;
  double bias;
} headrace_logit_bias;

typedef struct headrace_generate_options {
  size_t struct_size;
  /** Most tokens to generate. 0: as many as the context holds. */
  size_t tokens_max;
  /** 0: the most probable token, the lowest id of equals. Otherwise logits are divided by it; any positive number. */
  double temperature;
  /** Share of probability in (0, 1]: keeps the fewest most probable tokens that have it together, after top_k.
   * 0: all. (Who wants the limit of a vanishing share sets `top_k` to 1.) */
  double top_p;
  /** Keeps tokens with at least this share, in [0, 1], of the best token's probability. 0: all. */
  double min_p;
  /** Keeps this many of the most probable tokens, the lower id first of equals. 0: all. */
  size_t top_k;
  /** Key of the random numbers. Numbers depend on the seed and the position in the sequence only. */
  uint64_t seed;
  /** [stop_count] strings (zero-terminated UTF-8) that end the generation. They are matched in the text of the answer,
   * across tokens; neither they nor what follows is handed out. */
  const char* const* stops;
  size_t stop_count;
  /** 1: stop ids of the model are tokens like others. */
  int32_t ignore_stop_ids;
  headrace_progress_callback on_progress; /**< While the prompt is read; NULL: none. */
  void* progress_user;
  /** Logits above zero are divided by it and the others multiplied, once for every distinct token among the last
   * `penalty_window` of the sequence, prompt included. 0.01 to 100; 0 and 1: off. This and the three below change
   * logits in the order in which they stand here, before everything else; temperature 0 takes the greatest that
   * results. */
  double repetition_penalty;
  /** Tokens that the repetition penalty looks back on; SIZE_MAX: all. 0: 256. */
  size_t penalty_window;
  /** A token that was generated n > 0 times by this call loses n times this, and once `presence_penalty`. Each is -2 to
   * 2. */
  double frequency_penalty;
  double presence_penalty;
  /** [logit_bias_count], each id once. When they ban every token that the model allows the call ends with
   * HEADRACE_ARGUMENT; the sequence keeps what was generated until then. */
  const headrace_logit_bias* logit_biases;
  size_t logit_bias_count;
} headrace_generate_options;

/** How a generation went. */
typedef struct headrace_generation {
  size_t struct_size;
  headrace_finish finish;
  int32_t* ids; /**< [id_count]: generated ids, a stop id included; free with headrace_free. */
  size_t id_count;
  char* text; /**< All pieces joined; free with headrace_free. */
  size_t text_bytes;
} headrace_generation;

/** Appends the `id_count` ids of a prompt (none are needed when the sequence is not empty) and continues the sequence.
 * HEADRACE_ARGUMENT before any work when the prompt does not fit the context or an option is out of range. The
 * generated ids, a stop id included, are part of the sequence afterwards. Cancelling is no error: the answer so far is
 * kept. `options`, `on_piece` and `generation` may be NULL. The caller sets `generation->struct_size`. */
HEADRACE_API headrace_status headrace_session_generate(headrace_session* session, const int32_t* ids, size_t id_count,
                                                       const headrace_generate_options* options,
                                                       headrace_piece_callback on_piece, void* user,
                                                       headrace_generation* generation, headrace_error* error);

/** Counters as a JSON object; all were measured, and null stands for what was not. Those of tokens and times are of
 * this session, those of bytes, hits and memory of the model since it was opened: `prompt_tokens, tokens, prefill_s,
 * decode_s, prefill_tok_s, decode_tok_s, ttft_s` (prompt to first token, latest call), `bytes_read, bytes_read_trunk,
 * bytes_read_experts, bytes_read_head, bytes_read_headers` (not in `bytes_read`), `bytes_read_speculative,
 * bytes_speculative_wasted, expert_hits, expert_misses, io_wait_s, compute_s, drive_gb_s` (10^9 bytes per second while
 * reading), `prefill_chunks, major_faults, page_cache_peak_bytes, peak_rss_bytes, synthetic, budget_bytes,
 * budget_used_bytes, pinned_layers, streamed_layers, blocks_streamed, expert_slots, working_set_bytes, direct_io,
 * io_backend, isa, threads, cpu_temperature_c, drive_temperature_c`. */
HEADRACE_API headrace_status headrace_session_stats_json(headrace_session* session, char** json, size_t* json_bytes,
                                                         headrace_error* error);

#ifdef __cplusplus
}
#endif

#include "headrace/history.h"

#endif /* HEADRACE_HEADRACE_H */
