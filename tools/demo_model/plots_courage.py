"""Plots about fear, danger and wit."""
import re

from plot import Plot, parse_paragraphs
from words import FEARS


def fear(story):
    """A child meets what it fears; it is harmless."""
    facts = story.facts
    choose = story.rng.choice
    facts["fear"] = choose(list(FEARS))
    facts["event"], facts["truth"] = FEARS[facts["fear"]]
    paragraphs = parse_paragraphs("""
        {hero} was not afraid of [bees|rain|spiders|tall grass|mud], but {he} was afraid of {fear}.

        One {time}, {his} {parent} asked {him} to [fetch|bring|find] a {color} {object}. But on the way {event}.
          {hero} [stopped|froze|held {his} breath]. {his} heart went thump, thump, thump.
        ["I want to run away," {he} whispered.|"I cannot do it," {he} said.|{he} wanted to hide under a blanket.]

        Then {he} remembered what {his} {parent} had said: "[Take one small step, and then one more.|Look closely, and
          fear gets smaller.|Count to three and breathe.]"
        {hero} [counted to three|took a deep breath|took one small step] and looked again. It was {truth}! {hero}
          [laughed out loud|began to laugh|felt very silly and very glad].
        [{he} picked up the {color} {object} and walked home with {his} head high.|{he} came back with the {color}
          {object}, and {his} {parent} was proud.|"I did it!" {he} said, and held up the {color} {object}.]
    """)
    questions = [
        ("What was {hero} afraid of?", "{hero} was afraid of {fear}."),
        ("What was it really?", "It was {truth}."),
        ("What did {hero} have to bring?", "{hero} had to bring a {color} {object}."),
    ]
    return Plot(paragraphs, questions, "courage", "being brave")


def lost_way(story):
    """A child is lost in the forest and follows a guide home."""
    facts = story.facts
    choose = story.rng.choice
    facts["guide"] = choose([
        "an old owl", "a bright star", "a little stream", "a line of ants", "a firefly", "a friendly crow",
        "the sound of a bell"
    ])
    facts["the_guide"] = re.sub("^an? ", "the ", facts["guide"])
    facts["chased"] = choose([
        "a butterfly", "a {color} bird", "a rabbit", "a {color} leaf in the wind", "a dragonfly"
    ])
    follows = story.rng.random() < 0.5
    facts["decision"] = ('"I will follow it," said {hero}.' if follows
                         else '"Can you help me?" asked {hero}, and it seemed to say yes.')
    paragraphs = parse_paragraphs("""
        One {weather} {time}, {hero} [followed|ran after] {chased} into the forest. {he} went past [the big rock|the
          old gate|the last house] and over [the stream|a fallen tree|the bridge]. When {he} stopped, {he} did not
          know the way home.

        [The trees were tall and dark.|It was getting dark.|All the paths looked the same.] "[I must not panic|I will
          think]," said {hero}. {he} sat down on a stone and [ate the last of {his} {food}|listened|held {his} {color}
          {object} tight].
        Then {he} noticed {guide}. {decision}

        [Step by step|Slowly|Little by little] {hero} followed {the_guide}, [through the ferns|under the branches|down
          the hill], until {he} saw a [light|lamp] in a window. It was home! {his} {parent} [ran out and hugged
          {him}|stood at the door with a lamp].
        "[Where have you been|We were so worried]!" {parent_he} said. "I was lost," said {hero}, "but {guide} showed
          me the way." [Then they had hot soup.|Then {hero} drank warm milk and fell asleep.|]
    """)
    questions = [
        ("What did {hero} follow into the forest?", "{hero} followed {chased}."),
        ("What showed {hero} the way?", "It was {guide}."),
        ("Who was waiting at home?", "{hero} was met by {his} {parent}."),
    ]
    return Plot(paragraphs, questions, choose(["courage", "care"]), "getting lost in the forest")


