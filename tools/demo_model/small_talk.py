"""Conversations that are not about a story: greetings, and questions about the lists in words.py."""
from story import fix_articles
from words import COLOR_OF, HOME_OF, OPPOSITES, SOUNDS

GREETINGS = [
    ("Hello!", "Hello! Would you like to hear a story?"),
    ("Hi", "Hi! Shall I tell you a story?"),
    ("Hello", "Hello! What shall the story be about?"),
    ("Good morning!", "Good morning! What would you like to hear?"),
    ("Good night.", "Good night! Sleep well."),
    ("Who are you?", "I am a very small language model. I tell short stories for children."),
    ("What are you?", "I am a tiny model that was trained to tell simple stories."),
    ("What can you do?", "I can tell short stories and answer simple questions about them."),
    ("What is your name?", "I have no name. I am a tiny story teller."),
    ("Thank you!", "You are welcome!"),
    ("Thanks", "You are welcome! Would you like another story?"),
    ("How are you?", "I am well, thank you. How are you?"),
    ("Can you do my homework?", "I am too small for that, but I can tell you a story."),
    ("Are you a person?", "No, I am a small computer program that tells stories."),
    ("Bye", "Goodbye! Come back for another story."),
    ("Goodbye!", "Goodbye! It was nice to talk with you."),
]


def small_talk(rng):
    """One exchange: (question, answer, thought)."""
    kind = rng.random()
    if kind < 0.45:
        question, answer = rng.choice(GREETINGS)
        thought = "A simple message. I answer politely."
    elif kind < 0.6:
        question, answer, thought = _sound(rng)
    elif kind < 0.75:
        question, answer, thought = _opposite(rng)
    elif kind < 0.88:
        thing, color = rng.choice(list(COLOR_OF.items()))
        question, answer = f"What color is {thing}?", f"{_capital(thing)} is {color}."
        thought = "A question about colors."
    else:
        animal, home = rng.choice(list(HOME_OF.items()))
        question, answer = f"Where does {animal} live?", f"{_capital(animal)} lives in {home}."
        thought = "A question about homes."
    return fix_articles(question), fix_articles(answer), thought


def _sound(rng):
    animal, sound = rng.choice(list(SOUNDS.items()))
    question = rng.choice([f"What does a {animal} say?", f"What sound does a {animal} make?"])
    return question, f"A {animal} says {sound}.", f"I know the sound of a {animal}."


def _opposite(rng):
    word, opposite = rng.choice(list(OPPOSITES.items()))
    if rng.random() < 0.5:
        word, opposite = opposite, word
    question = rng.choice([f"What is the opposite of {word}?", f"Tell me the opposite of {word}."])
    return question, f"The opposite of {word} is {opposite}.", "A question about opposites."


def _capital(text):
    return text[0].upper() + text[1:]
