"""Plots about making and learning."""
from plot import Plot, parse_paragraphs
from words import BUILDS, FOODS, INGREDIENTS, PLANTS

COUNTABLE_INGREDIENTS = ("eggs", "apples", "carrots", "cherries", "nuts", "raisins", "plums", "onions", "lemons")
NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve thirteen".split()


def baking(story):
    """One ingredient is missing; a friend has it."""
    facts = story.facts
    choose = story.rng.choice
    facts["dish"] = choose(FOODS)
    first, second, missing = story.rng.sample(INGREDIENTS, 3)
    facts.update(first_ingredient=first, second_ingredient=second, missing_ingredient=missing)
    facts["there_was"] = "there were" if missing in COUNTABLE_INGREDIENTS else "there was"
    facts["guest"] = choose([
        "{his} {parent}", "the whole village", "{his} friend {friend}", "a sick neighbor", "the new teacher"
    ])
    paragraphs = parse_paragraphs("""
        One {weather} {time}, {hero} wanted to make {dish} for {guest}. {he} put {first_ingredient} and
          {second_ingredient} on the table. But {there_was} no {missing_ingredient}!

        {hero} went to {the_friend}. "Do you have any {missing_ingredient}?" {he} asked. "[I do|Yes, I have some|Of
          course]," said {friend}, "but I need [someone to hold my ladder|help with my cart|help to find my
          {object}]." So {hero} helped, and {friend} gave {him} the {missing_ingredient} in a {color}
          [bowl|bag|basket|jar].
        [Back in the kitchen|At home], {hero} [mixed and stirred|stirred and stirred|mixed everything with a wooden
          spoon]. [Soon|After an hour] the whole house smelled [sweet|wonderful|of {dish}].

        [The first bite was too hot.|There was flour on {his} nose.|It did not look perfect, but it tasted very good.]
          {hero} shared the {dish} with {guest}, and {friend} got the biggest [piece|bowl|share].
        "[This is the best {dish} that I have ever had|Delicious|May I have some more]!" [said {friend}|everyone
          said].
    """)
    questions = [
        ("What did {hero} make?", "{hero} made {dish}."),
        ("What was missing?", "{there_was} no {missing_ingredient} in the house."),
        ("Who gave {hero} the {missing_ingredient}?", "{friend} gave {hero} the {missing_ingredient}."),
    ]
    return Plot(paragraphs, questions, choose(["helping", "kindness"]), "making {dish}")


def seed(story):
    """A seed takes its time to grow."""
    facts = story.facts
    choose = story.rng.choice
    facts["plant"] = choose(PLANTS)
    facts["pot"] = choose(["a {color} pot", "a {color} bucket", "a {color} jar", "a {color} box"])
    tall = facts["plant"] in ("sunflower", "bean", "apple tree", "rose", "pear tree", "oak")
    facts["result"] = "a {plant}, taller than {hero}" if tall else "the finest {plant} in the garden"
    paragraphs = parse_paragraphs("""
        One {weather} {time}, {his} {giver} gave {hero} a tiny seed. "[Plant it and be patient|Give it water and
          wait|Look after it]," {giver_he} said. {hero} planted the seed in {pot} and put it [by the window|in the
          sun|near the door].

        The next day {hero} looked. Nothing. [The day after that, still nothing.|Two days later, still nothing.] "[It
          is taking too long|Perhaps it is asleep|My seed does not work]," said {hero}. "[Wait a little|It is working
          under the ground|Seeds are slow]," said {the_friend}.
        So {hero} gave it water every day. [{he} sang to it.|{he} told it stories.|{he} moved it when the shade came.]
          One week passed, and then another.

        Then, one morning, there was a [small|thin|bright] green [leaf|shoot]! It grew and grew. [By summer|In the
          end] it was {result}.
        "You see?" said {his} {giver}. {hero} [saved the seeds and gave one to {friend}|showed it to everyone|was very
          proud].
    """)
    questions = [
        ("What did {hero} plant?", "{hero} planted a seed in {pot}."),
        ("What grew from the seed?", "A {plant} grew from the seed."),
        ("Who gave {hero} the seed?", "The seed came from {his} {giver}."),
    ]
    return Plot(paragraphs, questions, "patience", "a tiny seed")


