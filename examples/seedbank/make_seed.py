"""Write seed/seedbank.jsonl: the same bytes every time, valid against schema.pg.

The tables are what a botanist would check; the functions hand out dates, counts and shelves with a
fixed random seed. Two habits are deliberate, because loaders must cope with them: dates and instants
come in every accepted spelling, and an unknown value is sometimes null and sometimes left out.
"""

import json
import math
import random
import struct
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

Data = dict[str, object]

OUTPUT = Path(__file__).parent / "seed" / "seedbank.jsonl"
DIMENSION = 16
LOTS, TESTS = 40, 24
SUBSPECIES = "Brassica oleracea subsp. oleracea"
PRETREATMENTS = ["cold stratification for eight weeks", "scarified with sandpaper"]
PHOTO = "base64:R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"

# family: genus ...
GENERA = {
    "Asteraceae": ["Arnica", "Centaurea"], "Brassicaceae": ["Brassica", "Crambe"],
    "Caryophyllaceae": ["Agrostemma", "Silene"], "Fabaceae": ["Trifolium", "Vicia"],
    "Fagaceae": ["Quercus"], "Papaveraceae": ["Glaucium", "Papaver"],
    "Poaceae": ["Aegilops", "Hordeum"], "Primulaceae": ["Primula"],
}  # fmt: skip

# name, authority, common names, red list, sites, profile
SPECIES: list[tuple[str, str, list[str] | None, str | None, list[int], str | None]] = [
    ("Aegilops tauschii", "Coss.", ["goatgrass"], "LC", [7, 8],
     "Annual grass of dry steppe, donor of the third genome of bread wheat; spikes break into barrels."),
    ("Agrostemma githago", "L.", ["corncockle", "Kornrade"], "NT", [3, 6],
     "Annual weed of winter cereals with magenta flowers; its heavy seeds live only a few years in soil."),
    ("Arnica montana", "L.", ["arnica", "Bergwohlverleih"], "VU", [4, 5],
     "Yellow daisy of poor acid meadows, gathered for medicine; seeds are short-lived once they are shed."),
    ("Brassica oleracea", "L.", ["wild cabbage"], None, [1, 2],
     "Perennial of sea cliffs on chalk and limestone, ancestor of cabbage, kale and broccoli."),
    ("Centaurea cyanus", "L.", ["cornflower", "bleuet"], "LC", [3, 6],
     "Blue annual of cornfields, declining wherever seed corn is cleaned and fields are sprayed."),
    ("Crambe maritima", "L.", ["sea kale", "strandkål"], "LC", [1, 9],
     "Fleshy perennial of shingle beaches; the corky fruits float and survive months in sea water."),
    ("Glaucium flavum", "Crantz", ["yellow horned poppy"], "LC", [1, 10],
     "Short-lived poppy of shingle and dunes with long curved pods; seeds need light and cold to start."),
    ("Hordeum vulgare", "L.", ["barley", "cevada"], None, [7, 8],
     "Cereal grass; landraces with two rows and six rows tolerate drought, salt and thin mountain soil."),
    ("Papaver alpinum", "L.", ["Alpine poppy"], "NT", [5],
     "Tufted poppy of limestone scree above the tree line, white or yellow; seeds ripen late and unevenly."),
    ("Papaver rhoeas", "L.", ["corn poppy", "papoila", "Klatschmohn"], "LC", [3, 6, 11],
     "Red annual of disturbed ground; minute seeds stay alive in soil for decades and wait for a plough."),
    ("Primula elatior", "(L.) Hill", ["oxlip"], None, [4, 6],
     "Pale yellow primrose of damp woods on heavy soil, with flowers that all hang to one side."),
    ("Primula veris", "L.", ["cowslip", "Schlüsselblume"], "LC", [3, 12],
     "Deep yellow primrose of dry calcareous grassland; seeds need a cold wet winter before they sprout."),
    ("Primula vulgaris", "Huds.", ["primrose", "briallen"], None, [2, 11],
     "Early primrose of hedge banks and woodland edges; ants carry its sticky seeds away."),
    ("Quercus petraea", "(Matt.) Liebl.", ["sessile oak"], "LC", [6],
     "Oak of thin acid soils on slopes; acorns die when they dry, so they cannot be banked in the cold."),
    ("Quercus robur", "L.", ["English oak", "carvalho", "dąb"], "LC", [6, 4],
     "Oak of deep loam; the acorns are recalcitrant and are kept damp and cool for one winter at most."),
    ("Silene dioica", "(L.) Clairv.", ["red campion"], None, [2, 12],
     "Perennial of damp woods and cliffs with separate sexes and pink flowers open by day."),
    ("Silene latifolia", "Poir.", ["white campion"], None, [3, 10],
     "Plant of field margins with separate sexes; the white flowers open at dusk for moths."),
    ("Trifolium pratense", "L.", ["red clover", "trevo"], "LC", [3, 9, 12], None),
    ("Vicia cracca", "L.", ["tufted vetch", "umfeðmingsgras"], None, [9, 12], None),
]  # fmt: skip