def big_and_small(story):
    """A small one frees a great animal from a trap."""
    facts = story.facts
    choose = story.rng.choice
    facts["giant_animal"] = choose(["bear", "lion", "ox", "horse", "giant", "elephant", "wolf"])
    facts["trap"] = choose(["a net", "a deep hole", "a thorn bush", "the mud", "a knot of rope"])
    paragraphs = parse_paragraphs("""
        Near the home of {hero} lived a great {giant_animal}. The {giant_animal} was proud and strong. "[You are too
          small to be of use|What can a little one like you do]," the {giant_animal} said, and [laughed|walked on].

        One {weather} {time}, {hero} heard a loud roar {at}. The {giant_animal} was caught in {trap}! The more it
          pulled, the worse it got. "[Help|Will no one help me]!" it cried.
        {hero} [was afraid, but {he} went closer|did not run away|came at once]. "I am small," {he} said, "but I have
          [sharp teeth|clever hands|a {color} rope|a {color} spade] and I have time." {he} [worked and worked|pulled
          and pushed|worked all {time}] until the {giant_animal} was free.

        The {giant_animal} [bowed its head|was quiet for a long time]. "I was wrong," it said. "You are little, but
          your heart is big. [I will never laugh at you again.|From now on you are my friend.]"
        [After that, {hero} rode home on the back of the {giant_animal}.|And they shared {food} under the trees.|And
          each day they walked together {at}.]
    """)
    questions = [
        ("What was the {giant_animal} caught in?", "The {giant_animal} was caught in {trap}."),
        ("Who helped the {giant_animal}?", "{hero} helped the {giant_animal}."),
        ("Where was the {giant_animal}?", "The {giant_animal} was {at}."),
    ]
    return Plot(paragraphs, questions, "kindness", "a great {giant_animal}")


def wishes(story):
    """Three wishes; the last is spent on a friend."""
    facts = story.facts
    choose = story.rng.choice
    facts["magic"] = choose([
        "a silver fish", "a talking well", "a tiny fairy", "an old lamp", "a golden bird", "a wise old toad"
    ])
    facts["the_magic"] = re.sub("^an? ", "the ", facts["magic"])
    facts["first_wish"], facts["trouble"] = choose([
        ("a mountain of cake", "there was so much cake that the door would not open"),
        ("a hundred balloons", "the balloons lifted {him} off the ground"),
        ("a house full of toys", "there was no room left to sleep"),
        ("shoes that never stop dancing", "the shoes danced and danced, and {he} could not sit down"),
        ("rain of sweets", "the sweets broke the windows"),
    ])
    paragraphs = parse_paragraphs("""
        One {weather} {time}, {hero} was {at} when {he} met {magic}. "You have been kind to me," it said. "You may
          make [two|three] wishes, but think well."

        {hero} did not think for long. "I wish for {first_wish}!" {he} said. Whoosh! At once {trouble}. {hero} [was
          not happy at all|cried for help|called for {friend}].
        "Oh, I wish that all was as before!" {he} said. And so it was. [The air was quiet again.|{hero} sat down and
          wiped {his} face.]

        "One wish is left," said {the_magic}. {hero} thought of {friend}, who [was ill in bed|had lost a {color}
          {object}|had no warm coat]. "Then [make {friend} happy|help {friend}], please," said {hero}. {the_magic}
          nodded and was gone.
        The next {time}, {friend} came running [with a {color} {object}|and laughing], and {hero} knew that it had
          been the best wish of all.
    """)
    questions = [
        ("Who did {hero} meet?", "{hero} met {magic}."),
        ("What was the first wish?", "The first wish was for {first_wish}."),
        ("Who was the last wish for?", "The last wish was for {friend}."),
    ]
    return Plot(paragraphs, questions, "enough", "wishes")


