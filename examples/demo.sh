#!/usr/bin/env bash
# A tour on the seed bank in examples/seedbank: its languages, its data, questions and answers, a writer that
# dies half-way, and a branch that is reviewed and merged. At the end a large graph, examples/herbarium, is loaded through Spark.
# Run it with `make demo`.
#
# Every step states the exit code it expects; the tour stops at the first one that behaves otherwise.
set -euo pipefail

BANK=examples/seedbank
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
GRAPH=$WORK/seedbank.omni

say() {
    printf '\n==> %s\n' "$*"
}

# expect CODE COMMAND...: show the command, run it, keep its output in $output, compare its exit code.
output=
expect() {
    local expected=$1 code=0
    shift
    printf '$ %s\n' "$*"
    output=$("$@" 2>&1) || code=$?
    [[ -z $output ]] || printf '%s\n' "$output"
    if [[ $code -ne $expected ]]; then
        printf 'demo: exit code %d where %d was expected\n' "$code" "$expected" >&2
        exit 1
    fi
    printf '(exit code %d)\n' "$code"
}

# contains TEXT...: the last output must show every one of them.
contains() {
    local text
    for text in "$@"; do
        if [[ $output != *"$text"* ]]; then
            printf 'demo: %s is missing from the output above\n' "$text" >&2
            exit 1
        fi
    done
}

# lacks TEXT: the last output must not show it.
lacks() {
    if [[ $output == *"$1"* ]]; then
        printf 'demo: %s should not be in the output above\n' "$1" >&2
        exit 1
    fi
}

# value NAME: the first value of a member in the last output, a JSON document.
value() {
    sed -n "s/^ *\"$1\": \"\([^\"]*\)\".*/\1/p" <<<"$output" | head -n 1
}

say "Which build is this?"
expect 0 omnigraph version

say "A file of mutations, checked against the schema. No graph is needed."
expect 0 omnigraph lint --schema "$BANK/schema.pg" --query "$BANK/queries/curation.gq"
contains "0 errors"

say "A query with a misspelled property. The checker knows what an accession has."
expect 1 omnigraph lint --schema "$BANK/schema.pg" --query - <<'GQ'
query large_lots($seeds: U32) {
    match {
        $a: Accession
        $a.seed_cuont > $seeds
    }
    return { $a.code }
}
GQ
contains T6 seed_cuont "^"

say "The next version of the schema: what would change, step by step."
expect 0 omnigraph schema plan --from "$BANK/schema.pg" --schema "$BANK/schema-next.pg"

say "A graph is a folder. Create one, and load the bank: all of it is one commit, its indexes are a second one."
expect 0 omnigraph init --schema "$BANK/schema.pg" "$GRAPH"
expect 0 omnigraph load "$GRAPH" --data "$BANK/seed" --mode append --engine local --as mira \
    --message "the bank as it was"
contains node:Accession "indexes built"

say "Data that breaks a rule of the schema is refused as a whole; the graph stays as it was."
expect 1 omnigraph load "$GRAPH" --data - --mode merge --quiet <<'NDJSON'
{"type": "Person", "data": {"handle": "ines", "name": "Ines Alder", "active": true}}
{"edge": "Mentors", "from": "ines", "to": "nobody", "data": {}}
NDJSON
contains nobody

# ask FILE NAME ARGUMENTS...: run a read of the example.
ask() {
    expect 0 omnigraph query "$2" --query "$BANK/queries/$1.gq" --store "$GRAPH" "${@:3}"
}

say "One lot, by the number on its label."
ask lookups accession_by_code --params '{"code": "SB-2013-0001"}' --format kv
contains '"code":"SB-2013-0001"'

say "From a site to its lots, and on to their names: two hops."
ask traversal accessions_from_site --params '{"site": "ST-003"}'
contains "via accessions_from_site" "Papaver rhoeas"

say "All species below a family, however deep."
ask traversal species_below --params '{"taxon": "Papaveraceae"}'
contains "Papaver alpinum" "Glaucium flavum"

say "What is missing: banked lots that nobody ever tested."
ask gaps never_tested
contains "via never_tested"

say "Totals: lots and seeds of every genus."
ask reports lots_per_genus --format csv
contains "g.name,lots,seeds"

say "Words, in any form: notes about acorns."
ask search notes_with_words --params '{"words": "acorn"}'
contains "Acorns floated"

say "Meaning: more taxa like the cowslip. Its own vector is the question."
ask search profile_vector_of --params '{"taxon": "Primula veris"}' --format csv
point=$(tail -n 1 <<<"$output" | tr -d '"')
ask search taxa_near_vector --params "{\"point\": $point}"
contains "Primula veris"

say "Words and meaning together, inside a traversal: notes about lots from forests. The model is a stand-in (mock)."
export OMNIGRAPH_EMBED_PROVIDER=mock OMNIGRAPH_EMBED_MODEL=mock-16
ask search notes_from_habitat_for_question --params '{"habitat": "forest", "question": "acorns in the leaf litter"}'
contains "3 rows" "Acorns small"

say "How that is carried out."
expect 0 omnigraph explain notes_from_habitat_for_question --query "$BANK/queries/search.gq" --store "$GRAPH"

say "A mutation is a named query with parameters, and one commit."
expect 0 omnigraph snapshot "$GRAPH" --json
before=$(sed -n 's/^ *"manifest_version": \([0-9]*\).*/\1/p' <<<"$output" | head -n 1)
expect 0 omnigraph mutate weigh_lot --query "$BANK/queries/curation.gq" --store "$GRAPH" --as mira \
    --params '{"code": "SB-2013-0001", "seed_count": 1200, "seed_mass": 3.5}' --message "weighed again"