# name, country, habitat, latitude, longitude, elevation, soil pH, protected, directions
SITES: list[tuple[str, str, str, float | None, float | None, int | None, float | None, bool, str | None]] = [
    ("Chesil Beach", "GB", "coast", 50.618, -2.553, 4, 7.8, True, "Shingle; ask the warden about terns."),
    ("Lizard Point", "GB", "heath", 49.9593, -5.2065, 56, 5.9, True, "Cliff path west of the lighthouse."),
    ("Kaiserstuhl, Badberg", "DE", "grassland", 48.0952, 7.6801, 433, 7.6, True, "Meadow above the loess."),
    ("Lüneburger Heide", "DE", "heath", 53.168, 9.939, 169, 4.2, True, "Heath south of the sheep fold."),
    ("Passo dello Stelvio", "IT", "alpine", None, None, 2757, 6.8, True, "Scree, position withheld."),
    ("Puszcza Białowieska", "PL", "forest", 52.7012, 23.8685, 165, 5.1, True, "Oaks by the river."),
    ("Kandovan Pass", "IR", "grassland", 36.1556, 51.3033, 2580, 7.9, False, "Terraces below the tunnel."),
    ("Wadi Mujib", "JO", "scrub", 31.4662, 35.5722, -398, 8.2, True, "Gravel fan where gorge meets shore."),
    ("Þingvellir", "IS", "heath", 64.2559, -21.1295, 103, 6.1, True, None),
    ("Camargue, Beauduc", "FR", "coast", 43.3712, 4.5688, 1, 8.0, True, "Dunes behind the lagoon."),
    ("Serra da Estrela", "PT", "scrub", 40.3217, -7.6131, 1420, 5.0, True, "Estrada velha, junto à fonte."),
    ("Öland, Stora Alvaret", "SE", "grassland", 56.4701, 16.5433, 38, None, False, "Limestone pavement."),
]  # fmt: skip

# handle, name, first day, at work, mentor
PEOPLE: list[tuple[str, str, str | None, bool, str | None]] = [
    ("gwen", "Gwen Penrose", "1998-09-01", False, None),
    ("elena", "Elena Rossi", "2004-03-15", True, "gwen"),
    ("jonas", "Jonas Weber", "2009-01-12", True, "gwen"),
    ("farida", "Farida Rahimi", "2011-05-02", True, "elena"),
    ("lukasz", "Łukasz Wiśniewski", "2013-10-01", True, "jonas"),
    ("maja", "Maja Lindström", "2014-04-07", True, "jonas"),
    ("ines", "Inês Carvalho", "2017-02-20", True, "elena"),
    ("yusuf", "Yusuf Haddad", "2018-08-27", True, "farida"),
    ("anna", "Anna Þórsdóttir", "2021-06-14", True, "maja"),
    ("visitor", "Visiting botanist", None, False, None),
]

# target, source: whose pollen sets seed on whom; the same name twice is a self-fertile plant
POLLEN: list[tuple[str, str, float | None]] = [
    ("Primula veris", "Primula elatior", 0.22), ("Primula elatior", "Primula vulgaris", 0.31),
    ("Primula vulgaris", "Primula veris", 0.48), ("Quercus robur", "Quercus petraea", None),
    ("Silene dioica", "Silene latifolia", 0.8), ("Silene latifolia", "Silene dioica", 0.75),
    ("Hordeum vulgare", "Hordeum vulgare", 0.97), ("Aegilops tauschii", "Aegilops tauschii", 0.95),
    ("Agrostemma githago", "Agrostemma githago", None),
]  # fmt: skip

