#!/usr/bin/env bash
# Builds one program in release mode, says nothing about it unless that fails, and runs it in the
# current directory. The first call installs what is missing and takes a minute; later ones start
# at once.
#
# usage: run.sh <program> [argument...]        for example: run.sh chapter03_attention --help
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build/release
log=$root/build/run.log

if (($# == 0)) || [[ $1 == -* ]] || [[ $1 == */* ]]; then
  echo "usage: run.sh <program> [argument...]" >&2
  exit 2
fi
program=$1
shift

"$root/scripts/setup.sh"

build_program() {
  if [[ ! -f $build/build.ninja ]]; then
    (cd "$root" && cmake --preset release) || return 1
  fi
  cmake --build "$build" --target "bin/$program"
}

mkdir -p "$root/build"
if [[ ! -x $build/bin/$program ]]; then
  echo "run.sh: building $program (log: build/run.log)" >&2
fi
if ! build_program >"$log" 2>&1; then
  cat "$log" >&2
  echo "run.sh: building $program failed" >&2
  exit 1
fi
exec "$build/bin/$program" "$@"
