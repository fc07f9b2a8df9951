/* Headrace: status and errors, the build, tokenizers, models. Part of headrace.h, which includes it and says what holds
 * for all of it. */
#ifndef HEADRACE_MODEL_H
#define HEADRACE_MODEL_H

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

/** A JSON object: `vocabulary_size`; `chat_format` (the name of the format in which the model was trained to converse,
 * or null); `thinking` (whether that format has reasoning); `sampling` (what its publisher recommends: an object with
 * `temperature` and `top_p`, or null). */
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

#ifdef __cplusplus
}
#endif

#endif /* HEADRACE_MODEL_H */