# species, language (- where nobody noted it): text
NOTES = """
Crambe maritima, en: Storm waves moved half the shingle. Fruits still on dead stems, corky and dry.
Crambe maritima, sv: Frukterna satt kvar efter stormen; ungefär hälften var tomma.
Papaver rhoeas, en: Field ploughed late, poppies along the margin. Shook ripe seed into paper bags.
Papaver rhoeas, de: Mohnkapseln am Feldrand geerntet, viele feine Samen, einige Käfer in der Tüte.
Papaver rhoeas, pt: Papoilas à beira da estrada; sementes maduras, colhidas antes da chuva.
Papaver alpinum, en: Snow until July. Ripe and green capsules on one plant, so we came twice.
Primula veris, en: Cowslips in seed, meadow to be mown next week. Took a fifth of the capsules.
Primula veris, en: Seedlings show oxlip leaves in one tray out of twelve: hybrid suspected.
Primula elatior, en: Damp ride under oak and hornbeam, capsules upright and not yet split.
Primula vulgaris, en: Ants had carried off most of the seed. Collected from the bank below the lane.
Quercus robur, en: Acorns floated in water; a third had weevil holes. Packed damp in sand, do not dry.
Quercus robur, pl: Żołędzie zebrane po pierwszym przymrozku, około jedna trzecia uszkodzona.
Quercus petraea, en: Poor mast year on the slope. Acorns small, germinating in the leaf litter.
Hordeum vulgare, en: The farmer keeps this barley for bread; two rows, long awns, sown after rain.
Hordeum vulgare, en: Drought since March, ears short, yet the landrace beat the bought seed beside it.
Aegilops tauschii, en: Spikes shatter at a touch. Swept barrels from the gravel with a brush.
Arnica montana, en: Heads eaten by fly larvae. Eleven of forty had filled seed; dried the same evening.
Arnica montana, de: Bestand stark zurückgegangen, nur noch zwölf blühende Pflanzen auf der Heide.
Glaucium flavum, en: Long pods split lengthwise. Mould in two bags after the ferry, dried at once.
Brassica oleracea, en: Cliff edge unsafe after the landslip; collected from the path only.
Silene dioica, en: Female plants only in this patch, capsules with ten teeth, seed black and warty.
Silene latifolia, en: Moths at dusk. Capsules eaten by caterpillars; cleaned with sieve and blower.
Centaurea cyanus, en: Cornflower in barley not sprayed this year. X-ray shows one seed in ten empty.
Trifolium pratense, -: Hard seed: scarified with sandpaper before sowing, or nothing germinates in agar.
"""


