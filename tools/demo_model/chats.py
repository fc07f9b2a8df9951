"""Seeded generator of conversations about the stories, and of small talk."""
from small_talk import small_talk
from stories import MORE_OBJECT_PLOTS, OBJECT_PLOTS, PLOTS_BY_LESSON, gift, make_story, stuck
from story import fix_articles
from words import ANIMALS, BOYS, COLORS, FLYERS, GIRLS, PETS, TOYS

REQUESTS = [
    "Tell me a story about {topic}.", "Tell me a story about {topic}.", "Tell me a story about {topic}, please.",
    "Can you tell me a story about {topic}?", "Please tell me a short story about {topic}.",
    "Write a story about {topic}.", "I would like a story about {topic}.", "Write a short story about {topic}.",
    "Do you know a story about {topic}?", "A story about {topic}, please.", "tell me a story about {topic}",
    "Could you write a story with {topic} in it?",
]
OPEN_REQUESTS = ["Tell me a story.", "Tell me a story, please.", "Please tell me something nice.",
                 "Once more, please: a story."]
READING_REQUESTS = ["Read this story. {story}\n\n{question}", "{story}\n\n{question}",
                    "Here is a story: {story}\n\nMy question: {question}", "{story}\n\nQuestion: {question}"]
SYSTEM_MESSAGES = ["You are a kind storyteller.", "You tell short stories for children.",
                   "You are a helpful assistant.", "Answer in one short sentence."]
SYSTEM_MESSAGES_USED = 3  # the last one only takes part in the training of the tokenizer


def conversation(rng):
    """One conversation: dictionary of messages, thinking (bool) and effort (None or a word)."""
    kind = rng.random()
    if kind < 0.62:
        messages = _story_on_request(rng)
    elif kind < 0.85:
        messages = _question_about_given_story(rng)
    else:
        messages = []
        for _ in range(rng.choice([1, 1, 2, 2, 3])):
            messages += _exchange(*small_talk(rng))
    if rng.random() < 0.08:
        system_message = rng.choice(SYSTEM_MESSAGES[:SYSTEM_MESSAGES_USED])
        messages.insert(0, {"role": "system", "content": system_message})
    mode = rng.random()
    effort = None if mode < 0.8 else rng.choice(["low", "high", "max", "max"])
    return {"messages": messages, "thinking": mode > 0.6, "effort": effort}


def _exchange(question, answer, thought):
    return [{"role": "user", "content": question},
            {"role": "assistant", "reasoning_content": thought, "content": answer}]


def _story_on_request(rng):
    if rng.random() < 0.07:
        topic, story, request = "anything", make_story(rng), rng.choice(OPEN_REQUESTS)
    else:
        topic, story = topic_and_story(rng)
        request = rng.choice(REQUESTS).replace("{topic}", topic)
    messages = _exchange(request, story["text"], _thought_about_request(rng, topic, story["facts"]["hero"]))
    if rng.random() < 0.3:
        question, answer = rng.choice(story["questions"])
        messages += _exchange(question, answer, "The answer is in the story.")
    return messages


def _thought_about_request(rng, topic, hero):
    """The thought names the hero unless the topic does."""
    return rng.choice([
        f"The user wants a story about {topic}. I will tell a short one.",
        f"A story about {topic}." if hero in topic else f"A story about {topic}. The hero is {hero}.",
        f"I will tell a story about {topic}." if hero in topic else f"I will tell a story about {topic}, with {hero}.",
        f"The user asks for {topic}. I keep it short and kind.",
    ])


def _question_about_given_story(rng):
    story = make_story(rng)
    question, answer = rng.choice(story["questions"])
    request = rng.choice(READING_REQUESTS).replace("{story}", story["text"]).replace("{question}", question)
    thought = rng.choice(["The story gives the answer.", "I look for it in the story."])
    messages = _exchange(request, answer, thought)
    if rng.random() < 0.3:
        next_question, next_answer = rng.choice(story["questions"])
        if next_question != question:
            messages += _exchange(next_question, next_answer, "The story gives the answer.")
    return messages


def topic_and_story(rng):
    """(topic phrase, story): the story is about what was asked for."""
    kind = rng.random()
    if kind < 0.45:
        topic, story = _story_about_object(rng)
    elif kind < 0.6:
        topic, story = _story_about_animal(rng)
    elif kind < 0.72:
        topic, story = _story_about_child(rng)
    elif kind < 0.85:
        topic = rng.choice(list(PLOTS_BY_LESSON))
        story = make_story(rng, rng.choice(PLOTS_BY_LESSON[topic]))
    else:
        story = make_story(rng)
        topic = story["topic"]
    return fix_articles(topic), story


def _story_about_object(rng):
    thing, color = rng.choice(TOYS), rng.choice(COLORS)
    if rng.random() < 0.25:
        thing = rng.choice(FLYERS)
    plots = OBJECT_PLOTS + (MORE_OBJECT_PLOTS if rng.random() < 0.5 else [])
    plot = rng.choice([plot for plot in plots if plot is not stuck or thing in FLYERS])
    if rng.random() < 0.4 and thing in FLYERS:
        plot = stuck
    story = make_story(rng, plot, object=thing, color=color)
    topic = f"a {color} {thing}" if rng.random() < 0.85 else f"a {thing}"
    if plot is gift and rng.random() < 0.3:
        topic = "a birthday gift"
    return topic, story


def _story_about_animal(rng):
    animal, name = rng.choice(list(ANIMALS)), rng.choice(PETS)
    story = make_story(rng, animal=animal, name=name)
    size = story["facts"]["size"]
    topic = rng.choice([f"a {animal}", f"a {animal}", f"a {size} {animal}", f"a {animal} named {name}"])
    if "small" in topic or "big" in topic:
        topic = f"a {animal}"
    return topic, story


def _story_about_child(rng):
    """May turn out to be about an animal: then another topic is drawn."""
    girl = rng.random() < 0.5
    name = rng.choice(GIRLS if girl else BOYS)
    story = make_story(rng, girl=girl, name=name, animal=None)
    if story["facts"]["species"] not in ("girl", "boy"):
        return topic_and_story(rng)
    friend = story["facts"]["friend"]
    both = f"{name} and {friend}" if friend in story["text"] else name
    return rng.choice([f"a {'girl' if girl else 'boy'} named {name}", name, both]), story
