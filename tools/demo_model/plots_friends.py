"""Plots about friends and family."""
from plot import Plot, parse_paragraphs


def sharing(story):
    """Two friends quarrel about a thing they found."""
    facts = story.facts
    choose = story.rng.choice
    facts["loudness"] = choose(["louder and louder", "until they were red in the face", "for a long time"])
    paragraphs = parse_paragraphs("""
        {hero} and {friend} were friends. [They played together every day.|They lived side by side.|They did nearly
          everything together.]

        One {weather} {time}, they found a {color} {object} {at}, {spot1}.
        "It is mine! I saw it first," said {hero}. "No, it is mine! I picked it up," said {friend}. They
          [argued|pulled|shouted] {loudness}.
        [Then the {object} fell into the mud.|Then they heard a small sob. A little {small_animal} was watching
          them.|Then it began to rain, and neither of them was having any fun.]

        {hero} [stopped|looked at {his} friend|felt sorry]. "[This is silly|I do not want to fight|I am sorry]," {he}
          said. "[You can have it today, and I can have it tomorrow.|Let us take turns.|Why do we not play with it
          together?]"
        {friend} [smiled|nodded|thought about it and nodded]. "[That is fair|That is a good plan|Yes, let us do
          that]," {friend_he} said. [They washed the {object} and made up a new game.|They played with the {color}
          {object} all day long.|From then on the {color} {object} belonged to both of them.]
    """)
    questions = [
        ("What did {hero} and {friend} find?", "They found a {color} {object}."),
        ("Where did they find it?", "They found it {at}, {spot1}."),
        ("What color was the {object}?", "It was {color}."),
        ("Who was the friend of {hero}?", "{friend} was the friend of {hero}."),
    ]
    return Plot(paragraphs, questions, "sharing", "sharing a {object}")


def newcomer(story):
    """A shy newcomer is asked to play."""
    facts = story.facts
    choose = story.rng.choice
    facts["homeland"] = choose([
        "the mountains", "the city", "an island", "a far country", "the other side of the river"
    ])
    paragraphs = parse_paragraphs("""
        One {weather} {time}, a new {friend_kind} came to live nearby. {friend_his} name was {friend}, and {friend_he}
          came from {homeland}. {friend} sat alone {at} and did not speak.

        "Why does {friend} never play?" asked {hero}. "[Perhaps {friend_he} is shy|Maybe {friend_he} misses home],"
          said {his} {parent}. {hero} thought about this. Then {he} took {his} {color} {object} and went over.
        "Hello," said {hero}. "I am {hero}. Would you like to play with my {object}?" At first {friend} said nothing.
          Then {friend_he} [gave a small smile|nodded slowly|whispered, "Yes, please"].

        [{friend} knew a game from {homeland}, and soon everyone was laughing.|They played until supper.|{friend} was
          very good at it, and {friend_he} showed {hero} a trick.] [By the end of the week they were best friends.|The
          next day {friend} was waiting at the gate.]
        "I was lonely," said {friend}. "But not any more." [{hero} gave {friend_him} half of {his} {food}.|And they
          ran off together.|]
    """)
    questions = [
        ("Where did {friend} come from?", "{friend} came from {homeland}."),
        ("What did {hero} bring?", "{hero} brought a {color} {object}."),
        ("Why did {friend} not play?", "{friend} was shy and lonely."),
        ("What was the name of the new {friend_kind}?", "The new {friend_kind} was called {friend}."),
    ]
    return Plot(paragraphs, questions, "friendship", "a new friend")


