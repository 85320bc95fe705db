"""What the demo's stories are about: the sentences of events, of standing themes and of their doubles.

All of it was written for this project; nothing is taken from a collection and nobody real is named. A story
is described in a few lines of plain text (see :func:`parse_stories`):

    = bridge | span | crossing         the subject: the query's word first, then what other writers call it
    + collapse | failure               the happening, likewise
    1 ...                              a clause of the first days of the event
    2 ...                              a clause of the weeks after
    3 ...                              a clause of the aftermath
    x ...                              a clause that uses the query's words in another sense

Clauses name the subject and the happening only through the slots ``{s}`` and ``{h}``, so that a document can
be about the event without a single word of the query. The other slots belong to one event: ``{p}`` place,
``{r}`` region, ``{o}`` organisation, ``{n}`` and ``{m}`` officials, ``{t}`` the proper name of the thing.
Slots with longer names are open ones, see words.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Story:
    """A kind of event, or a standing theme (whose clauses all stand in the first phase)."""

    subject: tuple[str, ...]
    happening: tuple[str, ...]
    phases: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    other_sense: tuple[str, ...]

    @property
    def query_words(self) -> tuple[str, str]:
        return self.subject[0], self.happening[0]


def parse_stories(text: str) -> tuple[Story, ...]:
    """Read the notation of this module's docstring."""
    stories = []
    for block in text.strip().split("\n= "):
        lines = block.removeprefix("= ").splitlines()
        subject = tuple(word.strip() for word in lines[0].split("|"))
        happening: tuple[str, ...] = ()
        clauses: dict[str, list[str]] = {"1": [], "2": [], "3": [], "x": []}
        for line in lines[1:]:
            mark, _, rest = line.partition(" ")
            if mark == "+":
                happening = tuple(word.strip() for word in rest.split("|"))
            elif mark:
                clauses[mark].append(rest)
        phases = (tuple(clauses["1"]), tuple(clauses["2"]), tuple(clauses["3"]))
        stories.append(Story(subject, happening, phases, tuple(clauses["x"])))
    return tuple(stories)


@cache
def events() -> tuple[Story, ...]:
    """Kinds of event: they burst, drift in vocabulary and fade."""
    return parse_stories(_EVENTS)


@cache
def themes() -> tuple[Story, ...]:
    """Standing themes: reported evenly through the year."""
    return parse_stories(_THEMES)


# Clauses that fit any standing theme.
ANY_THEME: tuple[str, ...] = (
    "a working group in {p} meets every month",
    "{o} paid for a pilot project in {r}",
    "{m} compared notes with colleagues from {place}",
    "visitors from {place} came to see how it is done in {p}",
    "{n} called the figures {view}",
    "the programme in {r} runs for another {few} months",
    "{m} gave a talk on the subject in {p}",
    "a questionnaire was sent to {num} households in {r}",
    "not everybody in {p} is convinced",
    "{n} has worked in the field for {few} years",
)

# Clauses that fit any event, by phase: words that go with trouble as such and tell events apart from nothing.
ANY_EVENT: tuple[tuple[str, ...], ...] = (
    (
        "first reports from {p} were confused",
        "residents of {p} gathered in the main square to wait for news",
        "local radio in {r} broke into its programmes",
        "{n} cancelled a visit abroad and returned to {p}",
        "emergency crews were called from every part of {r}",
        "an information line took {num} calls within hours",
        "{n} asked people to stay calm",
        "offices in {p} sent their staff home at noon",
        "the cause was not known by nightfall",
        "a spokesman for {o} would not give further details",
    ),
    (
        "{n} visited {p} and spoke with those affected",
        "{o} set up a team of {few} specialists",
        "the cost to {r} was put at {num} million crowns",
        "volunteers from {place} offered help",
        "officials in {r} met for the third time in a week",
        "{m} called the response {view}",
        "daily briefings were moved to the town hall of {p}",
        "{o} published a first account of the events",
        "insurers sent assessors to {p}",
        "a relief fund in {r} passed {num} thousand crowns",
    ),
    (
        "a committee led by {m} finished its {adj} report",
        "lawyers in {r} prepared a joint claim",
        "{o} apologised and promised reforms",
        "a small ceremony was held in {p}",
        "{n} faced {adj} questions in parliament",
        "the report listed {few} recommendations",
        "critics said that lessons had not been learned",
        "{m} was named to oversee the new rules",
        "auditors asked {o} for its internal papers",
        "a court in {r} set a date for the hearing",
    ),
)

