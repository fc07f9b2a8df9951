/* Headrace: sequences of tokens, evaluated and generated. Part of headrace.h, which includes it and says what holds for
 * all of it. */
#ifndef HEADRACE_SESSION_H
#define HEADRACE_SESSION_H

#include "headrace/model.h"

#ifdef __cplusplus
extern "C" {
#endif

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
  HEADRACE_FINISH_STOP = 0,      /**< A stop id of the model, or a stop string. */
  HEADRACE_FINISH_LENGTH = 1,    /**< The token limit, or the context is full. */
  HEADRACE_FINISH_CANCELLED = 2, /**< headrace_session_cancel, or a callback that asked for it. */
  HEADRACE_FINISH_TOOL_CALLS = 3 /**< The model ended its message, which calls tools. */
} headrace_finish;

/** What the text of a piece is. Of headrace_session_generate all are HEADRACE_PIECE_TEXT, of headrace_session_reply
 * none. */
typedef enum headrace_piece_kind {
  HEADRACE_PIECE_TEXT = 0,
  HEADRACE_PIECE_REASONING = 1,
  HEADRACE_PIECE_CONTENT = 2,
  /** A whole call, as a JSON object: `index` (0-based), `id`, `name`, `arguments` (a string, by intention a JSON
   * object), `complete` (false: the generation ended
   * inside of it, or its arguments are JSON but no object; it must not be carried out). */
  HEADRACE_PIECE_TOOL_CALL = 3
} headrace_piece_kind;

/** A piece of the answer. */
typedef struct headrace_piece {
  size_t struct_size;
  /** Valid UTF-8, possibly empty: bytes that may still become a character or a stop string are held back. Bytes that
   * cannot become a character are U+FFFD. Not zero-terminated. */
  const char* text;
  size_t text_bytes;
  int32_t id;   /**< The token just generated, or -1 in pieces that release at the end what was held back. */
  int32_t kind; /**< A headrace_piece_kind. */
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

#endif /* HEADRACE_SESSION_H */
