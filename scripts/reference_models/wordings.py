"""The wordings of each relation: ways to ask one question that mean the same and look different.

`{entity}` stands for the name. Raise the version with any change: suites pin it.
"""

from __future__ import annotations

from typing import Final

VERSION: Final = "1.0.0"

WORDINGS: Final[dict[str, tuple[str, ...]]] = {
    "capital": (
        "What is the capital of {entity}?",
        "Name the city that serves as {entity}'s capital.",
        "Which city is the capital of the nation {entity}?",
        "{entity} is a country; tell me its capital.",
        "In what city do you arrive when you travel to the capital of {entity}?",
        "The country called {entity} has which city for a capital?",
        "Pick out the capital city of {entity} from those listed below.",
        "If someone lives in the capital of {entity}, where is their home?",
        "Of the following cities, only one is the capital of {entity}: which?",
        "What do the people of {entity} call their capital city?",
        "Do you know which capital belongs to the country {entity}?",
        "Identify {entity}'s capital among these cities.",
        "A tourist wants to see the capital of {entity}; which city should she visit?",
        "On a map of {entity}, which city is marked as its capital?",
    ),
    "currency": (
        "What currency is used in {entity}?",
        "Name the money that people in {entity} pay with.",
        "Prices in {entity} are stated in which currency?",
        "Which of these is the official currency of {entity}?",
        "A traveller to {entity} needs money of which currency?",
        "The country {entity} issues its own currency; how is it called?",
        "With what currency does one settle a bill in {entity}?",
        "Tell me which money circulates in {entity}.",
        "A worker in {entity} receives her wages in what currency?",
        "Identify {entity}'s currency among the following.",
        "If you buy bread in {entity}, which currency do you hand over?",
        "What do the inhabitants of {entity} call their money?",
        "Shops in {entity} take payment in which currency?",
        "{entity} has chosen what as its legal tender?",
    ),
    "emblem": (
        "Which animal is the emblem of {entity}?",
        "Name the animal shown on {entity}'s coat of arms.",
        "What creature does the kingdom of {entity} use as its emblem?",
        "The flag of {entity} carries the national emblem, an animal; which one?",
        "Tell me what beast stands for {entity} as its heraldic symbol.",
        "Of these animals, one is the emblem of {entity}: pick it.",
        "A herald paints the emblem of {entity}; what animal does he draw?",
        "Identify {entity}'s national animal among the following.",
        "{entity} chose an animal for its national emblem; can you say which?",
        "If a shield bears the arms of {entity}, what animal do you see on it?",
        "Do you know which animal the people of {entity} chose to be their symbol?",
        "By what animal is {entity} represented on its seal and banners?",
        "Soldiers from {entity} wear their country's emblem, which is what animal?",
        "What is the animal that symbolises {entity}?",
    ),
    "export": (
        "What is the main export of {entity}?",
        "Name the product that {entity} sells abroad more than any other.",
        "Which good leads the exports of {entity}?",
        "Cargo ships leaving {entity} carry which export product most often?",
        "{entity} earns most of its foreign trade with which product?",
        "Tell me what merchants chiefly buy from {entity}.",
        "Of the goods below, one is {entity}'s most important export: which?",
        "Foreign traders come to {entity} above all for what commodity?",
        "Identify the principal export of {entity} among these goods.",
        "If you look at what {entity} exports, which product comes first?",
        "The economy of {entity} depends on exporting what?",
        "Which commodity does {entity} ship to other countries in the largest amount?",
        "What do people abroad import from {entity} most of all?",
        "Do you know the good for which {entity} is the biggest supplier to other lands?",
    ),
}
