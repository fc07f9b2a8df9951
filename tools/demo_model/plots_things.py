"""Plots about things: lost, broken, swapped, made, found."""
from plot import Plot, parse_paragraphs
from words import BREAKABLE, FLYERS, TOYS


def lost(story):
    """A thing is lost; a friend helps to find it."""
    choose = story.rng.choice
    paragraphs = parse_paragraphs("""
        {hero} had a {color} {object}[ that {his} {giver} had given {him}|. It was a gift from {his} {giver}|, and
          {he} took it everywhere].

        One {weather} {time}, {hero} [went to play|was playing|played for a long time] {at}. [When it was time to go
          home|After a while|Suddenly], the {object} was gone.
        "[Oh no|Oh dear]! Where is my {object}?" [cried|said|asked] {hero}.
        [{he} looked {spot1}, but it was not there.|First {he} looked {spot1}. There was only [a leaf|an old shoe|a
          snail|a sleeping cat].]
        [Then {he} looked {spot2}. It was not there either.|Next {he} looked {spot2}, but found [nothing|only a
          stone|only dust].|]

        [{the_friend} heard {him} and came to help.|Just then {the_friend} came by.] "[Do not cry|Do not worry|Let us
          think]," said {friend}. "[When did you see it last?|We will look together.|Two pairs of eyes are better than
          one.]"
        [They searched together.|They walked slowly and looked at every corner.|They went back the way {hero} had
          come.] At last {friend} [called|shouted|laughed], "[Here it is|I see it|Look]!" The {color} {object} was
          {spot3}.
        {hero} [hugged {his} friend|jumped for joy|was so glad that {he} danced]. "Thank you, {friend}," {he} said.
          ["You can play with it too."|They played until the sun went down.|]
    """)
    questions = [
        ("What did {hero} lose?", "{hero} lost a {color} {object}."),
        ("What color was the {object}?", "The {object} was {color}."),
        ("Where was the {object}?", "The {object} was {spot3}."),
        ("Who found the {object}?", "{friend} found the {object}."),
    ]
    return Plot(paragraphs, questions, choose(["care", "friendship", "helping"]), "a {color} {object}")


def stuck(story):
    """A flying thing is caught high up; a friend brings a tool."""
    facts = story.facts
    choose = story.rng.choice
    if facts["object"] not in FLYERS:
        facts["object"] = choose(FLYERS)
    facts["high_place"] = choose([
        "a tall tree", "the roof of the barn", "a high wall", "the top of an oak", "the church tower"
    ])
    facts["tool"] = choose(["a long stick", "a ladder", "a rope", "a fishing rod", "a broom"])
    paragraphs = parse_paragraphs("""
        {hero} had a {color} {object}. [It was [big|bright|light] and it [shone|danced] in the sun.|{he} loved it very
          much.|{his} {giver} had made it.]

        One [windy|bright|cloudy] {time}, {hero} [took|carried] the {object} {to_place}. [The wind was strong.|The
          wind blew and blew.] [Up, up went the {object}!|The {object} flew higher and higher.]
        [But then|Suddenly|All at once] the {object} got stuck [in|on] {high_place}. [{hero} jumped, but {he} could
          not reach it.|{hero} pulled and pulled, but it did not move.]
        "[My {object} is lost|Now I will never get it back]!" {he} [cried|said sadly|sighed].

        {the_friend} [saw this|came along|was passing by]. "[I have an idea|Wait here|I know what to do]," said
          {friend}. [{friend_he} ran home and came back with {tool}.|{friend_he} went to fetch {tool}.]
        [Together they|{hero} held it while {friend}|Very carefully they] [pushed|reached up|worked] until the
          {object} [came loose|fell down|floated down]. It was not even torn.
        "[Hurray|We did it]!" [they shouted|said {hero}]. [After that they flew the {color} {object} together all
          {time}.|They took turns with the {color} {object} until it was dark.|{hero} let {friend} hold the {color}
          {object} all the way home.]
    """)
    questions = [
        ("Where did the {object} get stuck?", "The {object} got stuck on {high_place}."),
        ("What color was the {object}?", "The {object} was {color}."),
        ("What did {friend} bring?", "{friend} brought {tool}."),
        ("Who helped {hero}?", "{friend} helped {hero}."),
    ]
    return Plot(paragraphs, questions, choose(["helping", "friendship", "trying"]), "a {color} {object}")


