#include "api/handles.h"
#include "engine/build_info.h"
#include "engine/model_folder.h"

namespace headrace {
namespace {

Status open(const char* folder, headrace_tokenizer** out) {
  if (!folder || !out) return error(Code::kArgument, "headrace_tokenizer_open: folder and tokenizer must not be null");
  *out = nullptr;
  TRY(check_model_folder(folder));
  auto handle = std::make_unique<headrace_tokenizer>();
  handle->owned = TRY(open_tokenizer(folder));
  if (!handle->owned) return error(Code::kUnsupported, "the model folder '%s' has no tokenizer", folder);
  handle->tokenizer = handle->owned.get();
  *out = handle.release();
  return {};
}

Status tokenize(const headrace_tokenizer* handle, std::string_view text, int markup, int32_t** ids, size_t* count) {
  const Tokenizer& tokenizer = *handle->tokenizer;
  if (markup != 0 && markup != 1) return error(Code::kArgument, "headrace_tokenize: markup is %d, not 0 or 1", markup);
  if (markup == 1) return hand_over(TRY(tokenizer.encode(Markup{text})), ids, count);
  return hand_over(TRY(tokenizer.encode(PlainText{text})), ids, count);
}

}  // namespace
}  // namespace headrace

using headrace::Status;

headrace_status headrace_build_json(char** json, size_t* json_bytes, headrace_error* error) {
  return headrace::guarded(error, [&]() -> Status {
    TRY(headrace::clear_result(json, json_bytes));
    return headrace::hand_over(headrace::build_info_json(headrace_version()), json, json_bytes);
  });
}

headrace_status headrace_tokenizer_open(const char* folder, headrace_tokenizer** tokenizer, headrace_error* error) {
  return headrace::guarded(error, [&] { return headrace::open(folder, tokenizer); });
}

void headrace_tokenizer_close(headrace_tokenizer* tokenizer) {
  delete tokenizer;
}

headrace_status headrace_tokenize(const headrace_tokenizer* tokenizer, const char* text, size_t text_bytes, int markup,
                                  int32_t** ids, size_t* id_count, headrace_error* error) {
  return headrace::guarded(error, [&]() -> Status {
    TRY(headrace::clear_result(ids, id_count));
    TRY(headrace::check_array(text, text_bytes, "text"));
    TRY(headrace::check_handle(tokenizer, "tokenizer"));
    return headrace::tokenize(tokenizer, {text, text_bytes}, markup, ids, id_count);
  });
}

headrace_status headrace_detokenize(const headrace_tokenizer* tokenizer, const int32_t* ids, size_t id_count,
                                    char** text, size_t* text_bytes, headrace_error* error) {
  return headrace::guarded(error, [&]() -> Status {
    TRY(headrace::clear_result(text, text_bytes));
    TRY(headrace::check_array(ids, id_count, "ids"));
    TRY(headrace::check_handle(tokenizer, "tokenizer"));
    return headrace::hand_over(TRY(headrace::decode(*tokenizer->tokenizer, {ids, id_count})), text, text_bytes);
  });
}

headrace_status headrace_tokenizer_json(const headrace_tokenizer* tokenizer, char** json, size_t* json_bytes,
                                        headrace_error* error) {
  return headrace::guarded(error, [&]() -> Status {
    TRY(headrace::clear_result(json, json_bytes));
    TRY(headrace::check_handle(tokenizer, "tokenizer"));
    return headrace::hand_over(headrace::tokenizer_info_json(*tokenizer->tokenizer), json, json_bytes);
  });
}