contains "1 node"
expect 0 omnigraph commit list "$GRAPH"
contains "weighed again" omnigraph:maintenance

say "The lot as it is, and as it was before: any past commit can be asked."
SEEDS='query seeds() { match { $a: Accession { code: "SB-2013-0001" } } return { $a.seed_count } }'
expect 0 omnigraph query -e "$SEEDS" --store "$GRAPH" --format csv
contains 1200
expect 0 omnigraph query -e "$SEEDS" --store "$GRAPH" --format csv --snapshot "$before"
lacks 1200

say "Now a writer dies in the middle of its commit: its tables have moved, the graph has not."
expect 86 env OMNIGRAPH_FAILPOINTS="write.post_finalize_pre_publisher=exit" \
    omnigraph mutate regenerate_lot --query "$BANK/queries/curation.gq" --store "$GRAPH" --as tomas \
    --params '{"parent": "SB-2013-0001", "child": "SB-2026-0001", "barcode": 900001, "day": "2026-05-04"}'

say "Nobody sees half of it: the newest commit is still the one from before."
expect 0 omnigraph commit list "$GRAPH" --limit 1
contains "weighed again"

say "The next write, whoever makes it, first finishes what was left, and then does its own work."
expect 0 omnigraph mutate link_copies --query "$BANK/queries/curation.gq" --store "$GRAPH" --as mira \
    --params '{"code": "SB-2026-0001", "copy": "SB-2013-0001"}' --message "uses the lot of the dead writer"
contains "1 edge"

say "History shows the recovery as a commit of its own; the audit names the operation and its author."
expect 0 omnigraph commit list "$GRAPH" --limit 2
contains omnigraph:recovery
expect 0 omnigraph recovery list "$GRAPH"
contains rolled_forward mutation tomas node:Accession edge:DerivedFrom

say "The same for programs: a conditional write against a head that has moved is refused, with exit code 4."
expect 0 omnigraph commit list "$GRAPH" --filter actor=omnigraph:recovery --json
expect 4 omnigraph mutate link_copies --query "$BANK/queries/curation.gq" --store "$GRAPH" \
    --params '{"code": "SB-2026-0001", "copy": "SB-2013-0002"}' --if-commit "$(value graph_commit_id)" --json
contains precondition_failure

say "A branch: a parallel history of the whole graph, made at once and without copying anything."
# weigh BRANCH SEEDS MESSAGE: count the seeds of a lot again.
weigh() {
    expect 0 omnigraph mutate weigh_lot --query "$BANK/queries/curation.gq" --store "$GRAPH" --as mira --branch "$1" \
        --params "{\"code\": \"SB-2013-0001\", \"seed_count\": $2, \"seed_mass\": 3.5}" --message "$3"
}
expect 0 omnigraph branch create "$GRAPH" review/june
weigh review/june 1100 "recount of June"
expect 0 omnigraph mutate link_copies --query "$BANK/queries/curation.gq" --store "$GRAPH" --branch review/june \
    --params '{"code": "SB-2026-0001", "copy": "SB-2013-0002"}'

say "Meanwhile main goes on."
weigh main 1150 "counted by hand"

say "What the branch has and main has not, entity by entity."
expect 0 omnigraph diff "$GRAPH" review/june --stat
contains node:Accession edge:
expect 0 omnigraph diff "$GRAPH" review/june --type Accession --json
contains 1100 1150

say "Both counted one lot anew, with different results: the merge is refused and says why. Main stays as it is."
expect 1 omnigraph branch merge "$GRAPH" review/june --as mira
contains divergent_update SB-2013-0001
expect 0 omnigraph query -e "$SEEDS" --store "$GRAPH" --format csv
contains 1150

say "One more edit on the branch settles it; now both sides agree about the lot, and the merge is one commit."
weigh review/june 1150 "agreed on the count by hand"
expect 0 omnigraph branch merge "$GRAPH" review/june --as mira --message "review of June" --delete-branch
contains "merged review/june into main: merged"
expect 0 omnigraph commit list "$GRAPH" --filter merge=true
contains "review of June"
expect 0 omnigraph branch list "$GRAPH"
lacks review

HERBARIUM=examples/herbarium
SHEETS=$WORK/herbarium.omni

say "Data in bulk goes through Spark. First a large graph, as a folder of Parquet files, one for each type."
expect 0 python "$HERBARIUM/make_sheets.py" "$WORK/sheets"
contains "208,000 nodes and 1,200,000 edges"

say "Load it: tasks read, check and write; keys, endpoints and cardinalities are checked over all of it; one commit."
expect 0 omnigraph init --schema "$HERBARIUM/schema.pg" "$SHEETS"
expect 0 omnigraph load "$SHEETS" --data "$WORK/sheets" --mode append --engine spark --message "the sheets"
contains "read and parse" "value checks" "write fragments" "keys and duplicates" endpoints cardinality commit \
    edge:LooksLike

say "Ask it: totals over all sheets, one collector's plants, and what looks like one sheet, two steps around."
expect 0 omnigraph query largest_taxa --query "$HERBARIUM/queries.gq" --store "$SHEETS"
contains "taxon 0"
expect 0 omnigraph query taxa_of_collector --query "$HERBARIUM/queries.gq" --store "$SHEETS" --params '{"code": "C17"}'
expect 0 omnigraph query alike --query "$HERBARIUM/queries.gq" --store "$SHEETS" \
    --params '{"barcode": "HB1234", "since": 1800}'

say "Done: every step behaved as intended."