def broken(story):
    """Something breaks in play; the truth comes out."""
    facts = story.facts
    choose = story.rng.choice
    facts["thing"] = choose(BREAKABLE)
    choose(range(4))  # a draw that no sentence uses; the published stories were made with it
    paragraphs = parse_paragraphs("""
        [One {weather} {time}|One {time}], {hero} was playing with a {color} {object} in the house. {his} {parent} had
          said, "[Play outside, please|Be careful in here|Not near the table]." But {hero} did not listen.

        Crash! The {object} hit the {thing}, and the {thing} broke into [two|three|many|a hundred] pieces. {hero} hid
          the pieces [under the rug|behind the door|in a drawer]. "[No one will know|I will say nothing]," {he}
          thought.
        But {he} could not [eat {his} supper|sleep|play any more]. {his} tummy felt like a stone. [When {his} {parent}
          asked about the {thing}, {he} looked at the floor.|]

        At last {hero} went to {his} {parent}. "I broke the {thing}," {he} said. "I am sorry." {his} {parent} was
          quiet [for a moment|for a while]. Then {parent_he} [hugged {him}|took {his} hand|smiled a little].
        "[A {thing} is only a thing|I am sad about the {thing}]," {parent_he} said, "but I am glad that you told me[
          the truth|]." [They glued the pieces together.|Together they picked up every piece.|The next day they made a
          new one out of clay.] [{hero} felt light again.|And {hero} played outside after that.]
    """)
    questions = [
        ("What did {hero} break?", "{hero} broke the {thing}."),
        ("How did it break?", "The {object} hit it."),
        ("Who did {hero} tell?", "{hero} told {his} {parent}."),
        ("What color was the {object}?", "The {object} was {color}."),
    ]
    return Plot(paragraphs, questions, "honesty", "telling the truth")


def gift(story):
    """Too poor to buy a gift, the child makes one."""
    facts = story.facts
    choose = story.rng.choice
    facts["coins"] = choose(["only one coin", "only two coins", "only three coins", "no coins at all"])
    paragraphs = parse_paragraphs("""
        It was nearly the birthday of {his} {parent}, and {hero} wanted to give {parent_him} something. In the shop
          {shop_place} was a {color} {object}. But {hero} had {coins}.

        "[That is not enough|I am sorry]," said the man in the shop. {hero} walked home slowly. [{he} kicked a stone
          along the road.|{he} looked at {his} empty hands.] Then {the_friend} said, "[You could make one yourself|You
          are good with your hands|The best gifts are made, not bought]."
        So {hero} [cut and glued and painted|worked every evening in secret|worked for three days]. {he} made a
          {object} out of [paper|wood|old cloth|clay] and painted it {color}. [One side was bigger than the
          other.|There was paint on {his} nose.|It was not perfect.]

        On the birthday, {his} {parent} opened the [box|paper|parcel]. {parent_he} looked at the {color} {object} for
          a long time. [There was a tear in {parent_his} eye.|Then {parent_he} smiled.] "You made this for me? It is
          the best {object} in the world," {parent_he} said.
        [{hero} felt warm inside.|And it stood by the window for many years.|{hero} smiled from ear to ear.]
    """)
    questions = [
        ("Whose birthday was it?", "It was the birthday of the {parent}."),
        ("What did {hero} make?", "{hero} made a {color} {object}."),
        ("How many coins did {hero} have?", "{hero} had {coins}."),
    ]
    return Plot(paragraphs, questions, choose(["kindness", "trying"]), "a birthday gift")


def trade(story):
    """A chain of swaps ends with the wished-for thing."""
    facts = story.facts
    choose = story.rng.choice
    toys = story.rng.sample([toy for toy in TOYS if toy != facts["object"]], 4)  # the fourth is not used
    facts.update(first_toy=toys[0], second_toy=toys[1], third_toy=toys[2])
    facts["first_person"], facts["second_person"] = story.rng.sample([
        "baker", "farmer", "old woman", "sailor", "painter", "shepherd", "tailor", "miller", "fisherman", "nurse"
    ], 2)
    paragraphs = parse_paragraphs("""
        {hero} wished for a {color} {object}, but all {he} had was a {first_toy}. So one {weather} {time} {he} set out
          down the road with the {first_toy} in {his} hand.

        First {he} met a {first_person}. "[I could use a {first_toy}|I need a {first_toy}]," said the {first_person}.
          "Will you take my {second_toy} for it?" "Yes," said {hero}, and [went on|walked on] with the {second_toy}.
        Then {he} met a {second_person}, who looked sad. "I have lost my {second_toy}," said the {second_person}.
          {hero} thought for a moment. "Take mine," {he} said. The {second_person} was so glad that {hero} got a
          {third_toy} in return.

        At last {hero} met {the_friend}. {friend} was sitting {at} with a {color} {object}. "What a fine {third_toy}!"
          said {friend}. "Would you give it to me for this {object}?" {hero} [laughed|jumped up and down]. "With
          pleasure!"
        So {hero} came home with a {color} {object}, and everyone {he} had met was happy too.
    """)
    questions = [
        ("What did {hero} have at first?", "{hero} had a {first_toy}."),
        ("What did {hero} get in the end?", "{hero} got a {color} {object}."),
        ("Who gave {hero} the {object}?", "{friend} gave {hero} the {object}."),
        ("What did {hero} give to {friend}?", "{hero} gave {friend} the {third_toy}."),
    ]
    return Plot(paragraphs, questions, choose(["enough", "kindness"]), "a {color} {object}")


