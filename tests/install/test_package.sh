#!/usr/bin/env bash
# Makes the Debian packages, unpacks them side by side, and uses what is in them.
#
# usage: test_package.sh <cpack> <build> <work folder> <C compiler> <pkg-config> <version>
set -euo pipefail

cpack=$1 build=$2 work=$3 cc=$4 pkg_config=$5 version=$6
consumer=$(cd "$(dirname "${BASH_SOURCE[0]}")/consumer" && pwd)/consumer.c

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

rm -rf "$work"
mkdir -p "$work"
"$cpack" -G DEB --config "$build/CPackConfig.cmake" -B "$work/packages" >"$work/log" 2>&1 ||
  { cat "$work/log" >&2 && fail "cpack"; }

expected=(libattn0 libattn-dev)
if [[ -x $build/bin/attn ]]; then
  expected+=(attn-tools)
fi
for name in "${expected[@]}"; do
  package=$(find "$work/packages" -maxdepth 1 -name "${name}_$version*.deb")
  [[ -n $package ]] || fail "no package $name"
  dpkg-deb -x "$package" "$work/root"
done
dpkg-deb -f "$work"/packages/libattn0_*.deb Depends | grep -q libjansson4 ||
  fail "libattn0 does not say that it needs libjansson4"

pc=$(find "$work/root" -name attn.pc)
libdir=$(cd "$(dirname "$pc")/.." && pwd)
export PKG_CONFIG_PATH=$libdir/pkgconfig
eval "flags=($("$pkg_config" --cflags --libs attn))"
# shellcheck disable=SC2154  # set by eval: paths may hold spaces
"$cc" "$consumer" -o "$work/consumer" "${flags[@]}" -lm
LD_LIBRARY_PATH=$libdir "$work/consumer" "$version" || fail "a program built from libattn-dev"
if [[ -x $build/bin/attn ]]; then
  "$work/root/usr/bin/attn" version >/dev/null || fail "attn of attn-tools"
fi
