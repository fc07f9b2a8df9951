#include <string>
#include <vector>

#include "api/callers.h"
#include "api/handles.h"
#include "engine/chat_answer.h"
#include "engine/chat_prompt.h"
#include "text/chat/chat_request.h"

namespace headrace {
namespace {

Result<ChatRequest> parse_request(const char* request, size_t request_bytes) {
  TRY(check_array(request, request_bytes, "request"));
  return parse_chat_request({request, request_bytes});
}

/// Most bytes of a request, so that it stays small beside the memory budget: more than the longest tokens of a context
/// take, and some for what is around them.
size_t request_bytes_max(const Session& session) {
  constexpr size_t kTokenBytesMax = 256;
  constexpr size_t kMoreBytes = size_t{64} << 10;
  return session.capacity_tokens() * kTokenBytesMax + kMoreBytes;
}

Status check_request_size(const Session& session, size_t request_bytes) {
  if (request_bytes <= request_bytes_max(session)) return {};
  return error(Code::kArgument, "the conversation has %zu bytes; one that fits a context of %zu tokens has at most %zu",
               request_bytes, session.capacity_tokens(), request_bytes_max(session));
}

Status parse(const Tokenizer& tokenizer, std::span<const TokenId> ids, int thinking, Out<char> message) {
  const ChatFormat& format = *TRY(chat_format_of(&tokenizer));
  const auto parser = format.create_parser(tokenizer, TRY(flag(thinking, "thinking")));
  for (const TokenId id : ids) parser->push(id);
  parser->finish();
  return hand_over(message_json(parser->message()), message.elements, message.count);
}

Status reply(Session& session, const ChatRequest& request, const headrace_generate_options* raw_options,
             const PieceCaller& on_piece, headrace_reply* out) {
  TRY(clear_struct(out, "headrace_reply"));
  const headrace_generate_options options = TRY(copy_options(raw_options, "headrace_generate_options"));
  const GenerateOptions wanted = TRY(generate_options(options));
  const ProgressCaller on_progress{options.on_progress, options.progress_user};
  const ChatReply result = TRY(session.reply(request, wanted, on_piece, on_progress));
  if (!out) return {};
  TRY(hand_over_both(result.ids, {&out->ids, &out->id_count}, message_json(result.message),
                     {&out->message, &out->message_bytes}));
  out->finish = static_cast<headrace_finish>(result.finish);
  out->prompt_tokens = result.prompt_tokens;
  out->reused_tokens = result.reused_tokens;
  return {};
}

}  // namespace
}  // namespace headrace

using headrace::Status;

headrace_status headrace_chat_render(const headrace_tokenizer* tokenizer, const char* request, size_t request_bytes,
                                     int32_t** ids, size_t* id_count, headrace_error* error) {
  return headrace::guarded(error, [&]() -> Status {
    TRY(headrace::clear_result(ids, id_count));
    TRY(headrace::check_handle(tokenizer, "tokenizer"));
    const headrace::ChatRequest parsed = TRY(headrace::parse_request(request, request_bytes));
    return headrace::hand_over(TRY(headrace::render_chat(tokenizer->tokenizer, parsed)), ids, id_count);
  });
}

headrace_status headrace_chat_parse(const headrace_tokenizer* tokenizer, const int32_t* ids, size_t id_count,
                                    int thinking, char** message, size_t* message_bytes, headrace_error* error) {
  return headrace::guarded(error, [&]() -> Status {
    TRY(headrace::clear_result(message, message_bytes));
    TRY(headrace::check_handle(tokenizer, "tokenizer"));
    TRY(headrace::check_array(ids, id_count, "ids"));
    return headrace::parse(*tokenizer->tokenizer, {ids, id_count}, thinking, {message, message_bytes});
  });
}

headrace_status headrace_session_reply(headrace_session* session, const char* request, size_t request_bytes,
                                       const headrace_generate_options* options, headrace_piece_callback on_piece,
                                       void* user, headrace_reply* reply, headrace_error* error) {
  return headrace::guarded(error, [&]() -> Status {
    TRY(headrace::check_handle(session, "session"));
    TRY(headrace::check_request_size(*session->session, request_bytes));
    const headrace::ChatRequest parsed = TRY(headrace::parse_request(request, request_bytes));
    return headrace::reply(*session->session, parsed, options, {on_piece, user}, reply);
  });
}
