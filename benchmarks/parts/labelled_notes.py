"""Notes with a question for each, in other words; and notes that no question is about.

They were written for this benchmark, before anything was measured with them. A question shares
hardly a word with its note, as people ask.
"""

from __future__ import annotations

import itertools
import random
from typing import Final

PAIRS: Final = (
    (
        "The user's daughter is called Ilse and goes to kindergarten.",
        "How is my little girl named?",
    ),
    ("Meetings before ten in the morning are to be avoided.", "May I book a call at 8 am?"),
    ("The staging database is wiped every Sunday night.", "When does our test data get deleted?"),
    (
        "He cannot eat anything that contains gluten.",
        "Would a wheat bread sandwich be okay for him?",
    ),
    (
        "Releases are tagged with the year and the week.",
        "What is the scheme of our version numbers?",
    ),
    ("The user prefers metric units in all answers.", "Should I give the distance in miles?"),
    (
        "Their flat in Lisbon has no lift and is on the fourth floor.",
        "Is her home accessible by wheelchair?",
    ),
    (
        "Invoices are sent on the last working day of the month.",
        "When do customers get their bills?",
    ),
    (
        "The build fails if a function has more than fifty lines.",
        "How long may a method be in this code?",
    ),
    ("She is learning to play the cello since spring.", "Which instrument does she practise?"),
    (
        "The laptop overheats when two screens are connected.",
        "Why does my computer get so hot at the desk?",
    ),
    ("Payments are processed by a partner in Dublin.", "Who handles the money transfers?"),
    ("The user signs mails with 'Cheers, Jo'.", "How should the letter be closed?"),
    (
        "Old log files are compressed after a week and removed after a year.",
        "How long are records of the servers available?",
    ),
    ("The dog is afraid of thunderstorms.", "Which weather frightens my pet?"),
    (
        "Translations are checked by Amira before they are published.",
        "Who reviews the Spanish texts?",
    ),
    (
        "The office is closed between Christmas and New Year.",
        "Can I visit you at work on December 28?",
    ),
    ("His bicycle was stolen in front of the station.", "What happened to his bike?"),
    (
        "Passwords must not be written into configuration files.",
        "Where am I not allowed to put credentials?",
    ),
    ("The user takes the train to work, never the car.", "How do I commute?"),
    ("The API returns dates in UTC without a time zone.", "Which clock do the timestamps follow?"),
    ("Grandmother turns ninety in March.", "Whose big birthday is coming up in spring?"),
    (
        "Charts should use colours that colour-blind people can tell apart.",
        "What must I consider when I draw a diagram?",
    ),
    (
        "The garden is watered by a timer at six in the evening.",
        "When do the plants get their water?",
    ),
    (
        "New colleagues get a mentor for their first three months.",
        "Who helps somebody that has just joined the company?",
    ),
    (
        "The user writes Python and dislikes Java.",
        "Which programming language should the example be in?",
    ),
    (
        "Coffee keeps him awake if he drinks it after noon.",
        "Why can he not sleep when he has an espresso late?",
    ),
    ("The backup disk is kept in a bank vault.", "Where is the copy of our files stored?"),
    ("Customers in Norway pay no value added tax.", "Which buyers are exempt from sales tax?"),
    (
        "The heating in the study has been broken since November.",
        "Why is it so cold in my work room?",
    ),
    ("She proofread her thesis in a cabin by the lake.", "Where was the dissertation corrected?"),
    ("The search index is rebuilt when the schema changes.", "What causes a complete reindexing?"),
    (
        "The user is saving for a sailing boat.",
        "What is the big purchase I am putting money aside for?",
    ),
    (
        "Errors are shown to people without stack traces.",
        "What must not be visible when something goes wrong?",
    ),
    ("The twins were born two weeks early.", "Did the babies arrive before their due date?"),
    (
        "All pictures on the website need an alternative text.",
        "How do we help blind visitors with images?",
    ),
    ("The car needs winter tyres from October on.", "When do I have to change the wheels?"),
    ("He gave up smoking after his heart attack.", "Why does he no longer use cigarettes?"),
    (
        "The team speaks German in the hallway and English in meetings.",
        "What language do we use for the weekly discussion?",
    ),
    (
        "Requests that take longer than ten seconds are cut off.",
        "What is our limit for slow calls to the server?",
    ),
    ("The user hates surprises at parties.", "Should we secretly organise a celebration?"),
    (
        "A plumber named Ortega repaired the sink last summer.",
        "Who can fix a leaking pipe in the kitchen?",
    ),
    (
        "The contract with the cloud vendor ends in June.",
        "Until when are we bound to our hosting provider?",
    ),
    ("Her passport expires next February.", "Which travel document must be renewed soon?"),
)

_PEOPLE: Final = ("The user", "His brother", "Her boss", "The neighbour", "A colleague", "Mara")
_DEEDS: Final = (
    "bought a {thing} in {place}",
    "asked twice about the {thing}",
    "left the {thing} in {place}",
    "wants to sell the {thing}",
    "read an article about a {thing}",
    "dreamed of a {thing} in {place}",
)
_THINGS: Final = (
    "camera", "lamp", "novel", "spreadsheet", "printer", "guitar", "carpet", "ticket", "recipe",
    "tent", "router", "painting", "jacket", "report", "keyboard", "puzzle", "map", "ladder",
)  # fmt: skip
_PLACES: Final = ("Oslo", "the cellar", "Turin", "the archive", "Lima", "the workshop", "Riga")


def distractors(count: int) -> list[str]:
    """Return notes of the same kind that answer none of the questions."""
    texts = dict.fromkeys(
        f"{who} {deed.format(thing=thing, place=place)}."
        for who, deed, thing, place in itertools.product(_PEOPLE, _DEEDS, _THINGS, _PLACES)
    )
    return random.Random(1).sample(list(texts), count)