def trick(story):
    """A sly animal wants the food and is outwitted."""
    facts = story.facts
    choose = story.rng.choice
    facts["villain"] = choose(["fox", "wolf", "cat", "crow", "weasel"])
    facts["prize"] = choose(["a piece of cheese", "a fat sausage", "a honey cake", "a basket of eggs", "a warm pie"])
    paragraphs = parse_paragraphs("""
        {hero} had {prize} and was carrying it home [in a {color} basket|in a {color} cloth|in a {color} bag]. On the
          path stood a {villain}. "[What a lovely day|Good day, my dear friend|How well you look]," said the
          {villain}, and [licked its lips|smiled with all its teeth].

        "[I can carry that for you|Put it down and sing me a song|Close your eyes and I will show you a secret]," said
          the {villain}. {hero} [was not a fool|saw the hungry look]. "[Gladly|With pleasure]," said {he}, "but first
          [shut your own eyes and count to fifty|put your head into this hollow tree and tell me what you see|look
          into the well, for there is a bigger one down there]."
        The {villain} [did so at once|thought that this was easy]. While it [counted|looked], {hero} [ran home as fast
          as {he} could|slipped away without a sound].

        When the {villain} [turned around|looked up again], there was nobody there. "[I have been tricked|Next time I
          will do the talking]!" it [growled|said]. At home {hero} shared {prize} with {the_friend}, and they laughed
          until they [cried|could not sit up].
    """)
    questions = [
        ("What was {hero} carrying?", "{hero} was carrying {prize}."),
        ("Who stood on the path?", "A {villain} stood on the path."),
        ("Who shared the food with {hero}?", "{friend} shared it with {hero}."),
    ]
    return Plot(paragraphs, questions, "care", "a sly {villain}")


def false_alarm(story):
    """Two false alarms, and a real one."""
    facts = story.facts
    choose = story.rng.choice
    facts["danger"] = choose(["a wolf", "a fire", "a bear", "a flood", "a giant"])
    paragraphs = parse_paragraphs("""
        {hero} had to watch the [sheep|geese|goats] {at}. It was [dull|slow] work. "[Nothing ever happens|I wish
          something would happen]," said {hero}. Then {he} had an idea. "Help! It is {danger}!" {he} shouted. Everyone
          dropped what they were doing and came running.

        But there was nothing to see. {hero} laughed. "I only wanted to see you run," {he} said. The next day {he} did
          it again, and again they came. {friend} was angry. "[One day you will need us|That is not funny|Words are
          not toys]," {friend_he} said, and went home.
        On the third day there really was {danger}! "Help! Help!" cried {hero}. But [nobody came|they all thought it
          was another joke]. {hero} [ran as fast as {he} could|was very much afraid]. Only {friend} looked up, for
          {friend_he} heard that this time the voice was different.

        {friend} [called the others|rang the bell], and just in time they [made everything safe|brought {hero} home].
          "[I am sorry|I told lies, and they grew teeth]," said {hero}. "[I will never do it again|From now on I will
          say only what is true]." And {he} kept {his} word.
    """)
    questions = [
        ("What did {hero} shout?", "{hero} shouted that there was {danger}."),
        ("Who believed {hero} in the end?", "{friend} believed {hero}."),
        ("On which day was it true?", "It was true on the third day."),
    ]
    return Plot(paragraphs, questions, "honesty", "telling lies")


def storm(story):
    """A light is lit for a boat in a storm."""
    facts = story.facts
    choose = story.rng.choice
    facts["light"] = choose(["a lantern", "a big fire", "every candle in the house", "the old lamp in the tower"])
    paragraphs = parse_paragraphs("""
        A storm came up in the night. The wind howled, and the rain [beat on the roof|ran down the walls]. {hero}
          looked out and saw that the light [in the lighthouse|on the pier] had gone out. Somewhere out there was the
          boat of {the_friend}.

        "They will hit the rocks!" said {hero}. {his} {parent} was [far away|asleep|ill in bed], so {hero} put on
          {his} {color} coat and ran. {he} lit {light} and [held it high|stood beside it], though {his} arms
          [hurt|shook] and {his} face was wet.
        Once the wind blew it out, and {he} lit it again. [An hour passed.|The night seemed to have no end.] "[Come
          on, come home|Please see me]," {he} said to the dark.

        At last a small boat came [round the rocks|out of the rain]. {friend} jumped onto the sand. "[We saw your
          light|There was one little star over the water, and we followed it]," {friend_he} said. "[Without you we
          would be at the bottom of the sea.|You saved us all.]" {hero} was too tired to answer, but {he} smiled. In
          the morning they all ate {food} together.
    """)
    questions = [
        ("What did {hero} light?", "{hero} lit {light}."),
        ("Who was in the boat?", "{friend} was in the boat."),
        ("What color was the coat of {hero}?", "The coat was {color}."),
    ]
    return Plot(paragraphs, questions, "courage", "a storm")


