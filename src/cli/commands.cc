#include "cli/commands.h"

#include "cli/options.h"

namespace headrace::cli {
namespace {

constexpr std::string_view kRunDetails =
    R"(PROMPT is the argument, the contents of --file, or standard input, byte for byte. A model with a chat format gets it
as the turn of a user, and its answer is printed; reasoning is shown on a terminal only. With --raw, and for other
models, the text is continued as it stands; with --ids the prompt is a list of token ids. The answer goes to standard
output as it is made, everything else to standard error. It ends when the model ends it, at --stop, after -n tokens, or
when the context is full. Ctrl-C stops it; what was made so far stands.

Without --temp and --top-p a chat model is sampled as its publisher recommends; the same --seed (default 0) gives the
same answer again. Text that is continued is greedy.

--json prints {"text", "ids", "finish", "reasoning", "tool_calls", "stats"} when done; "finish" is "stop", "length"
or "cancelled", "ids" holds the stop token too.

Examples:
  headrace run demo "Could you write a story with a white key in it?"
  headrace run ~/models/kimi-k3 --think off --system "You are terse." --file question.txt
  headrace run demo --raw "Once upon a time" --stop "The end" --json --stats stats.json
  echo -n "Once upon" | headrace run demo --raw --budget floor
  headrace run demo --ids 483,502,258,386 -n 40
)";

constexpr std::string_view kChatDetails =
    R"(A conversation, for models with a chat format. What you type is a user's turn; the model answers, and remembers. The
line can be edited, with a history (arrow up) of this conversation; a paste may have many lines, and a line that ends
with a backslash goes on in the next. Ctrl-C stops an answer, Ctrl-D ends. From a pipe every line is a turn.

What begins with a slash is a command, such as /help, which lists them: /save and /load keep a conversation with the
model's memory of it, /think and /system say how the model answers, /budget sets another ceiling on memory.

Nothing is written but what /save and --stats are told to. Without --temp and --top-p the model is sampled as its
publisher recommends; the same --seed (default 0) and the same words give the same answers. Ctrl-C in a pipe, and
SIGTERM, end the program with status 6; a command that fails is told on standard error and does not.

Examples:
  headrace chat demo
  headrace chat ~/models/kimi-k3 --budget 24G --ctx 16384 --think low
  printf 'Hello!\nTell me a story.\n' | headrace chat demo
)";

constexpr std::string_view kEvalDetails =
    R"(The tokens are --ids, or the argument, --file or standard input taken as plain text. Without --json a table of
the most probable next tokens is printed. With --json one object with what was asked for:
  --logits all|last   "tokens": the ids, "logits": one row after every token, or after the last
  --trace-experts     "tokens", "experts": per token [layer, [ids], [weights]] of each layer with experts
  --top N             "next": [{"id", "text", "logprob"}] (asked for when nothing else is)
  --perplexity        "tokens" (scored), "bytes", "nll_per_token" (nats), "ppl", "bits_per_byte", "ctx", "stride":
                      the text is cut into windows of --ctx tokens, each read from an empty state; all tokens of a
                      window but the first are scored
--logits-bin FILE writes the logits as little-endian float32, row after row, instead of into the object.

Examples:
  headrace eval demo "Once upon a"
  headrace eval demo --ids 483,502,258 --logits all --json
  headrace eval demo --ids 483,502,258 --logits last --logits-bin logits.f32 --trace-experts --json
  headrace eval demo --perplexity --file heldout.txt --ctx 256 --json
)";

constexpr std::string_view kTokenizeDetails =
    R"(The text is the argument, the contents of --file, or standard input, byte for byte: nothing is trimmed or added.
Spellings of control tokens are ordinary text unless --markup is given. Prints the ids separated by commas; with
--json {"ids": [...]}. Loads no weights.

Examples:
  headrace tokenize demo "Once upon a time"
  headrace tokenize demo --file story.txt --json
  headrace tokenize demo --markup "<|open|>response<|sep|>"
)";

constexpr std::string_view kDetokenizeDetails =
    R"(IDS are separated by commas or white space, from the argument, --file, or standard input. Prints their bytes and
nothing else; control tokens print their name. With --json {"text": "..."}, where bytes that are no UTF-8 are
U+FFFD. Loads no weights.

Examples:
  headrace detokenize demo 483,502,258,386
  headrace tokenize demo --file story.txt | headrace detokenize demo
)";

constexpr std::string_view kInfoDetails =
    R"(Reads the configuration and the directory of tensors, no weights. Keys of --json:
  family, name               family of the code that runs it, and the released model of that architecture
  layers, moe_layers         all layers, and those with routed experts
  experts, experts_per_token routed experts of a layer, and how many of them a token uses
  hidden_size, vocabulary_size, context_tokens_max
  parameters, active_parameters   of the text model, and used for one token
  tensors, checkpoint_bytes  of all files
  trunk_bytes, trunk_format  all weights of the text model but the routed experts, as stored
  expert_bytes, expert_format     one routed expert, as stored
  working_set_bytes          routed experts that one token uses: layers x experts_per_token x expert_bytes
  vision                     whether the files hold an image tower (not run by this version)
  stop_ids                   token ids that end an answer
  tokenizer_vocabulary_size  null without tokenizer files
  chat_format                name of the model's chat format, or null
  synthetic                  null: made by a publisher; "shared N": random weights, N layers of each kind are there
                             and stand for all (0: all are there)
  layer_kinds                one word per layer, such as "kda+dense" or "mla+moe"