def rain(story):
    """Rain spoils a plan; a better game is found indoors."""
    facts = story.facts
    choose = story.rng.choice
    facts["plan"] = choose([
        "go to the beach", "have a picnic", "climb the hill", "fly a kite", "swim in the lake",
        "ride to the market", "pick apples"
    ])
    facts["shelter"] = choose([
        "a tent of blankets", "a ship of chairs", "a castle of boxes", "a cave under the table",
        "a train of baskets"
    ])
    paragraphs = parse_paragraphs("""
        {hero} and {friend} wanted to {plan}. They had [talked about it all week|packed a {color} basket|been waiting
          for days]. But when the day came, it [rained and rained|rained hard|poured].

        "What shall we do now?" said {friend}. [Drops ran down the window.|{friend_he} put {friend_his} chin on
          {friend_his} hands.|The clouds were as grey as stones.]
        {hero} looked around the room. There was a {color} {object} in the corner[, and a heap of old things|]. "I
          know," {he} said. "Let us make {shelter}!"

        So they made {shelter}. {hero} was the captain, and {friend} [kept watch|was the cook|drew the map]. The
          {color} {object} was [their treasure|their flag|the crown of a queen]. [They sailed past whales and
          islands.|They told stories and ate {food}.|They did not hear the rain at all.]
        In the evening the sun came out. "[Shall we {plan} now|Now we could go out]?" asked {his} {parent}. "[Not
          yet|Tomorrow]," they [laughed|said]. "We are busy!"
    """)
    questions = [
        ("What did {hero} and {friend} want to do?", "They wanted to {plan}."),
        ("What did they make?", "They made {shelter}."),
        ("Why did they stay inside?", "They stayed inside because it rained."),
        ("What color was the {object}?", "The {object} was {color}."),
    ]
    return Plot(paragraphs, questions, choose(["trying", "friendship"]), "a rainy day")


def race(story):
    """The favourite turns back to help a runner who fell."""
    facts = story.facts
    choose = story.rng.choice
    facts["prize"] = "{color} {object}"
    facts["course"] = choose([
        "around the pond", "to the old mill and back", "up the hill", "across the meadow", "along the river"
    ])
    paragraphs = parse_paragraphs("""
        [Every year|Each summer|In spring] there was a race {course}. The prize was a {prize}, and {hero} wanted to
          win it [more than anything|very much]. {he} [ran|practiced] every {time}.

        On the day of the race, [everyone|the whole village] came to watch. "One, two, three, go!" {hero} was fast.
          [Soon|Before long] {he} was in front. Then {he} heard a cry. {friend} had fallen [in the mud|over a
          root|into a ditch] and could not get up.
        {hero} looked at the finish. {he} looked back at {friend}. [It was hard to choose, but not for long.|For a
          moment {he} did not know what to do.] {he} [turned around|ran back] and helped {friend} to {friend_his}
          feet.

        They came in last, arm in arm. [But the crowd clapped and clapped.|But everyone cheered for them.] The winner,
          a {small_animal}, looked at the {prize}. "[This should be yours|I ran fast, but you did something better],"
          said the {small_animal}, and gave it to {hero}.
        [{hero} and {friend} shared it.|{hero} blushed. "We will all share it," {he} said.|]
    """)
    questions = [
        ("What was the prize?", "The prize was a {color} {object}."),
        ("Who fell down?", "{friend} fell down."),
        ("Why did {hero} turn back?", "{hero} turned back to help {friend}."),
        ("Who won the race?", "A {small_animal} won the race."),
    ]
    return Plot(paragraphs, questions, "kindness", "a race")


def birthday(story):
    """A birthday seems to be forgotten."""
    paragraphs = parse_paragraphs("""
        It was the birthday of {hero}. {he} woke up early and ran to the kitchen. But {his} {parent} only said, "[Good
          morning. Eat your {food}|Please feed the hens|It is a busy day]." No one said a word about the birthday.

        {hero} went to {the_friend}. "[I have no time today|I must go]," said {friend}, and [closed the door|hurried
          off]. {hero} walked {to_place} and sat down {spot1}. "They have all forgotten me," {he} [said|whispered]. [A
          tear ran down {his} nose.|Even the sky looked sad.]
        [When it grew dark|At sunset|After a long time] {hero} went home. The house was [dark|quiet]. {he} opened the
          door and...

        "Surprise!" shouted everyone. There were [lamps|balloons|ribbons] and a cake with {color}
          [candles|icing|stars]. {friend} held out a box. In it was a {color} {object}. "We were busy all day,"
          {friend_he} said, "because of you!"
        {hero} laughed and cried at the same time. [It was the best birthday ever.|"I thought you had forgotten," {he}
          said. "Never," said {his} {parent}.]
    """)
    questions = [
        ("What was in the box?", "There was a {color} {object} in the box."),
        ("Why was {hero} sad?", "{hero} thought that everyone had forgotten the birthday."),
        ("Who gave {hero} the box?", "{friend} gave {hero} the box."),
        ("Where did {hero} sit down?", "{hero} sat down {at}, {spot1}."),
    ]
    return Plot(paragraphs, questions, "friendship", "a birthday")


