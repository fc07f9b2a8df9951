"""The facts of one story, and the filling of templates with them (template language: plot.py)."""
import re

from interludes import interlude
from words import (ANIMALS, BOYS, COLORS, GIRLS, GIVERS, LESSONS, PETS, PLACES, SMALL_ANIMALS, TIMES, TOYS, TRAITS,
                   WEATHER)

HOMES = [
    "in a little house by the sea", "in a small house near the woods", "in a tall house in the town",
    "in a village at the foot of a hill", "in a cottage with a blue door", "in a flat above the bakery",
    "on a farm with two cows", "in a house at the end of the lane", "in a stone house near the mill",
    "on a boat in the harbor", "at the edge of a great forest", "in a small town by the river",
]
SCENES = [
    "[Bees hummed in the clover|Birds sang in the hedge|The leaves whispered in the trees|The river shone like glass"
    "|A soft wind came from the sea].",
    "[The air smelled of rain|The air smelled of fresh bread|The grass was still wet|The clouds looked like sheep"
    "|The road was white with dust].",
    "{hero} [hummed a little tune|had a pocket full of nuts|wore a {other_color} coat|had slept well"
    "|was hungry as usual].",
    "[It was nearly summer|It was the first week of spring|Autumn had come|Winter was not far away"
    "|The holidays had just begun].",
    "{his} {parent} was [baking bread|mending a net|reading by the window|hanging up the washing|sweeping the steps].",
]
DESCRIPTIONS = ["a {trait} {species}", "a {size} {species}", "a {trait} {size} {species}",
                "a {trait} and {other_trait} {species}"]
OPENINGS = [
    "Once upon a time, there was {description} named {hero}. [{hero}|{he}] lived {home}.",
    "Once upon a time, there was {description} named {hero} who lived {home}.",
    "Once upon a time, {home}, there lived {description} named {hero}.",
    "Once upon a time, {description} named {hero} lived {home} with {his} {parent}.",
    "There was once {description} named {hero}. {hero} lived {home} and [loved|liked] {food}"
    " [more than anything|very much|best of all].",
    "Long ago, {description} named {hero} lived {home}.",
    "{home} lived {description} named {hero}. Everyone said that {hero} was {other_trait}.",
    "{hero} was {description} who lived {home}.",
    "Once there was {description} named {hero}. Every {time}, {hero} went out to play {at}.",
    "This is the story of {hero}, {description} who lived {home}.",
    "Once upon a time, there was {description} named {hero}, and {he}"
    " [lived {home}|was never without {his} {color} {object}|loved {food}].",
    "Once upon a time, there was {description} named {hero}. {his} best friend was {the_friend}.",
    "Far away, {home}, there lived {description} named {hero}. {he} had a friend called {friend}.",
]
LESSON_FRAMES = [
    "From that day on, {hero} knew that %s.", "{hero} never forgot that %s.", "And so {hero} learned that %s.",
    '"I see now," said {hero}. "%s."', "{hero} had learned that %s.",
]
ENDINGS = [
    "They all lived happily ever after.", "And that night {hero} slept very well.", "It was the best day of the year.",
    "And they were friends from then on.", "{hero} smiled all the way home.", "The stars came out, and all was well.",
    "That evening, {hero} told {his} {parent} the whole story.",
]
LAST_QUESTIONS = [("What is the name of the {species}?", "The {species} is called {hero}."),
                  ("Who is the story about?", "The story is about a {species} named {hero}.")]
PARAGRAPH_BREAKS = ["\n\n", "\n\n", "\n", " ", " "]

INNERMOST_CHOICE = re.compile(r"\[([^\[\]]*)\]")
SLOT = re.compile(r"\{(\w+)\}")
SLOT_DEPTH = 3  # a fact may name facts that name facts
ARTICLE_BEFORE_VOWEL = re.compile(r"\b([Aa]) (?=[aeiouAEIOU])(?!(?:one|use|uni|once|eu))")
# After ." a sentence starts; after !" or ?" the speaker follows ("Oh no!" cried Mia).
SENTENCE_START = re.compile(r'(^"?|[.!?] "?|\." |\n"?)([a-z])')


def fix_articles(text):
    """The article "a" becomes "an" before a vowel."""
    return ARTICLE_BEFORE_VOWEL.sub(r"\1n ", text)


