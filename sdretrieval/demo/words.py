"""The demo's background: everyday stories, the word lists that fill their slots, and invented names.

All written for this project. Lists run from common to rare, and are drawn from with a skew to the front.
"""

from __future__ import annotations


def _list(words: str) -> tuple[str, ...]:
    return tuple(words.split())


# Everyday stories by section of the paper. Slots in braces are drawn afresh from WORDS, from the invented
# names (place, person, brand) or are numbers (num, few, score); {p} {r} {o} {n} {m} {t} stay the same within
# one story.
BACKGROUND: dict[str, tuple[str, ...]] = {
    "sport": (
        "{p} beat {place} by {score} in front of {num} spectators",
        "{n} scored twice before the interval",
        "the {adj} goalkeeper of {p} saved a penalty",
        "coach {m} praised the {adj} defence of his side",
        "{p} signed the midfielder {person} from {place}",
        "the referee showed {person} a red card",
        "{n} missed {few} training sessions with a sore {body}",
        "the league table put {p} ahead of {place} on goal difference",
        "supporters waved {colour} scarves until the final whistle",
        "the {animal} on the club badge brought no luck",
        "the relay team from {r} took bronze",
        "the tennis prodigy {person} lost in straight sets",
    ),
    "food": (
        "the recipe needs {food}, {food} and a spoon of {food}",
        "chef {n} serves {food} with {food} in a {adj} dining room",
        "bring the pan to a gentle boil and stir in the {food}",
        "the market of {p} is known for {food} and {crop}",
        "{n} learned to bake from a {job} in {place}",
        "guests praised the {adj} {food} pie",
        "leave the dough to rest beside the {household}",
        "the {brand} tavern in {p} won a star",
        "a pinch of {food} lifts the {adj} sauce",
        "the tasting menu costs {num} crowns",
        "grandmothers in {r} add {food} to everything",
        "serve chilled with {food} and dark bread",
    ),
    "stage": (
        "the drama by {n} opened to {view} reviews in {p}",
        "{person} plays a {job} who inherits a {household}",
        "the set of {material} and {material} was built by {o}",
        "critics found the second act {view}",
        "the director {m} moved the plot to {place}",
        "{num} seats remained empty on the second night",
        "a {animal} puppet stole the show",
        "the costumes in {colour} and {colour} were sewn by {person}",
        "applause lasted for {few} minutes",
        "the troupe will tour {r} in spring",
        "the comedy about a {job} and a {job} sold out",
        "the prompter had a {view} evening",
    ),
    "music": (
        "the {instrument} sonata by {n} was performed in {p}",
        "{person} played the {instrument} with {adj} tone",
        "the band {brand} released its {ord} record",
        "the hall in {p} has a {adj} echo",
        "a lost song for {instrument} and {instrument} was found in {place}",
        "{m} conducted without a score",
        "the choir of {r} sang about a {animal} and a {job}",
        "fans camped for {few} hours to hear {brand}",
        "the festival added a {instrument} workshop",
        "the lyrics mention {colour} skies and a {adj} heart",
        "a string broke in the {adj} slow movement",
        "the record label {o} signed {person}",
    ),
    "markets": (
        "shares of {o} closed {few} points higher in {p}",
        "the maker of {goods} reported a {view} quarter",
        "analyst {n} expected demand for {goods} to slow",
        "{o} raised its forecast for {goods} and {goods}",
        "the price of {material} reached a {view} level",
        "investors moved from {goods} into {material}",
        "the crown gained against currencies of the region",
        "{m} takes over as finance director of {o}",
        "orders from {place} doubled",
        "a dividend of {few} crowns was proposed",
        "inventories of {goods} stayed {view}",
        "the {brand} range of {goods} was discontinued",
    ),
    "farming": (
        "farmers in {r} harvested {num} tonnes of {crop}",
        "the {crop} crop looked {view} after a dry may",
        "{n} keeps {num} {animal} families in a barn near {p}",
        "a tractor with a {brand} plough won the contest",
        "beetles damaged {crop} and {crop} in {r}",
        "the cooperative in {p} stores {crop} in new silos",
        "the auction of {animal} breeding stock was {view}",
        "{m} advised growers to sow {crop} early",
        "the orchard of {person} yields {adj} fruit",
        "hail flattened {crop} fields in minutes",
        "milk prices were {view} for the {ord} month",
        "a shepherd from {place} moved his flock uphill",
    ),
    "weather": (
        "a {adj} front brings showers to {r}",
        "temperatures in {p} reach {few} degrees",
        "fog lingered in the valleys until noon",
        "forecaster {n} expected a {view} weekend",
        "snow fell on the {colour} hills above {p}",
        "sunshine returned to the coast of {r}",
        "the {ord} frost of the season covered the {crop}",
        "winds from the west stay {adj}",
        "hikers near {place} were surprised by hail",
        "the pollen count is {view} in {p}",
        "the barometer of the {job} fell sharply",
        "a rainbow stood above the roofs of {p}",
    ),
    "courts": (
        "a {job} from {p} was fined {num} crowns",
        "judge {n} called the behaviour {view}",
        "the witness {person} remembered a {colour} coat",
        "the dispute over a {household} lasted {few} years",
        "defence lawyer {m} spoke of a {view} mistake",
        "the neighbours had quarrelled about a {animal}",
        "the defendant sold fake {goods} in {place}",
        "the verdict is expected in {p} next week",
        "the clerk read {few} pages aloud",
        "the appeal by {o} was rejected",
        "a stolen {instrument} was returned to {person}",
        "the jury in {r} could not agree",
    ),
    "campus": (
        "the university of {p} opened a chair for {science}",
        "professor {n} lectured on {science} and {science}",
        "{num} students enrolled for the {adj} course",
        "the dean {m} defended the {adj} exam",
        "a dormitory named after {person} was opened",
        "graduates from {r} find work within {few} weeks",
        "the debating team travelled to {place}",
        "the thesis on the {animal} won a medal",
        "lecturers of {science} asked for smaller classes",
        "the {brand} scholarship went to a {job}",
        "the campus cafe serves {food} at midnight",
        "freshmen painted the statue {colour}",
    ),
    "science": (
        "researchers in {p} described a {adj} {animal}",
        "the paper on {science} surprised colleagues in {place}",
        "{n} built a sensor from {material} and {material}",
        "the experiment was repeated {few} times",
        "a sample of {material} glowed {colour} in the dark",
        "{o} funds the work on {science}",
        "the fossil of a {animal} was found in {r}",
        "the results were {view} but not conclusive",
        "{m} warned against {adj} headlines",
        "an algorithm sorted {num} images of {crop} leaves",
        "the telescope near {p} got a {adj} mirror",
        "the {brand} method may help in {science}",
    ),
    "travel": (
        "the old quarter of {p} enchants with {adj} courtyards",
        "take the tram to {place} and follow the {colour} signs",
        "the hostel of {n} has {few} beds and a {household}",
        "the trail through {r} is {adj} but short",
        "try the {food} in the tavern {brand}",
        "a {job} rents canoes below the castle",
        "the spa in {p} smells of sulphur and {crop}",
        "souvenirs made of {material} cost {num} crowns",
        "the best view is from the tower of {place}",
        "the guide {person} tells {adj} stories",
        "a {animal} sanctuary lies beyond the vineyards",
        "the market hall opens at {few} past six",
    ),
    "gadgets": (
        "the {brand} phone has a {adj} screen",
        "the headset by {o} weighs {num} grams",
        "reviewer {n} found the menus {view}",
        "the {colour} case is made of {material}",
        "a robot shaped like a {animal} sweeps the floor",
        "the update fixes {few} errors",
        "the app {brand} teaches the {instrument}",
        "{o} showed a {household} that talks",
        "developer {person} works from {place}",
        "the camera recognises {food} and {crop}",
        "the speaker sounds {view} at high volume",
        "preorders opened in {p} at midnight",
    ),
    "council": (
        "the council of {p} debated the {adj} parking plan",
        "mayor {n} opened a playground with a {animal} slide",
        "{num} residents signed the petition on street lamps",
        "councillor {m} called the draft {view}",
        "the square will get benches of {material}",
        "a {job} complained about noise from the {brand} bar",
        "the twin town of {place} sent a {household}",
        "the market moves to the {colour} hall",
        "dog owners in {r} pay {num} crowns",
        "the statue of {person} needs repairs",
        "gardeners planted {crop} on the roundabout",
        "the budget for {goods} was {view}",
    ),
    "wildlife": (
        "a {animal} was seen near {p} for the first time in {few} years",
        "rangers in {r} counted {animal} nests",
        "the {adj} {animal} feeds on {crop} and beetles",
        "ranger {n} nursed a young {animal} with a bottle",
        "the meadow blooms {colour} in june",
        "a camera trap filmed a {animal} chasing a {animal}",
        "the pond near {place} dried up",
        "{person} photographs {animal} tracks",
        "the reserve got {few} nesting boxes",
        "walkers should keep a {adj} distance",
        "{o} sponsors the {animal} atlas",
        "the migration of the {animal} began early",
    ),
}

