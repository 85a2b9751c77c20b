#!/usr/bin/env bash
# Writes the stored output anew. Read the difference before keeping it: the test compares with it.
#
# usage: update_expected.sh <program>
set -euo pipefail

program=$1
expected=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/expected

write() {
  local name=$1 language
  shift
  for language in en zh; do
    "$program" --lang "$language" "$@" >"$expected/$name.$language.txt"
  done
}

write chapter
for n in 1 2 3 4; do write "exercise$n" --exercise "$n"; done
for n in 1 2 3; do write "pitfall$n" --pitfall "$n"; done
for module in v1 v2 causal wrapper mha; do write "trace_$module" "--trace=$module"; done
write history --history
write saturation --saturation
write selftest --selftest --answers
write glossary --glossary
write help --help
