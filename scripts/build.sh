#!/usr/bin/env bash
# Configures and builds one preset: dev (the default), release, asan-ubsan, tsan, ci-gcc, ci-clang
# or neon. Further arguments go to `cmake --build`.
#
# usage: build.sh [preset] [argument...]
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
preset=${1:-dev}
shift || true

case $preset in
  release) "$root/scripts/setup.sh" ;;
  dev) "$root/scripts/setup.sh" --test ;;
  *) "$root/scripts/setup.sh" --dev ;;
esac
cd "$root"
cmake --preset "$preset"
cmake --build --preset "$preset" "$@"