def building(story):
    """The third attempt to build something stands."""
    facts = story.facts
    choose = story.rng.choice
    facts["building"] = choose(BUILDS)
    facts["material"] = choose(["old boards", "sticks and string", "boxes and rope", "branches", "planks and nails"])
    if facts["building"] == "snow fort":
        facts["material"] = "blocks of snow"
    if facts["building"] == "sand castle":
        facts["material"] = "wet sand and shells"
    paragraphs = parse_paragraphs("""
        {hero} wanted to build a {building}. [{he} had dreamed of it all winter.|{he} drew a plan on a sheet of
          paper.|{he} had seen one in a book.] {he} gathered {material} and set to work {at}.

        The first one [fell down|broke|leaned to the left and fell over]. {hero} [kicked a stone|sat down and
          frowned|groaned]. The second one fell down too. "[I give up|I cannot do it]," said {hero}.
        {the_friend} [looked at it|walked around it|scratched {friend_his} head]. "[The bottom is too small|It needs a
          stronger base|You build too fast]," {friend_he} said. "[Try again, and I will hold it|Shall we try once
          more|Let us do it together]."

        So they tried a third time. [They worked slowly.|They worked until noon.|{hero} measured and {friend} held.]
          And this time the {building} stood! They put a {color} {object} on top [for luck|so that all could see
          it|like a flag].
        "[It is perfect|It is a little crooked, but it is ours|We did it]," said {hero}. [They sat there and ate
          {food}.|Everyone came to see it.]
    """)
    questions = [
        ("What did {hero} build?", "{hero} built a {building}."),
        ("What was it made of?", "It was made of {material}."),
        ("How many times did they try?", "They tried three times."),
        ("What did they put on top?", "They put a {color} {object} on top."),
    ]
    return Plot(paragraphs, questions, "trying", "building a {building}")


def snowman(story):
    """A snowman melts and the next winter comes."""
    facts = story.facts
    choose = story.rng.choice
    facts["nose"] = choose(["a carrot", "a red pepper", "a pine cone", "an old spoon"])
    facts["eyes"] = choose(["two black stones", "two buttons", "two walnuts", "two bits of coal"])
    paragraphs = parse_paragraphs("""
        [In the night|While everyone slept] it had snowed, and the whole world was white. {hero} and {friend} ran out
          to build a snowman. [They rolled a big ball and then a smaller one.|They worked until their fingers were
          cold.]

        For the nose they took {nose}, and for the eyes {eyes}. {hero} put a {color} hat on its head. "[What shall we
          call him|What is his name]?" asked {friend}. "[Mr. White|Old Frost|Captain Snow|King Winter]," said {hero}.
        [Every day|Each morning] they [greeted|waved to] the snowman. But then the sun grew warm, and he [became
          smaller and smaller|began to drip]. "He is going away!" [cried|said] {friend}.

        "[Snow becomes water, and water becomes rain|He is only going home to the sky]," said {his} {parent}. "[Next
          winter he will come back|One day he will fall again]." {hero} kept the {color} hat and put it [on a nail by
          the door|in a box]. And when the first snow fell the next year, {hero} and {friend} were ready.
    """)
    questions = [
        ("What did they use for the nose?", "They used {nose} for the nose."),
        ("What were the eyes made of?", "The eyes were {eyes}."),
        ("What color was the hat?", "The hat was {color}."),
        ("Who built the snowman?", "{hero} and {friend} built the snowman."),
    ]
    return Plot(paragraphs, questions, "patience", "a snowman")


