"""Free sentences between those of the plot: things seen, heard and thought on the way. None changes the plot."""
from words import split_words

BEASTS = split_words("""
cat, dog, hen, goose, cow, sheep, goat, crow, sparrow, robin, frog, snail, beetle, spider, fox, rabbit, hedgehog,
squirrel, duck, horse, donkey, pig, butterfly, moth, bee, lizard, toad, swan""")
PEOPLE = split_words("""
farmer, baker, miller, fisherman, sailor, soldier, tailor, shepherd, gardener, blacksmith, postman, painter, king,
queen, nurse, teacher, fiddler, old man, old woman, girl, boy, shoemaker, beggar, merchant""")
PLACES_SEEN = split_words("""
on the wall, under a bush, in the sun, by the gate, near the well, on the roof, at the side of the road,
under the bridge, in the long grass, by the fire, beside a hedge, in the shade of a tree, on a stone, behind a fence,
in front of the church""")
BEAST_ACTIONS = split_words("""
slept, sat, sang, hopped about, looked for food, washed its face, scratched the ground, stretched itself,
watched the clouds, chased its tail, shook itself, hid, waited, ate its dinner, ran to and fro""")
PERSON_ACTIONS = split_words("""
was singing, was sleeping, was eating an apple, was counting coins, was chopping wood, was playing the fiddle,
was mending a shoe, was selling eggs, was telling a tale, was waiting for a friend, was feeding the birds,
was painting a sign, was cutting bread, was looking at the sky""")
BEAST_TRAITS = split_words("small, fat, thin, young, old, lazy, hungry, happy, clever, proud")
COUNTS = split_words("Two, Three, Four, Seven, Many")
FLOCKS = split_words("sparrows, crows, geese, ducks, bees, swans, cows, sheep")
TIMES_OF_GREETING = split_words("morning, day, luck")
REMARKS = ["What a fine day", "Where are you going", "How is your {parent}", "It will rain before night",
           "Mind the mud"]
THINKING = ["thought of", "remembered", "dreamed of", "talked about"]
THOUGHTS = ["the sea", "the last winter", "a warm supper", "an old song", "the mountains",
            "a story that {his} {parent} used to tell", "the moon", "the great fair", "a long journey",
            "the king and his castle"]
THINGS_AROUND = split_words("wind, rain, sun, snow, moon, river, clock, old door, fire, church bell")
MOODS = ["was the only sound", "seemed to be listening", "made everything look new",
         "went on as if nothing had happened", "was kind that day"]
BELONGINGS = ["a crumb of cheese", "three nuts", "a piece of string", "a red apple", "an old button", "half a biscuit",
              "a smooth stone", "a blue feather", "a wooden whistle", "a bit of chalk"]
CONTAINERS = split_words("pocket, bag, basket, hand")
EXCLAMATIONS = ["How quiet it is", "How far it is", "How bright it looks", "How strange", "How lovely",
                "How big the world is"]
SPEAKING = split_words("said, thought, whispered")
HEARING = ["It was so quiet that one could hear", "From far away came the sound of", "Somewhere there was the sound of",
           "They could hear"]
NOISES = ["a bell", "a drum", "a flute", "a dog barking", "children laughing", "the waves", "a cart on the road",
          "an owl", "a blacksmith at work", "someone singing"]


def interlude(rng):
    """One template of a free sentence."""
    kind = rng.randrange(9)
    beast, person, where = rng.choice(BEASTS), rng.choice(PEOPLE), rng.choice(PLACES_SEEN)
    choose = rng.choice
    if kind == 0:
        return f"A {choose(BEAST_TRAITS)} {beast} {choose(BEAST_ACTIONS)} {where}."
    if kind == 1:
        return f"{where}, a {person} {choose(PERSON_ACTIONS)}."
    if kind == 2:
        flock_actions = ["flew over the roofs", "went by", "were making a great noise", "looked on", "rested " + where]
        return f"{choose(COUNTS)} {choose(FLOCKS)} {choose(flock_actions)}."
    if kind == 3:
        return _greeting(choose, person, where)
    if kind == 4:
        return f"{{hero}} {choose(THINKING)} {choose(THOUGHTS)}."
    if kind == 5:
        return f"The {choose(THINGS_AROUND)} {choose(MOODS)}."
    if kind == 6:
        return f"{{he}} had {choose(BELONGINGS)} in {{his}} {choose(CONTAINERS)}."
    if kind == 7:
        return f'"{choose(EXCLAMATIONS)}!" {choose(SPEAKING)} {{hero}}.'
    return f"{choose(HEARING)} {choose(NOISES)}."


def _greeting(choose, person, where):
    """A passer-by says a word to the hero."""
    hello = f'"Good {choose(TIMES_OF_GREETING)}, {{hero}}," said a {person} who '
    doing = choose(["came by", "was resting " + where, "stood " + where])
    remark = choose(REMARKS)
    mark = choose([".", "!"])
    if remark.startswith(("Where", "How")):
        mark = "?"
    return f'{hello}{doing}. "{remark}{mark}"'