def sick(story):
    """A friend is ill and gets a visit."""
    facts = story.facts
    choose = story.rng.choice
    facts["illness"] = choose(["a bad cold", "a sore throat", "a fever", "a broken arm", "a cough"])
    facts["present"] = choose([
        "a pot of soup", "a bunch of flowers", "a book of tales", "a jar of honey", "a paper crown",
        "a bag of oranges"
    ])
    paragraphs = parse_paragraphs("""
        {friend} did not come out to play. "{friend} has {illness}," said {his} {parent}, "and must stay in bed."
          {hero} [was sorry|thought about this]. It is no fun to be in bed when [the sun is shining|the others are
          playing].

        So {hero} took {present} and {his} {color} {object} and went to see {friend_him}. On the way {he} [slipped in
          the mud|met a big dog|had to cross the stream], but {he} held everything tight. {friend} was lying by the
          window and looked [pale|bored|sad].
        "[I have come to make you laugh|I will stay with you|I brought you something]," said {hero}. {he} [told three
          jokes|sang a silly song|made a face like a frog|played a whole play with the {color} {object}], and {friend}
          laughed so much that {friend_he} [forgot the pain|sat up in bed].

        Every {time} {hero} came back, until {friend} was well. "[You were the best medicine|The soup was good, but
          you were better|I counted the hours until you came]," said {friend}. [And when {hero} had a cold in the
          spring, guess who came to the door!|Then they ran out into the fields together.]
    """)
    questions = [
        ("What was wrong with {friend}?", "{friend} had {illness}."),
        ("What did {hero} bring?", "{hero} brought {present} and a {color} {object}."),
        ("Who was ill?", "{friend} was ill."),
    ]
    return Plot(paragraphs, questions, "kindness", "a sick friend")


def sibling(story):
    """A new baby gets all the attention."""
    facts = story.facts
    choose = story.rng.choice
    facts["baby"] = choose(["brother", "sister"])
    facts["baby_he"] = "he" if facts["baby"] == "brother" else "she"
    facts["baby_him"] = "him" if facts["baby"] == "brother" else "her"
    paragraphs = parse_paragraphs("""
        {hero} had a new baby {baby}. Everyone came to see the baby. They brought [flowers|little socks|a
          {other_color} rattle], and they all said how sweet {baby_he} was. Nobody asked about {hero} and {his}
          {color} {object}.

        "They do not love me any more," {he} told {the_friend}. "[I will go away and live {at}|I wish we could send
          {baby_him} back]." {friend} scratched {friend_his} head. "[When I was small, I was the baby too|Have you
          tried to make {baby_him} laugh]," {friend_he} said.
        That {time} the baby cried and cried. {his} {parent} sang, and it did not help. {hero} [made a funny
          face|wiggled {his} ears|danced with the {color} {object}]. The baby stopped crying. Then {baby_he} laughed,
          for the very first time.

        "[Nobody else can do that|{baby_he} loves you best]," said {his} {parent}, and put an arm around {hero}. "[A
          heart does not get smaller when you share it|I have two children now, and twice as much love]." {hero} gave
          the {color} {object} to the baby. "[You may borrow it|It is yours now]," {he} said.
    """)
    questions = [
        ("Who was new in the family?", "There was a new baby {baby}."),
        ("What made the baby laugh?", "{hero} made the baby laugh."),
        ("What did {hero} give to the baby?", "{hero} gave the baby a {color} {object}."),
    ]
    return Plot(paragraphs, questions, "sharing", "a new baby {baby}")