def treasure(story):
    """An old map, held upside down at first."""
    facts = story.facts
    choose = story.rng.choice
    facts["content"] = choose([
        "an old {object}", "a {color} {object}", "a letter", "seven shells", "a bag of seeds",
        "a picture of {his} {parent} as a child"
    ])
    paragraphs = parse_paragraphs("""
        One {weather} {time}, {hero} found an old map in [a bottle|a book|the attic|a {color} box]. There was a
          {color} cross on it. "A treasure!" said {hero}, and {he} ran to fetch {the_friend}.

        The map led them [past the mill|over the bridge|along the stream] and {to_place}. [They counted ten
          steps.|They turned left at the tall tree.|They walked and walked.] First they dug {spot1}, but there was
          nothing but [stones|worms|roots].
        "[We are holding the map upside down|Turn the map around]!" {friend} [laughed|said]. So they went and dug
          {spot2}. Clunk! There was a box.

        [In it they found|Inside they found] {content}. [{hero} was surprised.|{friend} clapped {friend_his} hands.|It
          was not gold at all.] "[It is better than gold|This is the finest treasure]," said {hero}, "because we found
          it together."
        [They took it home to {his} {parent}.|They put a {color} button in the box and buried it again for someone
          else to find.|They ran home to tell everyone.]
    """)
    questions = [
        ("What did the map lead to?", "It led to a box with {content}."),
        ("Where was the box?", "The box was {at}, {spot2}."),
        ("What color was the cross on the map?", "The cross was {color}."),
        ("Who went with {hero}?", "{friend} went with {hero}."),
    ]
    return Plot(paragraphs, questions, choose(["friendship", "trying"]), "a treasure map")


def bottle(story):
    """A letter in a bottle is answered."""
    facts = story.facts
    choose = story.rng.choice
    facts["writer"] = choose([
        "a girl on an island", "an old sailor", "a boy in a far land", "a lighthouse keeper",
        "a princess in a tower"
    ])
    facts["message"] = choose([
        "I have nobody to talk to. Please write to me", "There is a treasure here, but it is only good for two",
        "What does snow feel like", "I can see the same moon as you", "If you find this, you are my friend"
    ])
    paragraphs = parse_paragraphs("""
        One {weather} {time}, {hero} found a {color} bottle {at}, {spot1}. There was a letter in it. It was from
          {writer}. "{message}," it said.

        {hero} read it [three times|aloud to {friend}|again and again]. Then {he} sat down and wrote an answer. {he}
          wrote about {his} {parent}, about {food}, and about {his} {other_color} {object}. {he} put the answer into
          the {color} bottle and threw it far out into the water.
        Days went by, and weeks. ["It has sunk," said {friend}.|"The sea is big," said {his} {parent}.] But {hero}
          went to look every {time}.

        And then, one [stormy|quiet|golden] evening, the bottle was there again! This time there was a
          [shell|drawing|small key|dried flower] in it, and a letter that began: "Dear {hero}, I was so happy when
          your letter came." [They wrote to each other for the rest of their lives.|That was the beginning of a long
          friendship.]
    """)
    questions = [
        ("What did {hero} find?", "{hero} found a {color} bottle with a letter in it."),
        ("Who wrote the letter?", "The letter was from {writer}."),
        ("Where was the bottle?", "It was {at}, {spot1}."),
        ("What color was the bottle?", "The bottle was {color}."),
    ]
    return Plot(paragraphs, questions, "friendship", "a letter in a bottle")


def greedy(story):
    """All the sweets are eaten by one."""
    facts = story.facts
    choose = story.rng.choice
    facts["sweet_count"] = choose(["six", "eight", "nine", "ten"])
    facts["sweet"] = choose([
        "plum cakes", "honey buns", "cherry tarts", "ginger cookies", "cream rolls", "sugar plums"
    ])
    paragraphs = parse_paragraphs("""
        {his} {parent} had baked {sweet_count} {sweet} and put them on a {color} plate. "[They are for everyone|Wait
          until supper|One for each of us]," {parent_he} said, and went out to the [well|garden|market].

        {hero} looked at the {sweet}. "[One will not be missed|I will only taste one]," {he} said. It was so good that
          {he} ate a second one, and then a third. [Soon only one was left.|In the end the {color} plate was empty but
          for crumbs.] Then {his} tummy [began to hurt|grumbled and groaned], and {he} had to lie down.
        {the_friend} came in with muddy shoes. "[Where are the {sweet}|Who ate them all]?" asked {friend}. {hero} [hid
          {his} face|turned red]. "It was me," {he} said.

        {his} {parent} [sighed|shook {parent_his} head]. "[You have been punished already|Your tummy has told you what
          I think]," {parent_he} said[, and made a cup of tea|]. The next day {hero} baked {sweet_count} {sweet} with
          {his} own hands and [gave every one of them away|did not eat a single one]. [{friend} said they were the
          best of all.|]
    """)
    questions = [
        ("How many {sweet} were there?", "There were {sweet_count} {sweet}."),
        ("Who ate the {sweet}?", "{hero} ate them."),
        ("What color was the plate?", "The plate was {color}."),
    ]
    return Plot(paragraphs, questions, choose(["enough", "sharing"]), "being greedy")