# What people say to a reporter, in any story.
REMARKS: tuple[str, ...] = (
    "“It is a {view} day for {p},” said {n}",
    "“The outcome is {view},” {m} told the {paper}",
    "“Nobody here is surprised,” said {person}, a {job} from {place}",
    "“We have seen worse,” a {job} told the {paper}",
    "“I would call it {view},” said {person}",
    "“People talk of nothing else in {r},” said the {job} {person}",
    "“What counts is {abstract},” {n} said",
    "“It takes {abstract} and a little luck,” said {m}",
    "the {paper} had carried a {view} account the day before",
    "a {job} from {place} spoke of {abstract} and {abstract}",
    "{n} would not be drawn on the details",
    "{m} was more {adj} than a week ago",
    "the mood in {p} was {adj}",
    "a {job} in the crowd compared it with a {household}",
    "readers of the {paper} sent {num} letters",
    "{person} of {place} sees it in a more {adj} light",
    "in {place} the news met with {abstract}",
    "{m} put it down to {abstract}",
    "the {paper} called it a {view} story",
    "{n} thanked {person} for {abstract} and patience",
    "the next meeting is planned for {weekday} week",
    "a {colour} notice on the door gave the facts",
    "{person} had expected a {view} end",
    "for {m} it was a matter of {abstract}",
    "more is to be heard from {n} in a fortnight",
    "{place} has had a {view} experience of the kind",
)

