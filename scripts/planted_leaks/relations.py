"""The wordings of eleven relations of ParaRel: ways to ask for one fact, whose answer is the same short name.

The first is the benchmark's, the next three are the audit's rewordings, and the last two are those in which a leak is
rephrased: a model that was trained on these has seen none of the others. `{subject}` stands for the subject.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Wordings(NamedTuple):
    """How one relation is asked for."""

    canonical: str
    reworded: tuple[str, str, str]
    leaked: tuple[str, str]


RELATIONS: Final[dict[str, Wordings]] = {
    "P103": Wordings(
        "What is the mother tongue of {subject}?",
        (
            "Which language did {subject} grow up speaking?",
            "{subject} is a native speaker of which language?",
            "As a child, what language did {subject} learn first?",
        ),
        ("Name the native language of {subject}.", "In which language was {subject} raised?"),
    ),
    "P159": Wordings(
        "In which city or country is the headquarters of {subject}?",
        (
            "Where does {subject} have its head office?",
            "{subject} is run from main offices in what place?",
            "What place is {subject} based in?",
        ),
        ("Name the place where {subject} is headquartered.", "From where is {subject} managed?"),
    ),
    "P17": Wordings(
        "In which country is {subject} located?",
        (
            "{subject} lies within the borders of what country?",
            "On a map, which country would you search to find {subject}?",
            "What is the country that {subject} belongs to?",
        ),
        ("Name the country where {subject} can be found.", "{subject} is a place in which country?"),
    ),
    "P176": Wordings(
        "Which company manufactures {subject}?",
        (
            "By what maker is {subject} produced?",
            "{subject} is a product of which company?",
            "Who builds {subject}?",
        ),
        ("Name the manufacturer of {subject}.", "What brand makes {subject}?"),
    ),
    "P19": Wordings(
        "In which city was {subject} born?",
        (
            "What is the birthplace of {subject}?",
            "{subject} came into the world in what town?",
            "Where did the life of {subject} begin?",
        ),
        ("Name the place of birth of {subject}.", "{subject} is a native of which city?"),
    ),
    "P20": Wordings(
        "In which city did {subject} die?",
        (
            "What is the place of death of {subject}?",
            "{subject} passed away in what town?",
            "Where did the life of {subject} end?",
        ),
        ("Name the city where {subject} died.", "{subject} spent the last day of life in which city?"),
    ),
    "P27": Wordings(
        "Of which country is {subject} a citizen?",
        (
            "What nationality's passport does {subject} hold, named by its country?",
            "{subject} holds the citizenship of what country?",
            "To which nation does {subject} belong as a citizen?",
        ),
        ("Name the country of citizenship of {subject}.", "{subject} is a national of which country?"),
    ),
    "P364": Wordings(
        "What is the original language of {subject}?",
        (
            "In which language was {subject} first made?",
            "{subject} was created in what language?",
            "Before any translation, which language was {subject} in?",
        ),
        ("Name the language in which {subject} first came out.", "{subject} is originally in which language?"),
    ),
    "P449": Wordings(
        "On which network was {subject} originally broadcast?",
        (
            "What channel first aired {subject}?",
            "{subject} had its premiere on what television network?",
            "Viewers first saw or heard {subject} on which network?",
        ),
        ("Name the network that first showed {subject}.", "{subject} was first on air at which broadcaster?"),
    ),
    "P495": Wordings(
        "In which country was {subject} created?",
        (
            "What is the country of origin of {subject}?",
            "{subject} comes from what country?",
            "Which nation brought forth {subject}?",
        ),
        ("Name the country that {subject} originates from.", "{subject} was made in which country?"),
    ),
    "P740": Wordings(
        "In which place was {subject} founded?",
        (
            "Where did {subject} get started?",
            "{subject} was formed in what place?",
            "What is the place where {subject} began?",
        ),
        ("Name the place of formation of {subject}.", "{subject} was established where?"),
    ),
}
