"""Rendering of a conversation in K3's XTML chat format (specification section 13)."""

EFFORT_TEXT = (
    "`thinking_effort` guides on how much to think in your thinking channel (not including the response channel), "
    "supported values include `low`, `medium`, `high`, and `max`.\n"
    "Now the system is invoked with `thinking_effort=%s`."
)


def render(tokenizer, messages, thinking=False, effort=None, generate=False):
    """Token ids of a conversation.

    messages: dictionaries with role, content and, for the assistant, reasoning_content. With `generate` the ids end
    where the assistant's answer begins.
    """
    writer = _Writer(tokenizer)
    if thinking and effort:
        writer.open("message", role="system", type="thinking-effort")
        writer.content(EFFORT_TEXT % effort)
        writer.end_message()
    for message in messages:
        writer.open("message", role=message["role"])
        if message["role"] == "assistant":
            _write_answer(writer, message, thinking)
        else:
            writer.content(message["content"])
        writer.end_message()
    if generate:
        writer.open("message", role="assistant")
        writer.open("think" if thinking else "response")
    return writer.ids


def _write_answer(writer, message, thinking):
    if thinking:
        writer.element("think", message.get("reasoning_content", ""))
    writer.element("response", message["content"])


class _Writer:
    """Collects ids. Every segment is encoded on its own, so that no merge crosses a segment border (section 13.1)."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.ids = []

    def content(self, text):
        self.ids.extend(self.tokenizer.encode(text))

    def open(self, tag, **attributes):
        self.ids.append(self.tokenizer.open)
        self.content(tag)
        for name, value in attributes.items():
            self.content(" " + name)
            self.content('="')
            self.content(value.replace("&", "&amp;").replace('"', "&quot;"))
            self.content('"')
        self.ids.append(self.tokenizer.separator)

    def close(self, tag):
        self.ids.append(self.tokenizer.close)
        self.content(tag)
        self.ids.append(self.tokenizer.separator)

    def element(self, tag, text):
        self.open(tag)
        self.content(text)
        self.close(tag)

    def end_message(self):
        self.close("message")
        self.ids.append(self.tokenizer.end_of_message)