def single(value: float) -> float:
    """Round to single precision."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def shortest(value: float) -> float:
    """Return the shortest decimal that reads back as the same single-precision number."""
    texts = (f"{value:.{digits}g}" for digits in range(1, 10))
    return next(float(text) for text in texts if single(float(text)) == value)


def embed(text: str) -> list[float]:
    """Return the unit vector that the offline `mock` provider gives a text."""
    state, mask = 0xCBF29CE484222325, 2**64 - 1
    for byte in text.encode():
        state = (state ^ byte) * 0x100000001B3 & mask
    values: list[float] = []
    for _ in range(DIMENSION):
        state ^= state << 13 & mask
        state ^= state >> 7
        state ^= state << 17 & mask
        values.append(single(2 * (state / mask) - 1))
    length = math.sqrt(sum(value * value for value in values))
    return [shortest(single(value / length)) for value in values]


def spell_day(day: date, turn: int) -> str | int:
    """Spell a day as ISO text, or on every fourth turn as days since the epoch."""
    return (day - date(1970, 1, 1)).days if turn % 4 == 3 else day.isoformat()


def spell_moment(moment: datetime, turn: int) -> str | int:
    """Spell an instant in UTC, with an offset, with a fraction, with a space, or in milliseconds."""
    east, west = timezone(timedelta(hours=2)), timezone(timedelta(hours=-3, minutes=-30))
    spellings = (
        moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        moment.astimezone(east).isoformat(),
        moment.strftime("%Y-%m-%dT%H:%M:%S.250Z"),
        moment.astimezone(west).isoformat(sep=" "),
        int(moment.timestamp()) * 1000,
    )
    return spellings[turn % 5]


def node(type_name: str, data: Data) -> Data:
    """Make one node record."""
    return {"type": type_name, "data": data}


def edge(type_name: str, source: str, target: str, data: Data | None = None) -> Data:
    """Make one edge record; without properties it needs no data."""
    record: Data = {"edge": type_name, "from": source, "to": target}
    return record if data is None else record | {"data": data}


def taxa() -> Iterator[Data]:
    """Yield the classification, and who pollinates whom."""
    for family, genera in GENERA.items():
        yield node("Taxon", {"name": family, "rank": "family"})
        for genus in genera:
            yield node("Taxon", {"name": genus, "rank": "genus", "profile": None})
            yield edge("ParentTaxon", genus, family)
    for name, authority, common_names, red_list, _, profile in SPECIES:
        data: Data = {"name": name, "rank": "species", "authority": authority, "red_list": red_list}
        data |= {"common_names": common_names, "tolerates_drying": not name.startswith("Quercus")}
        if profile is not None:
            data |= {"profile": profile, "profile_vector": embed(profile)}
        yield node("Taxon", data)
        yield edge("ParentTaxon", name, name.split()[0])
    yield node("Taxon", {"name": SUBSPECIES, "rank": "subspecies", "common_names": []})
    yield edge("ParentTaxon", SUBSPECIES, "Brassica oleracea")
    for target, source, seed_set in POLLEN:
        yield edge("Pollinates", source, target, None if seed_set is None else {"seed_set": seed_set})


def places(rng: random.Random) -> Iterator[Data]:
    """Yield sites, shelves and parcels."""
    for turn, (name, country, habitat, *position, ph, protected, remarks) in enumerate(SITES):
        latitude, longitude, elevation = position
        opened = date(2012, 3, 1) + timedelta(days=rng.randrange(700))
        data: Data = {"code": f"ST-{turn + 1:03}", "registered_on": spell_day(opened, turn), "name": name}
        data |= {"country": country, "habitat": habitat, "protected": protected, "elevation": elevation}
        data |= {"latitude": latitude, "longitude": longitude, "soil_ph": ph, "remarks": remarks}
        yield node("Site", data)
    for room, temperature, humidity in (("base-a", -20.5, 15.0), ("active-b", 4, None)):
        for rack in (1, 2, 3):
            for shelf in (1, 2):
                data = {"id": shelf_id(room, rack, shelf), "room": room, "rack": rack, "shelf": shelf}
                data |= {"capacity": 120, "temperature": temperature, "humidity": humidity}
                yield node("VaultPosition", data)
    for turn, carrier in enumerate(("Parcel post", "Parcel post", "Night rail", "Courier by bicycle")):
        arrived = datetime(2015 + 2 * turn, 10, 4, 9, 30, tzinfo=UTC)
        data = {"waybill": f"WB{70310 + 17 * turn}", "carrier": carrier}
        yield node("Shipment", data if turn == 3 else data | {"arrived_at": spell_moment(arrived, turn)})


def shelf_id(room: str, rack: int, shelf: int) -> str:
    """Return the id of a vault position: the key's texts in the order of the property names."""
    return json.dumps([str(rack), room, str(shelf)], separators=(",", ":"))


def people() -> Iterator[Data]:
    """Yield the staff, and who learnt from whom."""
    for turn, (handle, name, joined, active, mentor) in enumerate(PEOPLE):
        data: Data = {"handle": handle, "name": name, "active": active}
        if joined is not None:
            data |= {"joined": spell_day(date.fromisoformat(joined), turn)}
            data |= {"email": f"{handle}@seedbank.example"}
        yield node("Person", data)
        if mentor is not None:
            yield edge("Mentors", mentor, handle, {"since": joined})


def lot_code(turn: int) -> str:
    """Return the code of a lot; forty lots were taken in over twelve years."""
    return f"SB-{2013 + turn * 12 // LOTS}-{turn + 1:04}"


