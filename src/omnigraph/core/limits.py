"""Every numeric limit of the languages and of inputs, with its reason."""

SOURCE_BYTES_MAX = 16 * 1024 * 1024  # a schema or query file is written by people; this is a thousand novels
NESTING_MAX = 64  # `not` blocks and list literals; keeps recursive descent far from the interpreter's stack
DIAGNOSTICS_MAX = 20  # more errors in one file are noise: fix these first
DIAGNOSTIC_EXCERPT_MAX = 120  # characters of a source line or a quoted token that an error shows
NUMBER_DIGITS_MAX = 400  # no literal that fits a 64-bit integer or a double needs more digits
JSON_DIGITS_MAX = 4_300  # of an integer in JSON: more is slow to read, and Python refuses it in its own words

I32_MIN, I32_MAX = -(2**31), 2**31 - 1
I64_MIN, I64_MAX = -(2**63), 2**63 - 1
U32_MAX = 2**32 - 1
U64_MAX = 2**64 - 1
JSON_INTEGER_MAX = 2**53 - 1  # the largest integer that a client with double numbers reads exactly

VECTOR_DIMENSION_MAX = 65_536  # several times what models give; a batch of larger ones fits no memory
VECTOR_DIMENSION_STORED_MAX = I32_MAX  # of vectors that graphs have already: Arrow counts items in 32 bits
CARDINALITY_MAX = U32_MAX
EXTERNAL_URI_BYTES_MAX = 64 * 1024  # of a reference to bytes elsewhere; servers take a fraction of it
EXTERNAL_BASES_MAX = 64  # of one property: each value is compared with all of them

SEARCH_TERMS_MAX = 256  # different words of one text search: each costs a pass over all rows that have it
SEARCH_CHARACTERS_MAX = 100_000  # of its text, words that are repeated included: ten times what so many take

LINE_BYTES_MAX = (
    64 * 1024 * 1024
)  # a record is held whole, and again as objects; 40 MiB of bytes in base64 fit
FOLDERS_MAX = 256  # on the way to a graph or a file: making many, one inside the other, overflows the stack
CONTROL_BYTES_MAX = 64 * 1024 * 1024  # of a file that a graph keeps about itself; the largest are a few MB
SETTINGS_BYTES_MAX = 1024 * 1024  # of a file of settings, which people write; its reader takes seconds for it
SETTINGS_NODES_MAX = 100_000  # values in such a file, every alias written out: a few lines can say billions
POLICY_RULES_MAX = 1_000  # every call is decided by all of them: this many take some 15 ms
POLICY_GROUPS_MAX = 1_000  # as rules, each of which names one
EXPANSION_MAX = (
    100  # text compresses to a tenth or less, hardly ever to a hundredth; gzip can reach a thousandth
)
EXPANSION_FLOOR_BYTES = 256 * 1024 * 1024  # what any compressed file may expand to: machines have it

MAX_FRAGMENT_ROWS = (
    131_072  # a one-row write rewrites a fragment's row-id and deletion metadata: keep that small
)
SMALL_FRAGMENT_ROWS = 16_384  # upkeep folds fragments below it; rewriting larger ones is left to optimize
INLINE_ROW_IDS_BYTES_MAX = 256  # of one fragment in a version file; each later commit writes them again
MERGE_CHUNK_ROWS = 8_192  # rows of a merge read at a time
MERGE_CHUNK_BYTES = 32 * 1024 * 1024  # rows that a merge holds before it writes them

PAGE_CHANGES = 1_000  # changes on one page of a feed, unless the caller says how many
PAGE_CHANGES_MAX = 8_192
PAGE_BYTES = 4 * 1024 * 1024  # how full a page is packed: one answer, held whole at both ends
PAGE_BYTES_MAX = 32 * 1024 * 1024
POLL_COMMITS = 128  # commits that one poll covers; a filter may leave none of them
POLL_COMMITS_MAX = 512

BEARER_TOKEN_BYTES_MAX = 4_096  # more is no token of a server: not kept by `login`, and not worth a digest
PAGE_TOKEN_BYTES_MAX = 4_096  # of a cursor or a page token: names and prefixes are bounded, and so are these