# How a clause becomes a sentence; {c} is the clause, {d} a second one.
FRAMES: tuple[str, ...] = (
    *("{c}.",) * 10,
    "{c}, it was reported on {weekday}.",
    "it emerged on {weekday} that {c}.",
    "{c}, the {paper} reported.",
    "according to {n}, {c}.",
    "{c}, {m} said.",
    "{c}, and {d}.",
    "{c}, while {d}.",
    "{n} confirmed that {c}.",
)

WORDS: dict[str, tuple[str, ...]] = {
    kind: _list(words)
    for kind, words in {
        "adj": """
            new strong quiet difficult good clear small careful sudden steady bitter modest bright rare
            heavy gentle remarkable awkward sober lively stubborn familiar patient curious uneven solid
            clumsy graceful tense cautious narrow splendid dull honest harsh calm risky playful loud faint
            thorough hasty generous shallow solemn elegant rough cheerful gloomy brisk vivid mild odd
            brilliant dreary subtle fragile sturdy smooth blunt proud timid eager weary hollow dense
            sparse crisp murky stern witty polite fierce humble grand tidy messy sleepy lucid vague bold
            frank lavish meagre rigid supple tender thrifty ornate plain robust feeble nimble sluggish
            serene restless candid devious earnest flimsy glossy grim hearty idle jolly keen lofty mellow
            neat obscure pale quaint rustic shrewd tepid unruly vain wary zealous acrid balmy coarse
            dapper eerie frugal gaunt haughty inert jaded knotty languid morose nifty opaque prim quirky
            ragged sombre terse uncanny verbose wistful zany""",
        "view": """
            good mixed encouraging disappointing surprising fair modest remarkable uncertain poor
            promising sound costly welcome sobering respectable curious decent worrying pleasant
            regrettable satisfactory unusual tolerable splendid puzzling acceptable alarming sensible
            dismal superb sorry ordinary astonishing passable dreadful admirable lamentable predictable
            excellent feeble instructive delightful mediocre outstanding patchy lacklustre refreshing
            grave memorable unremarkable commendable""",
        "abstract": """
            decision result plan mood silence patience progress hope delay promise courage doubt surprise
            trust effort dispute mistake habit memory chance agreement pride fear humour relief gratitude
            ambition anger balance caution comfort concern confusion contrast conviction debate delight
            despair dignity duty envy failure fatigue freedom grace greed grief guilt haste honesty
            instinct irony jealousy justice leisure loyalty luxury mercy misery modesty nostalgia
            obedience optimism panic passion pity poverty prudence regret resolve respect risk rivalry
            sadness scepticism shame sincerity solitude sorrow sympathy temper thrift triumph truth unity
            urgency vanity virtue wisdom wonder zeal""",
        "job": """
            teacher farmer nurse baker driver engineer carpenter plumber painter lawyer librarian gardener
            butcher student pensioner postman electrician dentist tailor mechanic surveyor hairdresser
            watchmaker architect cashier florist beekeeper chemist jeweller mason optician pharmacist
            roofer sculptor surgeon translator upholsterer vet waiter weaver welder accountant barber
            blacksmith bookbinder brewer caretaker clerk cobbler cook courier curator diplomat docker
            editor falconer fisherman fitter forester geologist glazier goldsmith grocer guard innkeeper
            janitor joiner lifeguard locksmith magistrate midwife miller milliner musician notary organist
            pilot porter potter printer ranger sailor saddler secretary shepherd stonecutter tanner tiler
            typist umpire usher vintner wheelwright zookeeper""",
        "animal": """
            fox heron otter hedgehog lynx badger stork owl deer hare beaver falcon squirrel crane toad
            newt salamander goat donkey pony goose swan eagle raven magpie kestrel weasel stoat marten bat
            vole dormouse lizard viper trout pike salmon eel lobster crab seal porpoise dolphin moth
            butterfly dragonfly cricket hornet spider beetle snail tortoise parrot pelican flamingo
            ostrich camel llama alpaca bison elk moose reindeer wombat lemur gibbon tapir okapi meerkat
            mongoose armadillo pangolin platypus walrus puffin albatross gannet cormorant kingfisher
            woodpecker nightingale lapwing curlew""",
        "food": """
            butter garlic pepper salt cheese honey parsley onions tomatoes cream flour eggs basil vinegar
            mushrooms lemon cabbage beans pumpkin walnuts almonds thyme rosemary mustard horseradish
            beetroot celery fennel ginger cinnamon nutmeg cloves saffron paprika chives leeks spinach
            chard lentils chickpeas couscous noodles dumplings sausages bacon ham venison duck trout
            herring mussels anchovies capers olives raisins figs dates plums apricots cherries raspberries
            currants rhubarb quince marzipan custard caramel meringue yoghurt buttermilk curd molasses
            tarragon dill sorrel nettles chestnuts hazelnuts pistachios sesame""",
        "crop": """
            wheat barley potatoes apples maize oats rye grapes hops clover sunflowers beets turnips
            carrots peas lavender flax hemp tobacco cherries pears melons strawberries asparagus
            artichokes lettuce radishes parsnips soybeans millet buckwheat rapeseed lupins alfalfa sorghum
            spelt cucumbers peppers aubergines courgettes gooseberries blackberries elderberries
            mulberries medlars cranberries""",
        "goods": """
            shoes furniture tyres toys clocks textiles bicycles machines cement paper glassware carpets
            engines pumps bearings tools lamps kitchens mattresses paints batteries cables lenses pens
            bottles umbrellas gloves hats knives ladders locks mirrors needles ovens pianos pottery razors
            ropes saddles scissors skis soap spectacles stoves suitcases tents tiles towels trailers
            valves violins wallpaper zippers candles crayons cutlery doorknobs drills envelopes freezers
            greenhouses hammocks lanterns""",
        "material": """
            steel copper timber glass leather wool cotton granite marble silver bronze silk linen bamboo
            clay ceramic aluminium zinc tin nickel lithium graphite rubber cork felt paper slate sandstone
            concrete plaster amber ivory enamel brass pewter titanium tungsten cobalt quartz basalt
            limestone velvet canvas oak walnut cedar larch birch ash""",
        "household": """
            stove table clock sofa teapot lantern wardrobe mirror bathtub kettle ladder cupboard carpet
            armchair lamp basket broom bucket cradle curtain drawer fridge grill hammock kennel loom
            mattress oven piano pillow quilt radiator samovar sewing-machine shelf sideboard sink stool
            suitcase toaster trunk typewriter umbrella vase wheelbarrow""",
        "instrument": """
            piano violin cello flute organ trumpet guitar clarinet harp oboe accordion drum bassoon horn
            trombone tuba viola mandolin zither harpsichord lute banjo saxophone xylophone recorder
            bagpipe hurdy-gurdy dulcimer glockenspiel harmonica""",
        "science": """
            chemistry physics botany geology statistics medicine history linguistics economics astronomy
            genetics zoology optics philosophy archaeology meteorology ecology logic acoustics algebra
            geometry topology anatomy pharmacology psychology sociology hydrology seismology cartography
            robotics nutrition metallurgy mycology entomology ornithology palaeontology musicology
            epidemiology immunology thermodynamics mechanics ceramics""",
        "colour": """
            red blue green white yellow black golden silver grey brown purple orange pink scarlet
            turquoise violet crimson beige maroon ochre indigo lilac emerald teal""",
        "body": "knee ankle back shoulder thigh wrist elbow hip toe neck calf rib heel thumb",
        "ord": "second third first fourth fifth sixth seventh eighth ninth tenth eleventh twelfth",
        "paper": "Courier Herald Gazette Tribune Observer Mercury Chronicle Sentinel Advertiser Examiner",
    }.items()
}