def skill(story):
    """Something hard is learned after many attempts."""
    facts = story.facts
    choose = story.rng.choice
    facts["skill"] = choose([
        "whistle", "swim", "ride a bike", "climb a rope", "skate on the ice", "play the flute", "tie a knot",
        "dance", "jump over the stream", "write {his} name"
    ])
    facts["try_count"] = choose(["five", "seven", "ten", "twelve", "twenty"])
    animals_can = facts["skill"] in ("swim", "dance", "whistle", "jump over the stream")
    facts["passed_on"] = ", and {he} taught a little {small_animal} to do it too" if animals_can else ""
    paragraphs = parse_paragraphs("""
        Everyone {hero} knew could {skill}. Only {hero} could not. [It looked so easy when others did it.|{friend} had
          learned it in one day.]

        "Teach me," {he} said to {the_friend}. {friend} showed {him} how to begin. {hero} tried, and it went wrong.
          {he} tried {try_count} times, and it went wrong {try_count} times. "[I am no good at this|I will never learn
          it]," said {hero}, and threw down {his} {color} {object}.
        "[I fell down a hundred times|I cried when I learned it|Nobody saw me fail, but I did]," said {friend}. "[Rest
          a little|Sleep on it], and then try once more."

        The next {time} {hero} tried again. [At first nothing happened.|{he} held {his} breath.] And then, all at
          once, it worked! "[Look at me|I can do it|Did you see that]!" [{he} shouted|cried {hero}]. [{friend}
          clapped.|Even {his} {parent} came to see.] After that {hero} could {skill} as well as anyone{passed_on}.
    """)
    questions = [
        ("What did {hero} want to learn?", "{hero} wanted to learn to {skill}."),
        ("Who taught {hero}?", "{friend} taught {hero}."),
        ("How many times did {hero} try on the first day?", "{hero} tried {try_count} times."),
    ]
    return Plot(paragraphs, questions, "trying", "learning something new")


def music(story):
    """Noise becomes music in time for the feast."""
    facts = story.facts
    choose = story.rng.choice
    facts["instrument"] = choose(["drum", "flute", "bell", "whistle", "fiddle", "horn"])
    facts["listener"] = choose(["The baker", "The king", "The teacher", "An old man", "The mayor"])
    paragraphs = parse_paragraphs("""
        {hero} had a {color} {instrument} and played it all day long. [It was very loud.|It did not sound good at
          first.] {listener} [closed the window|put wool in his ears]. "[Stop that noise|Must you play here]!" he
          said. So {hero} went {to_place} and played where nobody could hear.

        Only {the_friend} came to listen. "[Play it again|I like it]," said {friend}. {hero} practiced until the notes
          were [clear|sweet|as bright as water]. Then the great feast came, and the musicians [did not arrive|were
          stuck in the mud|had all caught colds]. "[What is a feast without music|What shall we do]?" everyone asked.
        "{hero} can play," said {friend}. {hero} [trembled|turned pale], but {he} lifted the {color} {instrument} and
          began. One foot [began to tap|tapped], then another, and soon the whole square was dancing.

        {listener} danced most of all. "[Forgive me|I was wrong]," he said. "[I did not know that noise can grow into
          music.|Play whenever you like.]" [{hero} bowed, and {friend} bowed too.|They danced until the moon went
          down.]
    """)
    questions = [
        ("What did {hero} play?", "{hero} played a {color} {instrument}."),
        ("Who liked the music first?", "{friend} liked it first."),
        ("What color was the {instrument}?", "The {instrument} was {color}."),
    ]
    return Plot(paragraphs, questions, "patience", "a {color} {instrument}")


