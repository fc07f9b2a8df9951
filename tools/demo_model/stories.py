"""Seeded generator of short children's stories whose facts are known, so that questions about them have right answers.

    python3 stories.py [SEED]      prints one story of every plot
"""
import random
import sys

from plots_courage import big_and_small, echo, false_alarm, fear, king, lost_way, storm, trick, wishes
from plots_friends import birthday, newcomer, race, rain, rescue, sharing, sibling, sick, stars
from plots_making import baking, building, counting, music, paint, seed, skill, snowman
from plots_things import bottle, broken, gift, greedy, lost, stuck, trade, treasure
from story import Story

# In the order they are drawn from; a plot that stands twice is drawn twice as often.
PLOTS = [
    lost, lost, stuck, stuck, sharing, fear, broken, rescue, baking, newcomer, rain, race, seed, lost_way, building,
    gift, trade, wishes, birthday, big_and_small, treasure, snowman, skill, trick, greedy, sick, false_alarm, bottle,
    storm, stars, sibling, music, paint, counting, king, echo,
]
# Plots in which the object of the story matters most, and those in which it at least appears.
OBJECT_PLOTS = [lost, stuck, trade, gift, sharing, birthday, newcomer]
MORE_OBJECT_PLOTS = [race, rain, building, broken, fear, king, sick, sibling, skill]
PLOTS_BY_LESSON = {
    "sharing": [sharing], "being brave": [fear, lost_way], "telling the truth": [broken], "patience": [seed],
    "kindness": [rescue, race, big_and_small], "friendship": [newcomer, birthday], "trying again": [building],
    "helping": [baking, counting], "telling lies": [false_alarm], "being greedy": [greedy],
    "learning something new": [skill], "a brave child": [storm, fear],
}
OUTDOOR_PLOTS = [big_and_small, building, stuck, treasure, bottle, false_alarm, music]
INDOOR_PLACES = ("house", "school")
WAY_TO = {
    "park": "to the park", "garden": "to the garden", "forest": "into the forest", "beach": "to the beach",
    "farm": "to the farm", "school": "to school", "market": "to the market", "meadow": "to the meadow",
    "village": "to the village", "house": "back to the house", "river": "to the river", "hill": "up the hill",
    "harbor": "to the harbor", "orchard": "to the orchard",
}


def make_story(rng, plot=None, **wanted):
    """One story (see Story.tell) of a given or drawn plot; `wanted` fixes facts (see Story)."""
    story = Story(rng, **wanted)
    story.facts["star_count"] = rng.choice(["twenty", "forty", "fifty", "sixty", "eighty"])
    plot = plot or rng.choice(PLOTS)
    if story.facts["place"] in INDOOR_PLACES:
        _leave_the_house(story, plot)
    story.facts["to_place"] = WAY_TO[story.facts["place"]]
    story.facts["shop_place"] = rng.choice(["near the bridge", "on the corner", "at the market", "beside the mill"])
    told = story.tell(plot(story))
    told["plot"] = plot.__name__
    return told


def _leave_the_house(story, plot):
    if plot is rescue:
        story.move_to("meadow")
    elif plot in OUTDOOR_PLOTS:
        story.move_to(story.rng.choice(["meadow", "forest", "hill", "garden"]))


def main(rng_seed):
    rng = random.Random(rng_seed)
    for plot in dict.fromkeys(PLOTS):
        story = make_story(rng, plot)
        print(f"--- {story['plot']} / {story['topic']} / {story['lesson']}\n{story['text']}\n  ", story["questions"])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