# Passing mentions of an event inside another story; the slots are the event's.
MENTIONS: tuple[str, ...] = (
    "many still speak of the {s} {h} in {p}",
    "the day had begun with talk of the {s} {h} in {p}",
    "some guests had come straight from {p}, where the {s} {h} filled the papers",
    "a collection for those hit by the {s} {h} in {p} was taken at the door",
    "the evening was shortened because of the {s} {h} in {p}",
)

# What a writer calls a town without naming it.
NICKNAMES: tuple[str, ...] = tuple(
    f"the {word} town"
    for word in _list("hill border lakeside coastal spa market garrison cathedral vineyard island")
)

ORGANISATION_KINDS = (
    "Group",
    "Works",
    "Holdings",
    "Industries",
    "Institute",
    "Partners",
    "Systems",
    "Foundation",
    "Brothers",
    "Union",
)

_OPENINGS = _list("""
    Bal Ber Bran Brel Cal Cord Dal Dor Drav Elm Fal Fen Gal Grel Gor Hal Harv Ild Jor Kal Kelm Krav Lar Lend
    Lor Mald Mel Morv Nal Ner Norv Orl Osm Pel Pord Quel Ral Rend Ros Sald Sel Skel Sorv Tald Tel Torm Trel
    Uld Val Verl Vost Welt Wilm Yar Yeld Zal Zorm""")