Examples:
  headrace info demo
  headrace info ~/models/kimi-k3 --json
)";

constexpr std::string_view kPlanDetails =
    R"(How a budget is divided, what a token then reads from the drive, and the floor, the least budget. Nothing is loaded.
MODEL is a folder or the name of a released model, kimi-linear-48b or kimi-k3: then no files are needed. Below the
floor the plan of the floor is printed, and the exit status is 3. Keys of --json (sizes in bytes):
  budget_bytes, floor_bytes, fits
  fixed_bytes                all that is always there, among it process_bytes, session_bytes, scratch_bytes
  ring_bytes                 memory through which streamed layers pass
  pinned_bytes, pinned_layers, streamed_layers
  slots, slot_bytes, all_slots, expected_hit_share   of the expert cache
  spare_bytes                that nothing has a use for
  bytes_per_token            expected from the drive for a generated token; of it streamed_bytes of streamed layers
  prefill_tokens, prefill_chunk_tokens, prefill_lent_bytes, prefill_bytes   for a prompt that fills the context
  expected_tok_s             null without --drive
  chunk_tokens, ctx, threads, isa, name

Examples:
  headrace plan demo --budget floor
  headrace plan ~/models/kimi-k3 --budget 24G --drive 6.5
  headrace plan kimi-k3 --ram 64G --drive 12 --json
)";

constexpr std::string_view kSynthDetails =
    R"(Writes a model of random weights in the publisher's layout into the folder OUT, which must be new or empty: for
measuring without the real weights. SHAPE is kimi-linear-48b, kimi-k3, or a config file of that family. Its text is
noise; its activations stay sane and its experts are used evenly. It has no tokenizer: use --ids.

--share-layers N writes N layers of each kind (attention x feed-forward part) instead of all; synth.json in OUT names
the layer whose tensors stand for each, and only speed, never text, can be judged by such a model. Reads are as many
and as large as those of the whole model.

Nothing is left of what was begun when a write fails or Ctrl-C is pressed.

Examples:
  headrace synth kimi-linear-48b ~/models/random-linear
  headrace synth kimi-k3 ~/models/random-k3 --share-layers 1
  headrace synth tiny.json out --layers 4 --expert-count 16 --tensor-order scattered --seed 7
)";

constexpr std::string_view kVersionDetails =
    R"(With --json {"version", "compiler", "isas", "isa", "io_backends", "io_backend"}.

Examples:
  headrace version
)";

constexpr unsigned kRunGroups =
    kModelOptions | kPromptOptions | kChatOptions | kSamplingOptions | kRunOptions | kJsonOption | kStatsOption;
constexpr unsigned kChatGroups = kModelOptions | kChatOptions | kSamplingOptions | kStatsOption;
constexpr unsigned kEvalGroups =
    kModelOptions | kPromptOptions | kChatOptions | kSamplingOptions | kEvalOptions | kJsonOption | kStatsOption;
constexpr unsigned kTextGroups = kFileOption | kJsonOption;

constexpr Command kCommands[] = {
    {"run", "MODEL [PROMPT]", "one answer", kRunDetails, kRunGroups, 1, 2, cmd::run},
    {"chat", "MODEL", "conversation", kChatDetails, kChatGroups, 1, 1, cmd::chat},
    {"serve", "MODEL", "HTTP server", "", 0, 0, 0, nullptr},
    {"eval", "MODEL [TEXT]", "numbers: logits, next tokens, perplexity", kEvalDetails, kEvalGroups, 1, 2, cmd::eval},
    {"tokenize", "MODEL [TEXT]", "token ids of a text", kTokenizeDetails, kTextGroups | kMarkupOption, 1, 2,
     cmd::tokenize},
    {"detokenize", "MODEL [IDS]", "text of token ids", kDetokenizeDetails, kTextGroups, 1, 2, cmd::detokenize},
    {"plan", "MODEL", "memory plan for a budget and context", kPlanDetails, kModelOptions | kPlanOptions | kJsonOption,
     1, 1, cmd::plan},
    {"info", "MODEL", "what a model is: shapes, formats, sizes", kInfoDetails, kJsonOption, 1, 1, cmd::info},
    {"pack", "CHECKPOINT OUT", "make a pack", "", 0, 0, 0, nullptr},
    {"verify", "MODEL", "check every record, tensor and hash", "", 0, 0, 0, nullptr},
    {"pull", "REPO OUT", "download a checkpoint", "", 0, 0, 0, nullptr},
    {"bench", "MODEL", "measure speed", "", 0, 0, 0, nullptr},
    {"doctor", "[MODEL]", "what is wrong or slow on this machine", "", 0, 0, 0, nullptr},
    {"synth", "SHAPE OUT", "a model of random weights", kSynthDetails, kSynthOptions, 0, 2, cmd::synth},
    {"trace", "MODEL", "record routing", "", 0, 0, 0, nullptr},
    {"cachesim", "TRACE", "replay routing against cache policies", "", 0, 0, 0, nullptr},
    {"version", "", "version, build, instruction sets, I/O", kVersionDetails, kJsonOption, 0, 0, cmd::version},
};

}  // namespace

std::span<const Command> commands() {
  return kCommands;
}

}  // namespace headrace::cli