_EVENTS = """
= bridge | span | viaduct | crossing
+ collapse | failure | disaster | fall
1 the {s} dropped into the water shortly before the morning rush
1 divers searched the current below broken girders
1 two lorries and a bus were left hanging over the edge
1 rescue boats lifted drivers from the cold water
1 the approach roads to the {t} {s} were sealed off
1 survivors of the {h} clung to lamp posts and cables
2 engineers from {o} inspected the remaining piers
2 a ferry service replaced the lost road link
2 floating cranes raised twisted girders from the riverbed
2 officials blamed rusted bolts for the {h}
2 welders cut the fallen deck into pieces
2 lorries took a detour of {few} kilometres around {p}
3 an inquiry heard that inspections of the {s} had been skipped
3 the contractor {o} denied having used cheap steel
3 lawmakers debated a toll to pay for a new {s}
3 {n} promised stricter load limits
3 a judge read out maintenance logs with missing pages
3 relatives laid wreaths on the empty abutment
x players met for the annual bridge tournament and bid until midnight
x the bridge club welcomed beginners to its card tables
x a bold double won the bridge trophy for the pair from {place}
x a collapse of the middle order cost the batting side the match
x the dentist fitted a bridge and two crowns
x the sudden collapse in onion prices puzzled traders
= river | waterway | stream | channel
+ flood | deluge | inundation | overflow
1 the {s} rose {few} centimetres overnight after heavy rain
1 families were carried from rooftops by helicopter
1 sandbags were stacked along the embankment in {p}
1 brown water filled cellars and shops
1 the {h} cut off three villages in {r}
1 pumps worked through the night at the {t} weir
2 the {h} left mud in {num} homes
2 engineers opened the sluices to lower the {s}
2 clean drinking water was handed out from tankers
2 farmers in {r} counted drowned cattle
2 levees along the {s} were patched with clay and stone
2 dehumidifiers hummed in the ruined library of {p}
3 the {h} maps of {r} were redrawn
3 planners proposed meadows where the {s} could spread
3 owners on the low streets were offered a buyout
3 {o} refused to renew policies near the embankment
3 a study blamed the concrete lining of the {s}
3 {n} opened a new set of sluices and levees
x a flood of cheap imports worried shoemakers
x the college crew won the river regatta by a length
x a flood of complaints reached the broadcaster
x rowers trained on the river from dawn
x the new album brought a flood of fan letters
x a river cruise with accordion music was sold out
= bank | lender | savings house | credit house
+ fraud | swindle | deception | embezzlement
1 detectives raided the head office of the {s} in {p}
1 depositors queued outside closed counters
1 the {h} came to light when an auditor found empty accounts
1 two directors of the {t} {s} were led away in handcuffs
1 cash machines stopped paying out at noon
1 regulators froze transfers worth {num} million crowns
2 investigators traced the money to shell companies
2 prosecutors said forged ledgers had hidden the {h} for years
2 {o} stepped in to guarantee deposits
2 a former cashier described backdated loans
2 administrators sold villas and yachts of the directors
2 pensioners in {r} asked when they would see their deposits
3 the chairman of the {s} pleaded not guilty to false accounting
3 jurors listened to taped calls between directors
3 {n} proposed tighter rules for auditors
3 the ledgers filled {few} boxes in the courtroom
3 sentences for the {h} ranged from two to nine years
3 liquidators paid depositors a quarter of their claims
x anglers sat along the grassy bank and waited for carp
x the food bank asked for tinned soup and rice
x nurses thanked donors to the blood bank
x badgers dug a den into the bank above the stream
x the seed bank stored wild grasses in a cold vault
x a fraud of a magician delighted children at the fair
= train | express | railcar | locomotive
+ derailment | crash | wreck | accident
1 the {s} left the track on a curve outside {p}
1 firefighters cut passengers free from crushed carriages
1 the third carriage of the {s} lay on its side in a field
1 ambulances lined up along the embankment
1 a signalman raised the alarm after the {h}
1 doctors at {p} treated {num} passengers for broken bones
2 inspectors from {o} measured the rails near the {t} junction
2 the speed recorder of the {s} was recovered
2 buses replaced services between {p} and {place}
2 a heavy crane lifted the carriages back upright
2 the driver told inspectors the signal had shown green
2 the {h} bent {few} metres of rails
3 inspectors found a cracked wheel and worn sleepers
3 {o} was fined for neglecting the track
3 the union defended the driver of the {s}
3 automatic braking was ordered for every junction in {r}
3 survivors of the {h} met on the platform a last time
3 {n} said signals older than thirty years would be replaced
x volunteers train guide dogs for two years
x runners train on the hills for the autumn marathon
x the academy will train forty young chefs
x the last-minute amendment meant the derailment of the budget talks
x her gown had a train of white lace
x sports teachers train in the new hall
= mine | pit | colliery | shaft
+ explosion | blast | detonation | fireball
1 {few} workers were trapped underground when the roof gave way
1 the {h} tore through a gallery deep below {p}
1 rescuers with breathing masks went down in the cage
1 relatives waited at the gates of the {t} {s}
1 methane levels were too high to enter the tunnels
1 smoke poured from the ventilation fans
2 a drill reached an air pocket beside the coal face
2 three men walked out of the {s} after four days
2 {o} halted digging at its other seams
2 tests pointed to methane as the source of the {h}
2 coffins were carried through {p} to the miners chapel
2 the tunnels were flooded to smother the glow
3 the safety lamps of the {s} had not been checked
3 widows asked {o} for pensions
3 an inspector said coal dust had fed the {h}
3 the seams below {p} were sealed with concrete
3 {n} promised gas alarms in all tunnels
3 a memorial of lamps and helmets was unveiled
x the archive was a gold mine for historians
x the old notebook proved a mine of recipes
x a population explosion of rabbits stripped the meadows
x the coach called the young sprinter a mine of energy
x an explosion of colour marked the spring fashion week
x the explosion of interest in pottery surprised shopkeepers
= port | harbour | docks | waterfront
+ strike | walkout | stoppage | standstill
1 crane drivers laid down their work at midnight
1 containers piled up along the quay at {p}
1 the {h} shut every berth of the {t} {s}
1 pickets stood at the gates with drums and flags
1 {few} freighters dropped anchor in the roads off {p}
1 the union said members at the {s} had not had a raise in four years
2 fruit rotted in the containers on the quay
2 mediators brought {o} and the union to one table
2 the {h} cost shippers {num} million crowns a day
2 supermarkets in {r} ran short of bananas and coffee
2 pickets let medicine through the gates of the {s}
2 freighters were diverted to {place}
3 dockers voted for a wage deal over three years
3 the first containers moved across the quay again
3 {o} agreed to keep night shifts voluntary
3 {n} drafted a bill on compulsory mediation
3 the {s} lost two shipping lines for good
3 stewards dismissed during the {h} asked for their jobs back
x a glass of port and blue cheese ended the dinner
x the cellar offered port from three vintages
x a lightning strike split the oak beside the chapel
x the bowler opened with a strike and two spares
x the laptop has a port for older cables
x the winger scored with a strike from thirty metres
= oil | crude | fuel | petroleum
+ spill | leak | slick | discharge
1 a black film of {s} reached the beaches near {p}
1 the tanker {t} ran onto rocks in thick fog
1 the coastguard laid booms around the tanker
1 seabirds coated in tar were found along the shore
1 the {h} spread over {few} square kilometres
1 fishing boats from {p} were ordered to stay in
2 volunteers in white suits shovelled tar from the sand
2 {o} pumped the remaining {s} into a second tanker
2 vets washed gulls and cormorants
2 chemicals were sprayed to break up the {h}
2 oyster beds in {r} were closed
2 hotels near the dirty beaches reported cancellations
3 the captain of the {t} was charged with negligence
3 biologists counted fewer cormorants after the {h}
3 {o} set aside {num} million crowns for cleaning
3 {n} demanded double hulls for every tanker
3 fishermen sued for the loss of two seasons
3 traces of {s} were still found in the oyster beds
x drizzle the salad with oil and lemon
x the cook fried the peppers in oil with garlic
x the portrait in oil hung above the fireplace
x a spill of red wine ruined the carpet
x the cyclist took a spill in the last corner
x the mill pressed sunflower oil for the market
= museum | gallery | art house | treasury
+ theft | robbery | heist | burglary
1 thieves climbed through a skylight of the {s} at night
1 {few} paintings were cut from their frames
1 the {h} lasted barely six minutes
1 guards at the {t} {s} were found tied up in a cupboard
1 the alarm had been switched off for repairs
1 detectives in {p} searched a burnt van
2 a reward was offered for the missing canvases
2 experts feared the paintings could never be sold openly
2 a ransom note reached the curator of the {s}
2 police dogs followed a trail to {place}
2 {o} had insured the canvases for {num} million crowns
2 a night watchman was questioned about the {h}
3 two canvases turned up in a barn in {r}
3 the dealer accused of planning the {h} went on trial
3 restorers repaired the slashed paintings
3 the {s} reopened with new locks and cameras
3 the curator resigned after the audit
3 a masked witness described the ransom talks
x identity theft on the web doubled within a year
x the theft of base by the shortstop turned the game
x the wax museum added a pop singer
x warnings about bicycle theft were posted near the campus
x a tractor museum invited visitors to ride along
x theft of copper cable delayed commuters
= fever | infection | virus | illness
+ outbreak | epidemic | spread | wave
1 doctors in {p} reported {num} patients with rash and high temperature
1 the clinic at {p} put patients into isolation wards
1 the {h} began among guests of a wedding
1 laboratories identified the {t} strain of the {s}
1 pharmacies ran out of masks
1 passengers from {r} were screened at the airport
2 nurses gave the first vaccine doses in gymnasiums
2 {o} tripled its production of vaccine
2 contact tracers telephoned {num} households
2 the {h} reached {place} within two weeks
2 hospitals in {r} postponed operations
2 mosquito nets were handed out against the {s}
3 the last patients left the isolation wards
3 a panel asked why warnings of the {h} were ignored
3 {n} ordered a reserve of vaccine and masks
3 antibodies to the {s} were found in one of five samples
3 {o} was accused of overcharging for vaccine
3 children orphaned by the {s} received support
x election fever gripped the student union
x gold fever drew amateurs to the creek
x supporters caught cup fever before the final
x an outbreak of laughter interrupted the lecture
x an outbreak of good manners surprised the debating society
x the dance hall revived the disco fever of old
= election | ballot | poll | vote
+ recount | review | dispute | challenge
1 the result in {r} hung on {num} slips of paper
1 both candidates claimed victory in {p}
1 a sealed box from {p} turned up in a garage
1 the {h} began under the eyes of party observers
1 {n} led by fewer than a hundred in the {s}
1 clerks held stamped papers against the light
2 judges ruled that unsigned envelopes in the {s} be set aside
2 supporters of {m} camped outside the counting hall
2 the {h} moved the lead from {n} to {m}
2 observers complained about broken seals
2 scanners supplied by {o} misread folded papers
2 the {t} party printed banners for both outcomes
3 the high court confirmed {m} as winner of the {s}
3 {n} conceded after the {h}
3 scanners by {o} were banned from counting halls
3 the oath was taken six weeks late
3 a bill required paper trails and numbered seals
3 clerks in {p} were trained to check signatures
x veterans recount their voyages in a new book
x grandmothers recount fairy tales at the festival
x the election of a new choir director was a cheerful affair
x two brothers recount how they built the boat
x the club met for the election of a treasurer
x guides recount legends of the castle
= forest | woodland | pinewood | timberland
+ fire | blaze | inferno | flames
1 strong winds drove the {h} towards {p}
1 {num} hectares of {s} were ash by evening
1 water bombers scooped from the {t} lake
1 campers fled along a smoky road
1 hillside cabins were evacuated at dusk
1 a column of smoke could be seen from {place}
2 crews cut breaks through the {s} with bulldozers
2 soldiers beat out embers with shovels
2 the {h} jumped the highway twice
2 smoke made breathing hard in {r}
2 deer and foxes wandered into the suburbs of {p}
2 rain at last damped the embers
3 a fallen cable of {o} was blamed for the {h}
3 foresters planted beech and oak on the charred slopes
3 owners of cabins asked for rebuilding grants
3 {n} banned campfires and clearing by burning
3 charred trunks of the {s} were sold as pulp
3 new bulldozers and water bombers were ordered
x the board decided to fire the head coach
x the start-up had to fire half of its designers
x a fire sale emptied the carpet store
x a forest of microphones awaited the singer
x the potter uses the kiln to fire glazed bowls
x a forest of scaffolding hid the cathedral
= dam | barrage | reservoir wall | embankment wall
+ crack | fissure | fracture | rupture
1 water seeped through the {h} on the valley side
1 {num} villagers below the {s} were moved to tents
1 inspectors noticed the {h} during a routine climb
1 the spillway of the {t} {s} was opened wide
1 sirens sounded in the valley of {p}
1 turbines were stopped and the gates raised
2 grout was pumped into the {h} day and night
2 the lake behind the {s} fell by {few} metres
2 hydrologists of {o} set sensors on the concrete
2 helicopters dropped bags of gravel on the spillway
2 villagers were allowed back to feed livestock
2 electricity from the turbines was missed in {r}
3 the {s} would need a new spillway within three years
3 geologists said {o} had built on soft shale
3 {n} ordered checks of all concrete walls in the valley
3 a model of the {s} was tested in a laboratory
3 villagers voted on moving for good
3 minutes showed that sensors had warned of the {h}
x code breakers tried to crack the cipher
x a beaver dam turned the meadow into a pond
x comedians crack jokes in three dialects
x the riders hope to crack the record this summer
x beaver families build a dam from willow
x bakers crack a thousand eggs before dawn
= satellite | spacecraft | orbiter | probe
+ launch | liftoff | ascent | departure
1 the countdown at {p} was stopped twice by wind
1 the rocket {t} climbed into a clear sky
1 engineers cheered when the solar panels unfolded
1 the {s} separated from the upper stage after nine minutes
1 thousands watched the {h} from the dunes
1 a valve was replaced hours before the {h}
2 ground controllers of {o} picked up the first signal
2 the {s} raised its orbit with short burns
2 an antenna refused to unfold
2 the first pictures showed clouds above {r}
2 controllers rebooted the star tracker
2 the {h} was insured for {num} million crowns
3 the {s} mapped soil moisture and sea ice
3 scientists released data gathered in orbit
3 {o} sold pictures to farmers and shipping firms
3 the antenna problem cut the lifetime of the {s}
3 {n} approved a sister craft with a larger antenna
3 the review of the {h} praised the rocket crew
x the publisher will launch a magazine for gardeners
x the label plans to launch a perfume
x a satellite town of row houses grows in the east
x friends launch a cooking channel
x a satellite office with six desks opened
x the museum will launch an audio guide
= plant | factory | works | mill
+ closure | shutdown | wind-down | end
1 {o} said {num} jobs would go in {p}
1 workers heard of the {h} on the radio
1 tears and anger met the news at the gates of the {s}
1 the {t} assembly line would stop before winter
1 shop stewards called a meeting in the canteen
1 shares of {o} rose after the announcement
2 the union offered shorter hours to save the {s}
2 shopkeepers in {p} hung black flags
2 a rival maker looked at the assembly line
2 {n} asked {o} to delay the {h}
2 severance talks went on until dawn
2 suppliers in {r} laid off staff
3 the last gearbox left the assembly line
3 machines from the {s} were auctioned
3 retraining courses filled within a day
3 a brewery leased the empty canteen
3 joblessness in {p} doubled after the {h}
3 former workers started a cooperative
x the rare plant flowers once in nine years
x gardeners should plant tulips before the frost
x a climbing plant covered the wall with blossoms
x road closure signs confused visitors
x children plant beans in paper cups
x the closure of the zipper broke on stage
= cycling | racing | bicycle | pedal
+ doping | steroid | blood booster | cheating
1 the leader of the {s} tour failed a test in {p}
1 police searched the team hotel for syringes
1 the {h} samples of {few} riders were sent to a laboratory
1 the {t} team left the tour at dawn
1 a masseur was stopped at the border with ampoules
1 sponsors demanded an explanation from {o}
2 a rider confessed to transfusions in a hotel room
2 the second sample confirmed the {h} finding
2 the team doctor burned his notebooks
2 fans turned their backs when the tour reached {r}
2 {o} ended its sponsorship of {s}
2 a freezer with labelled bags was found in {place}
3 the champion lost three titles and his medals
3 the {s} federation announced lifetime bans
3 the team doctor stood trial over {h} schedules
3 blood passports became a duty for every rider
3 {n} resigned from the federation
3 clean riders were given the medals on a rainy square
x cycling of nutrients keeps the lake in balance
x doping of silicon with boron makes better chips
x physicists studied the doping of thin crystals
x the cycling of water between soil and cloud was measured
x doping improved the solar cell by a tenth
x the cycling of the traffic lights was shortened
= data | records | files | profiles
+ breach | hack | intrusion | exposure
1 attackers copied {s} of {num} thousand customers
1 the {h} was noticed by a student in {p}
1 {o} switched off its servers for two days
1 passwords from the {t} platform were offered for sale
1 customers were told to change their passwords
1 the attackers demanded payment in digital coins
2 forensic specialists searched the servers for back doors
2 the {h} began with an e-mail to an accountant
2 phone lines of {o} were jammed
2 a regulator in {r} asked where the {s} had been stored
2 card companies replaced {num} cards
2 a teenager in {place} boasted of the {h}
3 {o} was fined for weak encryption
3 customers joined a class action over leaked {s}
3 the security chief of {o} left
3 {n} proposed that stored {s} be encrypted
3 the attackers were arrested in a holiday flat
3 insurers raised premiums for servers without backups
x the parties argued over breach of contract
x whales breach close to the tour boats
x weather data from balloons improved forecasts
x the tenant sued for breach of the lease
x census data showed smaller households
x orcas breach in the bay at sunset
= ferry | vessel | steamer | boat
+ sinking | capsize | shipwreck | foundering
1 the {s} {t} went down in a storm off {p}
1 {num} passengers were pulled from life rafts
1 the bow door of the {s} had been torn off
1 helicopters searched for survivors of the {h} at dawn
1 a distress call was heard shortly after midnight
1 fishermen hauled children from the waves
2 divers reached the wreck at forty metres
2 the passenger list of {o} proved incomplete
2 the captain said cargo had shifted before the {h}
2 candles burned on the pier of {p}
2 a robot filmed the car deck of the {s}
2 sister ships of the {t} were kept in harbour
3 inspectors said life jackets on the {s} were out of date
3 the captain received six years in prison
3 {o} lost its licence for the island route
3 {n} wanted the wreck raised for burial of the dead
3 relatives rejected the offer made after the {h}
3 rules on bow doors and cargo straps were tightened
x coaches ferry spectators to the stadium
x parents ferry children between lessons
x a sinking feeling came over the goalkeeper
x the sinking of a well took three weeks
x shuttles ferry guests to the winery
x the sinking pound helped exporters
= volcano | cone | fire mountain | crater
+ eruption | outburst | venting | activity
1 ash fell like snow on the roofs of {p}
1 lava from the {s} crossed the coast road
1 the {h} threw rocks as large as cars
1 {num} islanders left on navy ships
1 airspace above {r} was shut because of ash
1 tremors under mount {t} woke sleepers
2 scientists of {o} flew a drone over the lava
2 roofs in {p} broke under wet ash
2 masks against ash were handed out
2 the {h} melted a glacier and sent mud downhill
2 gas readings near the {s} rose again
2 flights to {place} resumed with detours
3 islanders returned to grey fields
3 lava stone from the {s} was sold as souvenir
3 farmers hoped that ash would feed the vines
3 the alert for mount {t} was lowered
3 seismologists of {o} asked for more sensors
3 a museum of the {h} opened in a buried school
x pupils built a model volcano with vinegar and soda
x an eruption of applause greeted the pianist
x the chocolate volcano is baked for nine minutes
x an eruption of anger followed the offside call
x a skin eruption troubled the patient
x the paper volcano won the science fair
= airline | carrier | air operator | flag carrier
+ merger | takeover | tie-up | acquisition
1 {o} offered {few} crowns a share for the {t} {s}
1 the {h} would create a fleet of two hundred jets
1 shares were halted in {p} before the news
1 pilots learned of the {h} in a midnight message
1 {n} spoke of savings on hangars and kitchens
1 rival bidders studied the books of the {s}
2 cabin crews feared for their seniority
2 competition officials in {r} questioned the {h}
2 the {s} offered to give up landing slots at {p}
2 a hedge fund called the price too low
2 pilots of the {t} wore black ties
2 bankers worked on loans for the fleet
3 shareholders approved the {h} by a wide margin
3 jets of the {s} were repainted in blue and silver
3 booking systems failed on the first joint morning
3 {num} office jobs in {p} were cut
3 frequent flyers complained about lost points
3 {m} took the controls as chief executive
x the merger of two choirs brought new tenors
x the merger of galaxies was seen through the telescope
x a board game about an airline won a prize
x pupils designed airline posters in art class
x the merger of two parishes was blessed
x the merger of the village bands was celebrated
= gas | heating | methane | energy
+ shortage | scarcity | squeeze | rationing
1 pressure in the {t} pipeline fell by half
1 {o} told bakeries in {p} to save {s}
1 the {h} began with the first frost
1 radiators stayed cold in {num} flats
1 storage caverns in {r} were nearly empty
1 the pipeline operator declared an emergency
2 public pools and saunas were closed
2 tankers with liquid {s} were bought at high prices
2 the {h} pushed fertiliser makers to stop
2 families burned furniture in tiled stoves
2 {n} asked neighbours to open the pipeline valves
2 warm halls with soup were set up in {p}
3 a subsidy for {s} bills passed in parliament
3 storage caverns were to be filled by autumn
3 {o} paid back part of its windfall
3 heat pumps sold out after the {h}
3 the pipeline treaty was signed in {place}
3 an inquiry asked who had emptied the caverns
x a cloud of gas glowed around the young star
x astronomers weighed the gas between galaxies
x a shortage of teachers closed the music class
x orchestras complained of a shortage of oboe players
x balloonists filled the envelope with gas
x the shortage of goalkeepers worried the trainer
"""