def species_of(turn: int) -> tuple[str, list[int]]:
    """Return the species of a lot and the sites where it grows; lots go round the table."""
    name, _, _, _, sites, _ = SPECIES[turn % len(SPECIES)]
    return name, sites


# younger lot: older lots. A chain of three generations, a split, and a cross of two.
PARENTS = {19: [0], 38: [19], 23: [4], 34: [15, 16], 28: [9]}
COPIES = [(1, 20), (20, 39), (7, 26), (27, 8), (12, 31)]


def lots(rng: random.Random) -> Iterator[Data]:
    """Yield accessions with what is known of their origin and where they lie."""
    for turn in range(LOTS):
        code, (species, sites) = lot_code(turn), species_of(turn)
        grown = turn in PARENTS
        collected = date(int(code[3:7]), 6, 15) + timedelta(days=rng.randrange(90))
        received = datetime(collected.year, 10, 1, 8, tzinfo=UTC) + timedelta(minutes=rng.randrange(57_600))
        seeds, acorns = rng.randrange(150, 24000), species.startswith("Quercus")
        status = "incoming" if turn > 36 else "exhausted" if acorns else "banked"
        if any(turn in older for older in PARENTS.values()):
            status = "regenerating"
        data: Data = {"code": code, "status": status}
        data |= {"registered_on": spell_day(received.date() + timedelta(days=3), turn)}
        data |= {"barcode": 40210 + turn if turn < 8 else str(9_007_199_254_740_993 + 1_013 * turn)}
        data |= {"received_at": spell_moment(received, turn)}
        if not grown:
            data |= {"collected_on": spell_day(collected, turn + 1)}
        if status in ("banked", "regenerating"):
            data |= {"seed_count": seeds, "seed_mass": round(seeds * rng.uniform(0.0004, 0.012), 2)}
            data |= {"retest_due": spell_moment(received.replace(year=received.year + 10, day=1), turn + 2)}
        if turn % 9 == 4:
            donor = ("Botanischer Garten Tübingen", "Jardín Botánico Atlántico")[turn % 2]
            data |= {"donor": donor, "donor_number": None if turn == 13 else f"XX-{400 + turn}"}
        if turn % 3 == 0:
            data |= {"tags": rng.sample(["crop-wild-relative", "rare", "medicinal", "landrace", "loan"], 2)}
        if turn in (5, 17):
            data |= {"photo": PHOTO, "remarks": "Photographed on the light table; a few seeds are cracked."}
        elif turn % 6 == 1:
            data |= {"remarks": None, "tags": []}
        yield node("Accession", data)
        yield from determinations(code, species, collected, turn)
        if not grown:
            yield edge("CollectedAt", code, f"ST-{rng.choice(sites):03}")
            yield from collectors(rng, code, turn)
        if status not in ("incoming", "exhausted"):
            yield from storage(rng, code, received + timedelta(days=30), turn)
        if turn % 9 == 4:
            yield edge("ShippedIn", code, f"WB{70310 + 17 * (turn // 9 % 4)}")
    for younger, olders in PARENTS.items():
        method = "cross" if len(olders) == 2 else "split" if younger == 28 else "regeneration"
        made: Data = {} if method == "split" else {"made_on": f"{lot_code(younger)[3:7]}-05-20"}
        made |= {"method": method}
        yield from (edge("DerivedFrom", lot_code(younger), lot_code(older), made) for older in olders)
    for left, right in COPIES:
        yield edge("Duplicates", lot_code(left), lot_code(right))


def determinations(code: str, species: str, day: date, turn: int) -> Iterator[Data]:
    """Yield what a lot was taken for: first in the field, sometimes again on better grounds."""
    data: Data = {"id": f"det-{turn + 1:04}", "determined_on": spell_day(day, turn), "basis": "field"}
    yield edge("IdentifiedAs", code, species, data | {"confidence": 0.7 if turn % 4 else None})
    later = {"determined_on": (day + timedelta(days=200)).isoformat(), "confidence": 0.98}
    if species.startswith("Primula"):
        yield edge("IdentifiedAs", code, species, later | {"id": f"det-{turn + 1:04}-b", "basis": "seedling"})
    if species == "Brassica oleracea":
        yield edge("IdentifiedAs", code, SUBSPECIES, later | {"basis": "dna"})