def paint(story):
    """Two paints are mixed by accident."""
    facts = story.facts
    choose = story.rng.choice
    first, second, mixed = choose([
        ("blue", "yellow", "green"), ("red", "yellow", "orange"), ("red", "blue", "purple"),
        ("black", "white", "grey"), ("red", "white", "pink"),
    ])
    facts.update(first_paint=first, second_paint=second, mixed_paint=mixed)
    facts["thing"] = choose(["a boat", "a tree", "a dragon", "a house", "a castle", "a whale", "{his} {parent}"])
    paragraphs = parse_paragraphs("""
        {hero} wanted to paint {thing}. But {he} had only two pots of paint, {first_paint} and {second_paint}. "I need
          {mixed_paint}," said {hero}. "Without {mixed_paint} it will not look right."

        {he} asked {the_friend}. "I have no {mixed_paint} paint either," said {friend}. {friend_he} looked into the
          [cupboard|shed|old chest], but there was none. [They were about to give up.|{hero} sat down and sighed.]
          Then {friend} [bumped the table|sneezed], and the {first_paint} paint ran into the {second_paint} paint. "Oh
          no!" cried {friend}. "Now it is all spoiled!"
        But {hero} looked at the puddle. Where the colors met, there was something new. "Look," {he} said softly.
          "{first_paint} and {second_paint} make {mixed_paint}!"

        So {hero} painted {thing} in {mixed_paint}, and it was [beautiful|just right]. [They hung it over the
          door.|{his} {parent} hung it on the wall.] "It was a good accident," said {friend}. "[The best ones are|We
          should spill things more often]," said {hero}, and they laughed.
    """)
    questions = [
        ("What did {hero} want to paint?", "{hero} wanted to paint {thing}."),
        ("Which two colors did {hero} have?", "{hero} had {first_paint} and {second_paint}."),
        ("What do {first_paint} and {second_paint} make?", "{first_paint} and {second_paint} make {mixed_paint}."),
        ("Who spilled the paint?", "{friend} spilled the paint."),
    ]
    return Plot(paragraphs, questions, "trying", "paint")


def counting(story):
    """A shopping list is forgotten and worked out again."""
    facts = story.facts
    first, second = story.rng.randint(2, 6), story.rng.randint(2, 6)
    facts.update(first_count=NUMBERS[first], second_count=NUMBERS[second], total_count=NUMBERS[first + second])
    facts["first_item"], facts["second_item"] = story.rng.sample([
        "apples", "pears", "eggs", "nuts", "plums", "cherries", "carrots", "onions", "shells", "buttons"
    ], 2)
    paragraphs = parse_paragraphs("""
        {his} {parent} sent {hero} to the market with a {color} basket. "Bring home {first_count} {first_item} and
          {second_count} {second_item}," {parent_he} said. "[And do not forget how many|That makes {total_count} in
          all]."

        On the way {hero} said it over and over: "{first_count} {first_item}, {second_count} {second_item}." But then
          {the_friend} came by and talked about [a fair|a dancing bear|the weather|a new kite], and {hero} forgot.
          "[Was it {second_count} {first_item}|Was it more {first_item} or more {second_item}]?" {he}
          [wondered|asked]. "[I cannot remember|My head is empty]!"
        {friend} had an idea. "Do you remember how many there were in all?" {friend_he} asked. "{total_count}," said
          {hero}. "And I know that there were {first_count} {first_item}." "Then there must be {second_count}
          {second_item}," said {friend}, "because {first_count} and {second_count} make {total_count}."

        {hero} bought {first_count} {first_item} and {second_count} {second_item} and carried the {color} basket home.
          "[Just right|Well done]," said {his} {parent}. "[My friend is good at numbers|Two heads are better than
          one]," said {hero}, and gave {friend} [the biggest one|a share].
    """)
    questions = [
        ("How many {first_item} did {hero} buy?", "{hero} bought {first_count} {first_item}."),
        ("How many {second_item} did {hero} buy?", "{hero} bought {second_count} {second_item}."),
        ("How many things were in the basket?", "There were {total_count} things in the basket."),
        ("What color was the basket?", "The basket was {color}."),
    ]
    return Plot(paragraphs, questions, "helping", "a trip to the market")