def stars(story):
    """Two friends try to count the stars."""
    facts = story.facts
    choose = story.rng.choice
    facts["guess"] = choose([
        "a thousand", "a hundred", "more than all the sand on the beach", "as many as there are dreams"
    ])
    paragraphs = parse_paragraphs("""
        {hero} could not sleep. {he} took {his} {color} blanket and went out to look at the stars. {the_friend} was
          already there. "[I am counting them|I want to know how many there are]," said {friend}. "So far I have
          {star_count}."

        They lay in the grass and counted together. When they came to [ninety-nine|two hundred|a very big number], a
          cloud came, and they had to begin again. Then [an owl called|a star fell|a bat flew by], and they forgot
          where they were. "[We will never be done|There are too many]," said {friend}.
        "I think there are {guess}," said {hero}. "[Perhaps it does not matter|Maybe we should only look at them]." So
          they stopped counting. They saw [a bear, a ladle and a ship|a swan and a crown|a long white road] in the
          sky, and gave every one of them a name.

        {his} {parent} found them in the morning, fast asleep under the {color} blanket. "How many are there?"
          {parent_he} asked. {hero} rubbed {his} eyes. "[Enough|One for everyone|All of them]," {he} said.
    """)
    questions = [
        ("What did {hero} take outside?", "{hero} took a {color} blanket."),
        ("What did they count?", "They counted the stars."),
        ("How many stars were there, in the view of {hero}?", "{hero} thought there were {guess}."),
    ]
    return Plot(paragraphs, questions, "enough", "counting the stars")


def rescue(story):
    """A hurt little animal is nursed and set free."""
    facts = story.facts
    choose = story.rng.choice
    injury = "a bent wing" if facts["small_animal"] in ("bird", "owl", "duckling", "hen") else "a sore paw"
    facts["hurt"] = choose([
        "a hurt leg", "a thorn in its foot", "no mother in sight", "a cold, wet coat", injury
    ])
    facts["comfort"] = choose(["warm milk", "a soft bed of hay", "crumbs and water", "a box lined with wool"])
    facts["stay"] = choose(["two days", "three days", "a week", "five days"])
    natural = facts["color"] in ("white", "black", "brown", "grey", "golden")
    facts["patient"] = "{color} {small_animal}" if natural else "{small_animal}"
    paragraphs = parse_paragraphs("""
        One {weather} {time}, {hero} was walking {at}. {he} heard a tiny cry. {spot1} sat a little {patient}
          with {hurt}.

        "[You poor thing|Do not be afraid|I will help you]," said {hero}. [Gently {he} picked it up.|{he} wrapped it
          in {his} {color} scarf.] [{he} took it home and gave it {comfort}.|At home {he} gave it {comfort}.]
        [Every morning and every evening {hero} looked after it.|{his} {parent} showed {him} what to do.|{friend} came
          to help.] For {stay} the {small_animal} [rested|slept and ate and slept].

        Then one morning it [stood up|looked up with bright eyes|was well again]. {hero} [carried it back|took it
          back] {to_place}, and there its mother was waiting. [{hero} was a little sad, but also happy.|"Goodbye,
          little one," said {hero}.]
        [Some days later|In the spring|The next week], {hero} found a [shiny stone|bunch of flowers|blue feather|heap
          of ripe berries] at the door. [The {small_animal} had not forgotten.|"I think I know who left this," said
          {hero}.]
    """)
    questions = [
        ("What animal did {hero} find?", "{hero} found a little {small_animal}."),
        ("What was wrong with the {small_animal}?", "The {small_animal} had {hurt}."),
        ("How long did the {small_animal} stay?", "It stayed for {stay}."),
        ("Where did {hero} find the {small_animal}?", "{hero} found it {at}, {spot1}."),
    ]
    return Plot(paragraphs, questions, "kindness", "a little {small_animal}")
