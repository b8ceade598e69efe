"""The graph that random histories are played on: every kind of table that a merge treats differently."""

from tests.models.dag.model import EdgeRule, NodeRule, Rules

SCHEMA = """\
node Person { handle: String @key  email: String? @unique  age: I64?  tags: [String]? }
node Team   { name: String @key  city: String  floor: I64?  @unique(city, floor) }
node Note   { body: String? }
edge Knows:  Person -> Person { tag: String  since: I64? }
edge Joined: Person -> Team @card(0..2) { tag: String  role: String?  @unique(src, role) }
edge Wrote:  Person -> Note @card(1..3) { tag: String  words: [String]? }
"""

RULES: Rules = {
    "node:Person": NodeRule((("email",),)),
    "node:Team": NodeRule((("city", "floor"),)),
    "node:Note": NodeRule(),
    "edge:Knows": EdgeRule("Person", "Person"),
    "edge:Joined": EdgeRule("Person", "Team", high=2, unique=(("src", "role"),)),
    "edge:Wrote": EdgeRule("Person", "Note", low=1, high=3),
}
KEYS = {"node:Person": "handle", "node:Team": "name"}  # the property that is the id