class Story:
    """Facts drawn from a random generator. The order of the draws is part of the published data.

    `wanted` may fix some facts: animal (None: draw as usual), girl, name, color, object, place.
    """

    def __init__(self, rng, **wanted):
        self.rng = rng
        self.facts = {}
        animal = wanted.get("animal") or (rng.random() < 0.27 and rng.choice(list(ANIMALS)))
        self._draw_hero(animal, wanted)
        friend_animal = self._draw_friend(animal)
        self._draw_things(animal, wanted)
        self._draw_people(animal)
        self.move_to(wanted.get("place") or rng.choice(list(PLACES)))
        self.facts["weather"] = rng.choice(WEATHER)
        self.facts["time"] = rng.choice(TIMES)
        self.facts["small_animal"] = rng.choice([kind for kind in SMALL_ANIMALS if kind not in (animal, friend_animal)])
        sizes = ["small", "little", "tiny", "big", "tall", "young"] if animal else ["little", "young", "small"]
        self.facts["size"] = rng.choice(sizes)

    def _draw_hero(self, animal, wanted):
        rng, facts = self.rng, self.facts
        girl = wanted["girl"] if "girl" in wanted else rng.random() < 0.5
        facts["hero"] = wanted.get("name") or rng.choice(PETS if animal else GIRLS if girl else BOYS)
        self._set_pronouns("", girl)
        facts["species"] = animal or ("girl" if girl else "boy")
        if animal:
            facts["sound"], facts["home"], facts["moved"], facts["food"] = ANIMALS[animal]
            return
        facts["sound"] = "said"
        facts["moved"] = rng.choice(["ran", "walked", "hurried", "skipped"])
        facts["food"] = rng.choice(["bread", "apples", "cake", "pancakes", "soup"])
        facts["home"] = rng.choice(HOMES)

    def _draw_friend(self, animal):
        """Animals have animals as friends. Returns the kind of animal, or a false value."""
        rng, facts = self.rng, self.facts
        girl = rng.random() < 0.5
        friend_animal = animal and rng.choice([kind for kind in ANIMALS if kind != animal])
        names = PETS if animal else GIRLS if girl else BOYS
        facts["friend"] = rng.choice([name for name in names if name != facts["hero"]])
        self._set_pronouns("friend_", girl)
        facts["friend_kind"] = friend_animal or ("girl" if girl else "boy")
        facts["the_friend"] = rng.choice(["{friend}", "{friend} the {friend_kind}"]) if animal else "{friend}"
        return friend_animal

    def _draw_things(self, animal, wanted):
        rng, facts = self.rng, self.facts
        facts["trait"], facts["other_trait"] = rng.sample(TRAITS, 2)
        facts["color"] = wanted.get("color") or rng.choice(COLORS)
        facts["other_color"] = rng.choice([color for color in COLORS if color != facts["color"]])
        facts["object"] = wanted.get("object") or rng.choice(TOYS)
        facts["giver"] = rng.choice(GIVERS[:4] if animal else GIVERS)

    def _draw_people(self, animal):
        rng, facts = self.rng, self.facts
        if facts["giver"] in ("grandmother", "mother", "aunt", "sister"):
            facts["giver_he"] = "she"
        elif facts["giver"] in ("grandfather", "father", "uncle", "brother"):
            facts["giver_he"] = "he"
        else:
            facts["giver_he"] = rng.choice(["she", "he"])
        facts["parent"] = rng.choice(["mother", "father", "grandmother", "grandfather"])
        self._set_pronouns("parent_", "mother" in facts["parent"])

    def _set_pronouns(self, prefix, female):
        pronouns = ("she", "her", "her") if female else ("he", "him", "his")
        for slot, pronoun in zip(("he", "him", "his"), pronouns):
            self.facts[prefix + slot] = pronoun

    def move_to(self, place):
        """Sets the place of the action and draws three spots in it."""
        self.facts["place"] = place
        self.facts["at"], spots = PLACES[place]
        self.facts["spot1"], self.facts["spot2"], self.facts["spot3"] = self.rng.sample(spots, 3)

    def fill(self, template):
        """Text of a template: choices from the inside out, then slots, then spacing, articles and capitals."""
        text, before = template, None
        while text != before:
            before = text
            text = INNERMOST_CHOICE.sub(lambda match: self.rng.choice(match.group(1).split("|")), before)
        for _ in range(SLOT_DEPTH):
            text = SLOT.sub(lambda match: self.facts[match.group(1)], text)
        text = re.sub(r"  +", " ", text).strip().replace(" .", ".").replace(" ,", ",")
        return SENTENCE_START.sub(lambda match: match.group(1) + match.group(2).upper(), fix_articles(text))

    def tell(self, plot):
        """The story of a Plot as a dictionary: text, questions (question, answer), topic, lesson and facts."""
        paragraphs = [list(paragraph) for paragraph in plot.paragraphs]
        self._add_interludes(paragraphs)
        paragraphs[0].insert(0, self._opening())
        self._add_ending(paragraphs[-1], plot.lesson)
        separator = self.rng.choice(PARAGRAPH_BREAKS)
        filled = (filter(None, map(self.fill, paragraph)) for paragraph in paragraphs)
        text = separator.join(" ".join(sentences) for sentences in filled)
        questions = [(self.fill(question), self.fill(answer)) for question, answer in plot.questions]
        question, answer = self.rng.choice(LAST_QUESTIONS)
        questions.append((self.fill(question), self.fill(answer)))
        topic = self.fill(plot.topic)
        return {"text": text, "questions": questions, "topic": topic[0].lower() + topic[1:], "lesson": plot.lesson,
                "facts": self.facts}

    def _add_interludes(self, paragraphs):
        """A scene after the first paragraph and free sentences anywhere but in the last one."""
        rng = self.rng
        if rng.random() < 0.4:
            paragraphs[0].append(rng.choice(SCENES))
        for _ in range(rng.choice([0, 1, 1, 2, 2, 3])):
            paragraph = rng.choice(paragraphs[:-1])
            position = rng.randint(1, len(paragraph))
            paragraph.insert(position, interlude(rng))

    def _opening(self):
        self.facts["description"] = self.rng.choice(DESCRIPTIONS)
        return self.rng.choice(OPENINGS)

    def _add_ending(self, paragraph, lesson):
        rng = self.rng
        if lesson and rng.random() < 0.7:
            moral = rng.choice(LESSONS[lesson])
            paragraph.append(rng.choice(LESSON_FRAMES) % moral)
        if rng.random() < 0.35:
            paragraph.append(rng.choice(ENDINGS))