_THEMES = """
= school | classroom | pupil | kindergarten
+ meals | lunches | dinners | menus
1 cooks in {p} replaced fried food with lentils and carrots
1 free {h} were offered to every child in {r}
1 a dietician praised the {s} kitchen
1 children voted for pancakes on fridays
1 {o} delivered crates of apples to canteens
1 parents asked for {h} without pork or nuts
1 {n} wanted sugar out of canteens
1 a survey found that hungry children learn less
1 leftovers from the {s} canteen went to compost
1 the price of a tray rose to {few} crowns
1 the {t} trust trained canteen cooks
1 vegetables from the {s} garden were served
x a school of mackerel passed the pier
x divers swam into a school of silver fish
x the astronaut rehydrated his meals with hot water
x the old school of landscape painters was rediscovered
x hikers packed dried meals for a week
x meals on the night sleeper were served cold
= city | town | rooftop | urban
+ bees | hives | honey makers | pollinators
1 keepers in {p} set boxes on the roof of the opera
1 the {h} gathered nectar from lime trees
1 {s} honey won a blind tasting
1 mites killed a third of the colonies in {r}
1 {o} placed colonies on its headquarters
1 children learned to handle smokers and combs
1 wild flower strips were sown for the {h}
1 {n} wrote a guide for {s} keepers
1 swarms were collected from lamp posts
1 too many colonies left little nectar for wild insects
1 the {t} society counted {num} colonies
1 jars of lime honey sold out
x spelling bees thrilled the pupils
x the final of the spelling bees was broadcast
x quilting bees revived an old craft
x the city eleven lost the derby at home
x city supporters sang through the rain
x sewing bees met in the parish hall
= language | tongue | dialect | speech
+ revival | comeback | renewal | rescue
1 evening classes in {p} taught old verbs to newcomers
1 only {num} elders in {r} spoke the {s} at home
1 a dictionary of the {t} {s} was printed
1 radio plays helped the {h}
1 {n} asked for bilingual road signs
1 a choir recorded lullabies with forgotten vowels
1 linguists filmed elders telling proverbs
1 {o} released a keyboard with the missing letters
1 nursery teachers learned proverbs and rhymes
1 the grammar of the {s} was simplified for learners
1 grants for the {h} were doubled
1 a comic book in the {s} sold out
x programmers argued about the best language for robots
x the musical enjoyed a revival on the big stage
x body language gave the poker player away
x a revival of wide trousers was seen in shops
x the compiler for the new language runs on phones
x the tent revival drew gospel singers
= bicycle | bike | cycle | two-wheeler
+ lanes | tracks | paths | routes
1 kerbs in {p} were painted green for riders
1 the {h} took space from parked cars
1 shopkeepers feared losing customers along the {h}
1 {num} commuters a day used the {t} corridor
1 a {s} counter was put up at the square
1 {n} wanted protected junctions
1 helmets were given to children in {r}
1 {o} rented cargo {s} trailers to couriers
1 snow ploughs cleared the {h} first
1 a petition asked for parking racks at stations
1 accidents at junctions fell by a fifth
1 planners from {place} studied the kerbs
x swimmers in the outer lanes were faster
x the bowling alley polished its lanes
x shipping lanes were moved away from whales
x the bicycle act opened the circus
x the country lanes were lined with poppies
x sprinters drew their lanes by lot
= organic | natural | chemical-free | ecological
+ farms | growers | holdings | smallholders
1 {h} in {r} gave up pesticides
1 a label for {s} cheese was introduced
1 clover and compost replaced bought fertiliser
1 {o} paid a premium for {s} wheat
1 the {h} needed more hands for weeding
1 inspectors took soil samples near {p}
1 {n} set a target of {few} per cent
1 earthworms returned to the fields
1 shoppers in {p} paid more for {s} carrots
1 drought hit {h} without deep soil
1 the {t} cooperative opened a dairy
1 seed swaps drew crowds
x server farms hummed in the cold north
x students feared organic chemistry
x organic molecules were found on a comet
x the organic chemistry exam was moved
x click farms sold fake followers
x server farms moved near the fjord
= wind | breeze | airflow | gust
+ turbines | rotors | windmills | towers
1 blades as long as a football pitch arrived in {p}
1 {few} {h} were planned on the ridge above {p}
1 neighbours complained about shadows and humming
1 {o} built a yard for offshore foundations
1 the {s} supplied half of {r} in march
1 ornithologists asked that the {h} stop when storks pass
1 {n} offered villages a share of the revenue
1 the {t} ridge was measured for {s} speed
1 old blades were cut up for noise barriers
1 a calm week left the {h} idle
1 technicians climbed in harness to change gearboxes
1 a cable to {place} carried the surplus
x the wind quintet played on the terrace
x the conductor praised the wind section
x steam turbines from the old cruiser were polished
x sailors waited for wind at the starting line
x jet engine turbines were tested with ice
x the wind players rehearsed with mutes
= sleep | slumber | rest | night rest
+ study | experiment | trial | investigation
1 volunteers in {p} wore sensors for {few} nights
1 the {h} linked late screens with poor memory
1 teenagers who began lessons later had better {s}
1 {n} measured brain waves in a dark room
1 {o} paid for mattresses and headbands
1 naps of twenty minutes improved reaction times
1 shift workers in {r} were followed for a decade
1 dreams were reported after every waking
1 the {h} found no benefit of warm milk
1 snoring partners cost an hour of {s}
1 the {t} institute opened a laboratory with eight beds
1 melatonin peaked later in winter
x the laptop enters sleep when the lid is closed
x a study in charcoal was sold at auction
x the phone wakes from sleep too slowly
x the panelled study of the poet can be visited
x a study for piano ended the recital
x the console has a sleep mode
= housing | home | apartment | flat
+ rents | leases | charges | fees
1 tenants in {p} paid {few} per cent more than a year ago
1 {n} proposed a cap on {h}
1 landlords warned that nobody would repair {s} blocks
1 cranes for new {s} were rare in {r}
1 students slept in caravans at the start of term
1 {o} bought a block of {few} units
1 a tenants union blocked an eviction
1 the register of landlords went online
1 {h} fell where towers had been built
1 short lets to tourists were restricted
1 the {t} cooperative drew lots for units
1 waiting lists in {p} grew again
x a cracked housing let dust into the camera
x torn rents in the curtain were sewn up
x the aluminium housing keeps the drill cool
x the gearbox housing was cast in one piece
x the tailor mended rents in the costume
x the watch has a ceramic housing
= water | wastewater | sewage | effluent
+ recycling | reuse | purification | reclaiming
1 membranes in {p} turned {s} into clear supply
1 the {h} works saved {num} million litres
1 golfers in {r} used treated supply on the greens
1 {n} drank a glass before the cameras
1 {o} patented a membrane with tiny pores
1 residents called the idea toilet to tap
1 breweries tried {s} for a special beer
1 the {h} needed less power than desalting
1 phosphorus was recovered from sludge
1 laundries in {p} cut their bills
1 the {t} basin stored treated supply for dry summers
1 medicine residues in {s} were filtered with charcoal
x water polo players trained at dawn
x the recycling of old jokes bored the audience
x a landscape in water colour won the prize
x recycling bins for glass were painted purple
x water polo drew a large crowd
x critics lamented the recycling of film plots
= library | reading room | book house | lending room
+ funding | budget | money | support
1 the {s} in {p} would open only three afternoons
1 {h} for new books was cut by a third
1 readers formed a chain to carry volumes
1 {n} called the {s} a living room for all
1 {o} gave {num} thousand crowns for shelves
1 a mobile van visited hamlets in {r}
1 librarians lent tools and board games
1 late fines were abolished
1 the {h} was saved by a vote of nine to eight
1 storytelling hours drew toddlers
1 the {t} reading garden was opened
1 borrowing of audio books doubled
x a software library sped up the drawing of maps
x the start-up closed a funding round
x the library of sounds holds frog calls
x venture funding for scooters dried up
x the open source library was patched
x a funding round led by a toy maker failed
= coral | reef | atoll | lagoon
+ restoration | replanting | nursery | recovery
1 divers glued fragments onto frames near {p}
1 warm currents bleached the {s}
1 {h} by {o} used ceramic tiles
1 parrotfish returned to the shallow {s}
1 {n} banned anchors in the bay
1 larvae were raised in floating pools
1 tourists in {r} paid for a fragment of their own
1 a storm tore {few} frames from the seabed
1 biologists bred heat tolerant strains
1 the {h} was filmed by volunteers
1 sunscreen was blamed for bleached tips
1 the {t} bank was closed to trawlers
x walls in coral and mint brighten the cafe
x the restoration of the altar took nine years
x she wore a coral dress at the premiere
x the restoration of vintage cars is costly
x lipstick in coral tones is back
x the restoration of the fresco revealed an angel
= prison | jail | inmate | penal
+ education | lessons | tutoring | courses
1 inmates in {p} sat an algebra exam behind bars
1 {h} cut the number who came back to cells
1 a baker taught sourdough to {few} inmates
1 {n} cut the ribbon of a {s} workshop
1 {o} hired former convicts as fitters
1 tablets without internet were handed to cells
1 a novelist read poems with lifers
1 guards in {r} asked for {h} as well
1 the {t} wing got a classroom and a kiln
1 convicts trained as plumbers before release
1 a graduate in handcuffs received a diploma
1 grants for {s} teachers ran out
x the strategy game ends with a prison break
x a sentimental education of a cellist is told in the film
x prison drama returns for a third season
x the spaniel needed some education in manners
x the escape room looks like a prison
x wine education evenings were booked out
= electric | battery | plug-in | zero-emission
+ buses | coaches | shuttles | vehicles
1 drivers in {p} praised the quiet ride
1 {o} delivered {few} {h} to the depot
1 chargers at the depot overloaded the transformer
1 the {s} fleet lost range in the cold
1 {n} wanted diesel out of the centre
1 pantographs topped up the {h} at terminals
1 a depot in {r} was fitted with sprinklers
1 spare cells were reused as storage
1 the {t} route was the first without diesel
1 passengers liked the {h} but missed the heaters
1 a bidder from {place} went to court
1 maintenance cost a third less than diesel
x the electric guitar solo lasted ten minutes
x an electric atmosphere filled the arena
x school buses carried the brass band
x tour buses waited outside the vineyard
x the electric eel stunned its prey
x a duel of electric violins closed the night
= tea | leaf | green leaf | brew
+ exports | shipments | sales | deliveries
1 pickers on the terraces of {r} began at dawn
1 {h} rose by {few} per cent
1 drought shrivelled the {s} bushes above {p}
1 {o} opened an auction hall
1 buyers tasted two hundred cups of {s}
1 {n} signed a tariff deal
1 frost burned the first flush
1 {h} to {place} were held up by residue tests
1 the {t} estate moved to hand rolled grades
1 pickers asked for shade and clinics
1 bushes older than eighty years were replaced
1 tins with the terraces on the lid sold well
x high tea with scones was served to guests
x the tea dance drew couples in satin
x the tool exports drawings to a printer
x a tea set of bone china was auctioned
x the editor exports clips in one click
x the mad hatter tea party opened the fair
= wolf | predator | pack animal | lupine
+ protection | safeguard | conservation | return
1 cameras near {p} filmed a pack with six pups
1 shepherds in {r} lost {few} lambs
1 {h} was defended by biologists
1 guard dogs and fences kept the {s} from the flock
1 {n} asked for permission to shoot
1 {o} paid shepherds for lost lambs
1 tracks in the snow led across the pass
1 hikers heard howling below the {t} peak
1 droppings showed a diet of deer
1 a court upheld {h} against hunters
1 a collared {s} walked to {place}
1 fences were charged with five thousand volts
x the wolf spider hunts without a web
x sun protection creams were compared
x consumer protection lawyers sued the gym
x the wolf in the pantomime forgot his lines
x wolf whistles spoiled the parade
x write protection on the card was stuck
"""