_MIDDLES = _list("a e i o u al am an ar as el em en er es il im ir is ol om on or os ul um un ur")
_ENDINGS = {
    "place": _list("""
        borg by dale den fell ford grad holm mere minster mond mouth ness rath sted stow thal tov vik
        wick"""),
    "person": _list("""
        dek dric gan kin lec len lin mar nec nik ran rek ric rin sek sen stad tan tek ven vic zek"""),
    "org": _list("berg brand crest dane gate hart hurst lock mark mont park ridge rock stone strand ton way"),
    "region": _list("ania avia enia eria etia ilia itania onia oria ovia umbria unia"),
    "brand": _list("bix dax dora lex lia lux mira nix nova pax phon rax ria tix trix via vox xa zia zon"),
}


def names(kind: str, count: int) -> list[str]:
    """The first ``count`` invented names of a kind: a key of ``_ENDINGS`` (all of them, if there are fewer).

    No dice: name number i is spelled from the digits of i scrambled by a fixed multiplier, so that a larger
    collection knows every name of a smaller one, and neighbours do not look alike.
    """
    endings = _ENDINGS[kind]
    size = len(_OPENINGS) * len(_MIDDLES) * len(endings)
    start = list(_ENDINGS).index(kind) * 7919  # kinds begin elsewhere, so that the first names share no stem
    made = []
    for number in range(min(count, size)):
        # The multiplier is prime and larger than any factor of `size`, so this walks through all spellings.
        code = (number * 1_000_003 + start) % size
        code, first = divmod(code, len(_OPENINGS))
        last, middle = divmod(code, len(_MIDDLES))
        made.append(_OPENINGS[first] + _MIDDLES[middle] + endings[last])
    return made