def king(story):
    """A ruler is beaten with a riddle."""
    facts = story.facts
    choose = story.rng.choice
    facts["ruler"] = choose(["king", "queen"])
    facts["ruler_he"] = "he" if facts["ruler"] == "king" else "she"
    facts["ruler_his"] = "his" if facts["ruler"] == "king" else "her"
    facts["riddle"], facts["answer"] = choose([
        ("What has teeth but cannot bite", "a comb"), ("What goes up and never comes down", "your age"),
        ("What has one eye but cannot see", "a needle"), ("What can you hold without hands", "your breath"),
        ("What gets wet while it dries you", "a towel"), ("What runs all day and never gets tired", "a river"),
        ("What has a neck but no head", "a bottle")
    ])
    paragraphs = parse_paragraphs("""
        In that land there was a {ruler} who was always [bored|sad]. "Whoever asks me a riddle that I cannot answer,"
          said the {ruler}, "shall have my {color} {object}." Many clever people came from far away, but the {ruler}
          knew every answer.

        {hero} heard of this and went to the castle. The [guards|servants] laughed. "[You are too young|What does a
          little one know]," they said. But {hero} was let in. {he} bowed and said, "{riddle}?"
        The {ruler} thought and thought. {ruler_he} [walked up and down|pulled {ruler_his} ears|asked the cook and the
          cat]. [An hour went by.|The candles burned low.] At last {ruler_he} threw up {ruler_his} hands. "I do not
          know!" {ruler_he} cried. "It is {answer}," said {hero}.

        The {ruler} began to laugh, and laughed until {ruler_his} crown fell off. "[I have not laughed for years|That
          is the best of all]," {ruler_he} said. "The {color} {object} is yours. [Come again and bring another
          riddle.|And you must stay for supper.]" {hero} shared the good news with {the_friend}, and they thought up
          riddles all the way home.
    """)
    questions = [
        ("What was the riddle?", "The riddle was: {riddle}?"),
        ("What was the answer to the riddle?", "The answer was {answer}."),
        ("What did {hero} win?", "{hero} won a {color} {object}."),
    ]
    return Plot(paragraphs, questions, "courage", "a {ruler} and a riddle")


def echo(story):
    """A voice across the valley gives back what it gets."""
    facts = story.facts
    choose = story.rng.choice
    facts["word"] = choose(["Hello", "Who are you", "Come here", "Good morning"])
    paragraphs = parse_paragraphs("""
        One {weather} {time}, {hero} climbed a hill and shouted, "{word}!" And from the other side of the valley
          somebody shouted, "{word}!" {hero} was surprised. "You are silly!" {he} called. "You are silly!" said the
          voice.

        {hero} ran home to {his} {parent}. "There is someone over there who is rude to me," {he} said. {his} {parent}
          smiled. "[Go back and say something kind|Try it with good words]," {parent_he} said. So {hero} took {his}
          friend {friend} and {his} {color} {object} and climbed the hill again.
        "You are my friend!" shouted {hero}. "You are my friend!" said the voice at once. "[Have a good day|I like
          you]!" called {friend}, and the voice [was friendly again|said the same].

        "[It gives back what you give it|It is only our own words coming home]," said {friend}. {hero} thought about
          that [for a long time|all the way down]. "[People are like that too|Then I will send out better ones]," {he}
          said. {he} gave {friend} a turn with the {color} {object}, and the hill sent back their laughter.
    """)
    questions = [
        ("What did {hero} shout first?", "{hero} shouted: {word}!"),
        ("Who went with {hero} the second time?", "{friend} went with {hero}."),
        ("What did {hero} carry?", "{hero} carried a {color} {object}."),
    ]
    return Plot(paragraphs, questions, "kindness", "an echo")
