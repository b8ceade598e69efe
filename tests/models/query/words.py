"""Words whose analysis is trivial, and the analysis of them (languages 3.9).

No word of the vocabulary is a stop word or changes by stemming. Some are one or two edits apart.
"""

import math
import re
import unicodedata

from tests.models.query.shape import Cell

VOCABULARY = ("amber", "umber", "ember", "lumber", "cobalt", "basalt", "falcon", "quartz", "onyx", "harbor")
UNKNOWN = ("zircon", "ambr", "kobalt", "quarz")
STOP_WORDS = {"a", "and", "for", "of", "on", "the"}  # those that tests use


def tokens(text: Cell) -> list[str]:
    """Analyse a text as far as the words of the tests need it: their stems are cut, not computed."""
    words = [word for word in re.findall(r"[^\W_]+", text or "") if len(word) <= 40]
    plain_words = [
        unicodedata.normalize("NFKD", word.lower()).encode("ascii", "ignore").decode() for word in words
    ]
    return [word.removesuffix("s").removesuffix("e") for word in plain_words if word not in STOP_WORDS]


def within(a: str, b: str, edits: int) -> bool:
    """Are two words at most so many insertions, deletions and replacements apart?"""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(last[j] + 1, row[-1] + 1, last[j - 1] + (x != y)))
    return row[-1] <= edits


def bm25(documents: dict[str, list[str]], wanted: list[str]) -> dict[str, float]:
    """Score documents (languages 3.9): k1 = 1.2, b = 0.75. Only texts with tokens are documents."""
    average = sum(map(len, documents.values())) / max(1, len(documents)) or 1
    scores = dict[str, float]()
    for token in set(wanted):
        df = sum(token in words for words in documents.values())
        for node_id, words in documents.items():
            if tf := words.count(token):
                norm = tf + 1.2 * (0.25 + 0.75 * len(words) / average)
                idf = math.log(1 + (len(documents) - df + 0.5) / (df + 0.5))
                scores[node_id] = scores.get(node_id, 0.0) + idf * tf * 2.2 / norm
    return scores
