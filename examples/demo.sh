#!/usr/bin/env bash
# A tour of the two languages on the seed bank in examples/seedbank. Run it with `make demo`.
#
# Every step states the exit code it expects; the tour stops at the first one that behaves otherwise.
set -euo pipefail

BANK=examples/seedbank

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

say "Which build is this?"
expect 0 omnigraph version

say "Seven files of queries, checked against the schema. No graph is needed."
expect 0 omnigraph lint --schema "$BANK/schema.pg" --query "$BANK/queries"

say "A query that does not parse: limit comes after order. The caret shows where reading stopped."
expect 1 omnigraph lint --schema "$BANK/schema.pg" --query - <<'GQ'
query oldest_lots() {
    match { $a: Accession }
    return { $a.code, $a.received_at }
    limit 5
    order { $a.received_at }
}
GQ
contains "^"

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
contains T6 seed_cuont

say "The next version of the schema: what would change, step by step."
expect 0 omnigraph schema plan --from "$BANK/schema.pg" --schema "$BANK/schema-next.pg"

say "A version that cannot be applied. Planning succeeds and says why; applying would fail."
expect 0 omnigraph schema plan --from "$BANK/schema.pg" --schema "$BANK/schema-unsupported.pg"
contains OG-MF-103 OG-MF-106

say "All of these files are in the canonical format."
expect 0 omnigraph fmt --check "$BANK"

say "Done: every step behaved as intended."
