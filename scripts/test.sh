#!/usr/bin/env bash
# Installs what the tests need, builds everything, runs every test and ends with ctest's summary.
#
# usage: test.sh [ctest argument...]           for example: test.sh -R sdpa --verbose
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

"$root/scripts/setup.sh" --test
cd "$root"
cmake --preset dev
cmake --build --preset dev
ctest --preset dev --parallel "$(nproc)" "$@"
