/* Continues a text: generate MODEL TEXT. MODEL is a folder, such as models/demo.
 *
 * Built with the project: build/release/headrace_example_generate_c */
#include <stdio.h>
#include <string.h>

#include "headrace/headrace.h"

static int print_piece(void* user, const headrace_piece* piece) {
  (void)user;
  fwrite(piece->text, 1, piece->text_bytes, stdout);
  fflush(stdout);
  return 0; /* Go on. */
}

static int generate(headrace_model* model, const char* text, headrace_error* error) {
  headrace_session* session = NULL;
  int32_t* ids = NULL;
  size_t id_count = 0;
  headrace_generate_options options = {sizeof options};
  options.tokens_max = 40;

  headrace_status status =
      headrace_tokenize(headrace_model_tokenizer(model), text, strlen(text), 0, &ids, &id_count, error);
  if (status == HEADRACE_OK) status = headrace_session_create(model, &session, error);
  if (status == HEADRACE_OK) {
    status = headrace_session_generate(session, ids, id_count, &options, print_piece, NULL, NULL, error);
  }
  headrace_session_destroy(session);
  headrace_free(ids);
  return status;
}

int main(int argc, char** argv) {
  headrace_error error = {sizeof error};
  headrace_model* model = NULL;
  headrace_status status;
  if (argc != 3) {
    fprintf(stderr, "usage: generate MODEL TEXT\n");
    return 2;
  }
  status = headrace_model_open(argv[1], NULL, &model, &error);
  if (status == HEADRACE_OK) status = generate(model, argv[2], &error);
  headrace_model_close(model);
  if (status == HEADRACE_OK) {
    printf("\n");
    return 0;
  }
  fprintf(stderr, "%s: %s\n", headrace_status_name(status), error.message);
  return 1;
}
