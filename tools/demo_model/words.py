"""Word lists of the story generator. Lists are drawn from by position: their order is part of the published data."""


def split_words(text):
    """The comma-separated words of a text."""
    return [word.strip() for word in text.replace("\n", " ").split(",") if word.strip()]


GIRLS = split_words("""
Mia, Lily, Anna, Rosa, Ella, Nora, Zoe, Lucy, Ruby, Clara, Ivy, Maya, Tess, Holly, Jane, Kate, Molly, Nina, Olive,
Penny, Sara, Tilly, Vera, Wendy, Amy, Beth, Cora, Daisy, Emma, Fay, Gina, Hana, Iris, Joy, Kira, Lena, Mina, Nell,
Pia, Rita, Sofia, Tara, Una, Willa, Ada, Bella, Dora, Eva""")
BOYS = split_words("""
Tom, Ben, Max, Sam, Leo, Jack, Finn, Oscar, Hugo, Theo, Noah, Eli, Adam, Toby, Will, Luke, Ned, Omar, Peter, Ravi,
Simon, Tim, Victor, Walter, Alan, Bruno, Carl, Dan, Emil, Felix, George, Henry, Ian, Jonas, Karl, Liam, Milo, Nico,
Otto, Paul, Rory, Stan, Ted, Ugo, Vince, Yusuf, Zack, Amir""")
PETS = split_words("""
Pip, Biscuit, Button, Clover, Dusty, Ember, Fern, Ginger, Hazel, Inky, Jasper, Kip, Lulu, Maple, Nutmeg, Oats,
Pepper, Quill, Rusty, Sunny, Toffee, Velvet, Whisker, Ziggy, Bramble, Pebble, Poppy, Socks, Patch, Moss""")
# species: (sound verb, home, way of moving, favourite food)
ANIMALS = {
    "fox": ("yelped", "in a den under an oak", "trotted", "berries"),
    "rabbit": ("squeaked", "in a burrow in the meadow", "hopped", "carrots"),
    "mouse": ("squeaked", "in a hole in the old wall", "scurried", "cheese"),
    "bear": ("growled", "in a cave on the hill", "padded", "honey"),
    "owl": ("hooted", "in a hollow tree", "flew", "seeds"),
    "duck": ("quacked", "in a nest by the pond", "waddled", "bread"),
    "frog": ("croaked", "in a pool of green water", "jumped", "flies"),
    "hedgehog": ("snuffled", "in a pile of dry leaves", "shuffled", "apples"),
    "squirrel": ("chattered", "in a nest high in a pine", "leaped", "nuts"),
    "cat": ("meowed", "in a basket by the stove", "crept", "fish"),
    "dog": ("barked", "in a kennel in the yard", "ran", "bones"),
    "goat": ("bleated", "in a shed on the farm", "skipped", "grass"),
    "lamb": ("bleated", "in a warm barn", "skipped", "clover"),
    "pony": ("neighed", "in a stable behind the mill", "galloped", "oats"),
    "turtle": ("sighed", "on a quiet bank of the river", "crawled", "lettuce"),
    "badger": ("grunted", "in a tunnel below the roots", "trudged", "roots"),
    "otter": ("whistled", "in a den by the river", "swam", "fish"),
    "penguin": ("honked", "on a snowy shore", "waddled", "fish"),
    "elephant": ("trumpeted", "on a wide green plain", "stomped", "leaves"),
    "monkey": ("chattered", "in a tall fig tree", "swung", "bananas"),
    "beaver": ("grunted", "in a lodge in the stream", "paddled", "twigs"),
    "mole": ("mumbled", "in a long dark tunnel", "dug", "roots"),
    "kitten": ("mewed", "in a box with a soft blanket", "tiptoed", "fish"),
    "puppy": ("yapped", "in a little red kennel", "bounced", "biscuits"),
    "dragon": ("rumbled", "in a cave behind the waterfall", "flapped", "soup"),
    "hen": ("clucked", "in a small coop", "strutted", "corn"),
}
SMALL_ANIMALS = split_words("""
bird, kitten, puppy, rabbit, duckling, lamb, hedgehog, squirrel, turtle, mouse, owl, foal, fawn, hen, frog""")
COLORS = split_words("red, blue, green, yellow, purple, orange, white, black, brown, pink, silver, golden, grey")
TOYS = split_words("""
ball, kite, boat, drum, doll, train, hat, scarf, book, lantern, bell, whistle, basket, blanket, cup, key, ring,
box, wagon, bike, sled, umbrella, shell, button, coin, map, flute, top, rope, cart, mitten, brush, flag, balloon,
bucket, bag, feather, marble, ribbon, spoon, robot, crown, cape, mask, lamp, puppet, scooter, teapot, jar, pencil""")
FLYERS = split_words("kite, balloon, ball, hat, flag, scarf, feather, ribbon, paper plane")
BREAKABLE = split_words("vase, plate, teapot, cup, jar, bowl, lamp, window, mirror, flower pot, clock, jug")
GIVERS = split_words("grandmother, grandfather, mother, father, aunt, uncle, sister, brother, teacher, neighbor")
# place: (where something happens, five spots to look behind)
PLACES = {
    "park": ("in the park", [
        "under the bench", "behind the fountain", "beside the slide", "in the flower bed", "near the gate"
    ]),
    "garden": ("in the garden", [
        "under the rose bush", "behind the shed", "among the cabbages", "beside the well", "in the wheelbarrow"
    ]),
    "forest": ("in the forest", [
        "in a hollow log", "under a fern", "behind a mossy rock", "at the foot of an oak", "in a heap of leaves"
    ]),
    "beach": ("on the beach", [
        "behind a sand dune", "under a wet towel", "between two rocks", "inside an old boat", "next to a tide pool"
    ]),
    "farm": ("on the farm", [
        "in the haystack", "behind the barn", "under the cart", "beside the pig pen", "in the feed box"
    ]),
    "school": ("at school", [
        "under the desk", "behind the piano", "in the coat room", "on the top shelf", "beside the chalkboard"
    ]),
    "market": ("at the market", [
        "under the fruit stand", "behind a barrel", "beside the fish stall", "in an empty crate", "near the bread cart"
    ]),
    "meadow": ("in the meadow", [
        "in the tall grass", "under a willow", "beside the stream", "behind a fence post", "near the beehives"
    ]),
    "village": ("in the village", [
        "behind the bakery", "under the stone bridge", "beside the pump", "on the church steps", "near the old mill"
    ]),
    "house": ("in the house", [
        "under the bed", "behind the sofa", "in the laundry basket", "on the kitchen shelf", "inside a boot"
    ]),
    "river": ("by the river", [
        "under a flat stone", "among the reeds", "behind the mill wheel", "on a sandy bank", "beside the little bridge"
    ]),
    "hill": ("on the hill", [
        "behind a big rock", "under a thorn bush", "near the goat path", "beside the windmill", "in a patch of clover"
    ]),
    "harbor": ("at the harbor", [
        "behind a coil of rope", "under a net", "beside the crane", "in a lobster pot", "near the lighthouse"
    ]),
    "orchard": ("in the orchard", [
        "under the pear tree", "behind a ladder", "in a basket of plums", "beside the stone wall", "in the long grass"
    ]),
}
TRAITS = split_words("""
kind, brave, curious, shy, clever, cheerful, quiet, careful, lively, gentle, stubborn, dreamy, busy, patient,
funny, polite, restless, thoughtful""")
WEATHER = split_words("sunny, windy, rainy, cold, warm, foggy, snowy, bright, cloudy, frosty")
TIMES = split_words("morning, afternoon, evening, day")
FOODS = split_words("bread, soup, pie, cake, porridge, pancakes, jam, cookies, salad, stew, muffins, rolls")
INGREDIENTS = split_words("""
eggs, milk, butter, flour, sugar, honey, salt, apples, carrots, cherries, nuts, raisins, cream, plums, onions,
lemons""")
PLANTS = split_words("""
sunflower, bean, pumpkin, rose, apple tree, tomato, tulip, carrot, pear tree, strawberry, melon, oak""")
BUILDS = split_words("""
tree house, raft, bridge, snow fort, bird house, sand castle, tent, wagon, boat, tower, swing, hut""")
# fear: (what happens, what it really is)
FEARS = {
    "the dark": ("a scratching sound came from the corner", "a tiny mouse with a crumb"),
    "thunder": ("the sky flashed and boomed", "only the clouds bumping about"),
    "the big dog": ("the big dog stood in the gate", "a lonely dog that wanted to play"),
    "deep water": ("the water looked green and cold", "a pool where feet could touch the sand"),
    "high places": ("the ladder seemed to reach the sky", "a short climb with a lovely view"),
    "the old house": ("a pale shape moved behind the window", "a white curtain in the wind"),
    "the cellar": ("something rattled below the stairs", "a loose jar on the shelf"),
    "strangers": ("a tall man with a beard knocked at the door", "a mailman with a parcel"),
}
# lesson: ways to say it
LESSONS = {
    "sharing": [
        "sharing makes every game better",
        "a thing is more fun when it is shared",
        "two can be happy with one toy",
    ],
    "honesty": [
        "the truth may be hard, but it makes the heart light",
        "it is best to tell the truth",
        "an honest word is worth more than a vase",
    ],
    "courage": [
        "being brave means trying even when you are afraid",
        "a scary thing is often small when you look at it",
        "courage grows each time you use it",
    ],
    "patience": [
        "good things take time",
        "waiting is easier with a friend",
        "a little care each day can do great things",
    ],
    "kindness": [
        "a small kindness can come back in a big way",
        "it is good to help those who are small",
        "kind deeds are never lost",
    ],
    "friendship": [
        "a friend is the best thing to find",
        "friends make hard days easy",
        "a shy smile can start a friendship",
    ],
    "trying": [
        "you can learn from every fall",
        "if you try again, you may do it",
        "a mistake is only a step on the way",
    ],
    "care": [
        "it is wise to look after the things you love",
        "one should look twice before giving up",
        "a careful eye finds what a hasty foot steps over",
    ],
    "enough": [
        "it is good to be glad of what you have",
        "the best wish is one you can share",
        "enough is as good as a feast",
    ],
    "helping": [
        "many hands make the work light",
        "asking for help is not a weakness",
        "together they could do what one could not",
    ],
}
SOUNDS = {
    "cow": "moo", "dog": "woof", "cat": "meow", "duck": "quack", "sheep": "baa", "pig": "oink", "horse": "neigh",
    "owl": "hoot", "frog": "croak", "lion": "roar", "hen": "cluck", "mouse": "squeak", "bee": "buzz", "snake": "hiss",
}
OPPOSITES = {
    "big": "small", "hot": "cold", "up": "down", "day": "night", "happy": "sad", "fast": "slow", "wet": "dry",
    "old": "young", "open": "closed", "full": "empty", "loud": "quiet", "soft": "hard", "light": "dark",
    "near": "far", "early": "late", "high": "low", "clean": "dirty", "strong": "weak",
}
COLOR_OF = {
    "grass": "green", "the sky": "blue", "snow": "white", "the sun": "yellow", "a banana": "yellow",
    "a carrot": "orange", "coal": "black", "a cherry": "red", "a plum": "purple", "chocolate": "brown",
    "milk": "white", "a leaf": "green", "a pig": "pink", "an elephant": "grey",
}
HOME_OF = {
    "a bird": "a nest", "a bee": "a hive", "a rabbit": "a burrow", "a dog": "a kennel", "a fish": "the water",
    "a horse": "a stable", "a fox": "a den", "a bear": "a cave", "a hen": "a coop", "a cow": "a barn",
    "a spider": "a web", "a king": "a castle",
}
