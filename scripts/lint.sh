#!/usr/bin/env bash
# Checks the form of the sources: clang-format, file lengths, shellcheck, clang-tidy.
#
# usage: lint.sh [format|lengths|shell|tidy]...        all of them by default; `fix` formats in place
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

c_files() {
  git ls-files --cached --others --exclude-standard -z -- '*.c' '*.h' '*.inc' | sort -zu
}

check_format() {
  c_files | xargs -0 clang-format --dry-run -Werror
}

fix() {
  c_files | xargs -0 clang-format -i
}

check_lengths() {
  local file lines long=0
  while IFS= read -r -d '' file; do
    lines=$(wc -l <"$file")
    if ((lines > 650)); then
      echo "$file: $lines lines; split it at about 600"
      long=1
    fi
  done < <(c_files)
  return "$long"
}

check_shell() {
  git ls-files --cached --others --exclude-standard -z -- '*.sh' .ci/run | xargs -0 shellcheck
}

# clang-tidy reads how clang compiles each file; nothing has to be built before.
check_tidy() {
  local build=$root/build/ci-clang log=$root/build/clang-tidy.log status=0 here
  here=$(sed 's/[^A-Za-z0-9_/-]/\\&/g' <<<"$root")
  [[ -f $build/compile_commands.json ]] || cmake --preset ci-clang >/dev/null
  run-clang-tidy -quiet -p "$build" -j "$(nproc)" \
    "^$here/(src|tools|chapters|bench|examples|fuzz)/.*\.c$" >"$log" 2>&1 || status=$?
  grep -v -e '^clang-tidy' -e 'warnings\? generated' -e '^Suppressed' -e '^Use -header' "$log" || true
  return "$status"
}

if (($# == 0)); then
  set -- format lengths shell tidy
fi
for check in "$@"; do
  case $check in
    format | lengths | shell | tidy) "check_$check" ;;
    fix) fix ;;
    *)
      echo "usage: lint.sh [format|lengths|shell|tidy|fix]..." >&2
      exit 2
      ;;
  esac
done
