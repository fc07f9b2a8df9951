"""What a plot is: templates for the paragraphs, questions with answers, a lesson and a topic.

Template language: [a|b|c] chooses one alternative (choices may be nested, an alternative may be empty), {slot} inserts
a fact of the story.
"""
import re
from typing import NamedTuple


class Plot(NamedTuple):
    """One plot with its facts already drawn, ready to be told."""

    paragraphs: list  # of paragraphs; a paragraph is a list of templates
    questions: list  # of (question template, answer template)
    lesson: str  # key of words.LESSONS
    topic: str  # template: what a reader would ask for


def parse_paragraphs(text):
    """Paragraphs of templates from a block of text.

    A blank line ends a paragraph, a line starts a template, and a line that is indented further continues it.
    """
    lines = text.strip("\n").split("\n")
    indent = min(_indent(line) for line in lines if line.strip())
    paragraphs = [[]]
    for line in lines:
        if not line.strip():
            paragraphs.append([])
        elif _indent(line) > indent:
            paragraphs[-1][-1] += " " + line.strip()
        else:
            paragraphs[-1].append(line.strip())
    return [paragraph for paragraph in paragraphs if paragraph]


def _indent(line):
    return re.match(" *", line).end()