def collectors(rng: random.Random, code: str, turn: int) -> Iterator[Data]:
    """Yield one lead and, for every third lot, an assistant."""
    lead, assistant = rng.sample([person[0] for person in PEOPLE[1:9]], 2)
    yield edge("CollectedBy", code, lead, {"role": "lead"})
    if turn % 3 == 0:
        yield edge("CollectedBy", code, "visitor" if turn % 2 else assistant, {"role": "assistant"})


def storage(rng: random.Random, code: str, placed: datetime, turn: int) -> Iterator[Data]:
    """Yield a place in the base room and, for every other lot, one in the active room."""
    for room in ("base-a", "active-b")[: 1 + turn % 2]:
        data: Data = {"packets": rng.randrange(1, 9), "placed_at": spell_moment(placed, turn)}
        if room == "base-a":
            data |= {"seal": f"S{5000 + 7 * turn}"}
        yield edge("StoredIn", code, shelf_id(room, rng.randrange(1, 4), rng.randrange(1, 3)), data)


def tests(rng: random.Random) -> Iterator[Data]:
    """Yield germination tests; the last two are still in the chamber."""
    media = ["agar", "top-of-paper", "between-paper", "sand", "soil"]
    banked = [turn for turn in range(37) if not species_of(turn)[0].startswith("Quercus")]
    for turn in range(TESTS):
        number, lot = 1001 + turn, banked[turn * 7 % len(banked)]
        started = date(int(lot_code(lot)[3:7]) + 1, 1, 10) + timedelta(days=rng.randrange(80))
        sown = rng.choice([20, 25, 50, 100])
        data: Data = {"number": number, "medium": media[turn % 5], "started_on": spell_day(started, turn)}
        data |= {"sown": sown, "day_temperature": rng.choice([15, 20, 22.5])}
        if turn < TESTS - 2:
            germinated = rng.randrange(sown // 3, sown + 1)
            data |= {"germinated": germinated, "viability": round(germinated / sown, 3)}
            data |= {"finished_on": spell_day(started + timedelta(days=42), turn + 2)}
        if turn % 3 == 1:
            data |= {"pretreatment": rng.choice(PRETREATMENTS)}
            data |= {"chamber_run": str(1_600_000_000_000_000_000 + 86_400_000_000_007 * turn)}
        yield node("GerminationTest", data)
        yield edge("Tested", str(number), lot_code(lot))
        for worker in rng.sample(["elena", "farida", "ines", "yusuf"], 2 if turn % 8 == 0 else 1):
            yield edge("RunBy", str(number), worker)


def notes(rng: random.Random) -> Iterator[Data]:
    """Yield field notes about lots of the species they speak of; the last one is not embedded yet."""
    texts = NOTES.split("\n")[1:-1]
    for turn, text in enumerate(texts):
        head, body = text.split(": ", 1)
        species, language = head.split(", ")
        note, about = f"note-{turn + 1:03}", [lot for lot in range(LOTS) if species_of(lot)[0] == species]
        written = datetime(int(lot_code(about[-1])[3:7]), 7, 1, 17, 5, tzinfo=UTC)
        written += timedelta(days=rng.randrange(60), minutes=rng.randrange(180))
        data: Data = {"id": note, "body": body, "written_at": spell_moment(written, turn)}
        if language != "-":
            data |= {"language": language}
        if turn < len(texts) - 1:
            data |= {"body_vector": embed(body)}
        if turn % 2 == 0:
            data |= {"notebook_page": rng.randrange(1, 180)}
        yield node("FieldNote", data)
        for lot in about[-1:] if turn % 3 else about:
            yield edge("About", note, lot_code(lot))
        yield edge("WrittenBy", note, rng.choice([person[0] for person in PEOPLE[:9]]))


def main() -> None:
    """Write all nodes, then all edges, in the order of the tables."""
    rng = random.Random(1729)  # noqa: S311  it hands out shelves and dates, not secrets
    records = [*taxa(), *places(rng), *people(), *lots(rng), *tests(rng), *notes(rng)]
    records.sort(key=lambda record: "edge" in record)
    lines = [json.dumps(record, ensure_ascii=False) for record in records]
    OUTPUT.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
