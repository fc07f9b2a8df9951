/* Headrace: conversations. Part of headrace.h, which includes it and says what holds for all of it. */
#ifndef HEADRACE_CHAT_H
#define HEADRACE_CHAT_H

#include "headrace/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A conversation is a JSON object in the manner of OpenAI's API:
 *
 *   messages               [{role, content, name, reasoning_content, tool_calls, tool_call_id, tools}, ...]; `tools` of
 *                          a system message are tools that the model may call from there on
 *   tools                  [{...}, ...]
 *   tool_choice            "auto" (default), "none", "required"
 *   response_format        {"type": "text" | "json_object" | "json_schema", "json_schema": {...}}
 *   reasoning_effort       "none" (no reasoning), "low", "high", "max"; null: the prompt does not speak of it
 *   thinking               true (default, where the format has reasoning) or false
 *   add_generation_prompt  true (default) or false
 *
 * Roles are system, user, assistant, tool; content is a string, null, or a list of {"type": "text", "text"}. Messages
 * that a reply gave go back as they are. Nothing in a conversation can become a control token, whatever it spells.
 * Anything else is HEADRACE_ARGUMENT, with the place; images and models without chat format are HEADRACE_UNSUPPORTED.
 */

/** Token ids of a conversation as the model of this tokenizer was trained to see it, up to the beginning of the answer
 * unless `add_generation_prompt` is false. */
HEADRACE_API headrace_status headrace_chat_render(const headrace_tokenizer* tokenizer, const char* request,
                                                  size_t request_bytes, int32_t** ids, size_t* id_count,
                                                  headrace_error* error);

/** The message that `ids`, generated after such a prompt, consist of, as in headrace_reply. `thinking` 1 or 0: as in
 * the request. Whatever a model wrote is taken; nothing is lost. */
HEADRACE_API headrace_status headrace_chat_parse(const headrace_tokenizer* tokenizer, const int32_t* ids,
                                                 size_t id_count, int thinking, char** message, size_t* message_bytes,
                                                 headrace_error* error);

/** How a reply went. */
typedef struct headrace_reply {
  size_t struct_size;
  headrace_finish finish;
  int32_t* ids; /**< [id_count]: generated ids, a stop id included; free with headrace_free. */
  size_t id_count;
  /** A JSON object, to be appended to `messages` as it is: `role` ("assistant"), `content`, and where there are any
   * `reasoning_content` and `tool_calls` (complete ones only). Free with headrace_free. */
  char* message;
  size_t message_bytes;
  size_t prompt_tokens; /**< Of the conversation ... */
  size_t reused_tokens; /**< ... of which the session had these already, so that they were not read again. */
} headrace_reply;

/** Makes the sequence of the session that of the conversation, keeping what it has of it already, and lets the model
 * answer. As headrace_session_generate otherwise; stop strings are looked for in the content alone, and the end of the
 * message ends the reply even with `ignore_stop_ids`. Greedy unless `options` say otherwise; headrace_tokenizer_json
 * tells what the publisher recommends. A reply that was cut or cancelled may go back like others. HEADRACE_ARGUMENT
 * before any work when the conversation does not fit the context, or has more bytes than one could that fits. The
 * caller sets `reply->struct_size`; `options`, `on_piece` and `reply` may be NULL. */
HEADRACE_API headrace_status headrace_session_reply(headrace_session* session, const char* request,
                                                    size_t request_bytes, const headrace_generate_options* options,
                                                    headrace_piece_callback on_piece, void* user, headrace_reply* reply,
                                                    headrace_error* error);

#ifdef __cplusplus
}
#endif

#endif /* HEADRACE_CHAT_H */
