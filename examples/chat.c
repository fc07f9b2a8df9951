/* Asks two questions in one conversation: chat MODEL QUESTION QUESTION. MODEL is a folder, such as models/demo.
 *
 * Built with the project: build/release/headrace_example_chat_c
 *
 * A program would build the requests with its JSON library; here the questions must not hold quotes or backslashes. */
#include <stdio.h>
#include <string.h>

#include "headrace/headrace.h"

static int print_piece(void* user, const headrace_piece* piece) {
  (void)user;
  if (piece->kind == HEADRACE_PIECE_CONTENT) fwrite(piece->text, 1, piece->text_bytes, stdout);
  fflush(stdout);
  return 0; /* Go on. */
}

/* Adds a question to the messages, which `conversation` holds without their closing bracket, and then the answer. */
static headrace_status ask(headrace_session* session, char* conversation, size_t room, const char* question,
                           headrace_error* error) {
  char request[8192];
  size_t used = strlen(conversation);
  headrace_generate_options options = {sizeof options};
  headrace_reply reply = {sizeof reply};
  headrace_status status;
  options.tokens_max = 60;

  snprintf(conversation + used, room - used, "%s{\"role\":\"user\",\"content\":\"%s\"}", used > 1 ? "," : "", question);
  snprintf(request, sizeof request, "{\"messages\":%s],\"thinking\":false}", conversation);
  status = headrace_session_reply(session, request, strlen(request), &options, print_piece, NULL, &reply, error);
  if (status != HEADRACE_OK) return status;
  used = strlen(conversation);
  snprintf(conversation + used, room - used, ",%s", reply.message);
  printf("\n(%zu tokens of the conversation, %zu of them kept from before)\n", reply.prompt_tokens,
         reply.reused_tokens);
  headrace_free(reply.ids);
  headrace_free(reply.message);
  return HEADRACE_OK;
}

static headrace_status converse(headrace_model* model, const char* first, const char* second, headrace_error* error) {
  char conversation[6000] = "[";
  headrace_session* session = NULL;
  headrace_status status = headrace_session_create(model, &session, error);
  if (status == HEADRACE_OK) status = ask(session, conversation, sizeof conversation, first, error);
  if (status == HEADRACE_OK) status = ask(session, conversation, sizeof conversation, second, error);
  headrace_session_destroy(session);
  return status;
}

int main(int argc, char** argv) {
  headrace_error error = {sizeof error};
  headrace_model* model = NULL;
  headrace_status status;
  if (argc != 4) {
    fprintf(stderr, "usage: chat MODEL QUESTION QUESTION\n");
    return 2;
  }
  status = headrace_model_open(argv[1], NULL, &model, &error);
  if (status == HEADRACE_OK) status = converse(model, argv[2], argv[3], &error);
  headrace_model_close(model);
  if (status == HEADRACE_OK) return 0;
  fprintf(stderr, "%s: %s\n", headrace_status_name(status), error.message);
  return 1;
}
