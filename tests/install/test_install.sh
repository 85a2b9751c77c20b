#!/usr/bin/env bash
# Installs a build into a fresh prefix, then builds and runs a small program against it through
# CMake and through pkg-config, with the shared and with the static library. The prefix is moved
# after the installation, so nothing may remember where it was. Then the pkg-config file is tried
# for library folders of other forms.
#
# usage: test_install.sh <cmake> <source> <build> <work folder> <C compiler> <pkg-config> <version>
set -euo pipefail

cmake=$1 source=$2 build=$3 work=$4 cc=$5 pkg_config=$6 version=$7
consumer=$(cd "$(dirname "${BASH_SOURCE[0]}")/consumer" && pwd)

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# Does the program load libattn.so?
loads_shared_library() {
  readelf --dynamic "$1" | grep -q 'NEEDED.*libattn\.so'
}

use_through_cmake() {
  local prefix=$1 static=$2 folder=$work/cmake-$2
  rm -rf "$folder"
  "$cmake" -G Ninja -S "$consumer" -B "$folder" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_PREFIX_PATH="$prefix" -Dattn_USE_STATIC_LIBS="$static" >/dev/null
  "$cmake" --build "$folder" >/dev/null
  "$folder/consumer" "$version" || fail "the program built through CMake (static: $static)"
  if [[ $static == ON ]]; then
    ! loads_shared_library "$folder/consumer" || fail "attn_USE_STATIC_LIBS linked the shared one"
  else
    loads_shared_library "$folder/consumer" || fail "attn::attn is not the shared library"
  fi
}

# Sets `flags` to what pkg-config says, one flag a line as it quotes paths with spaces.
read_flags() {
  local text
  text=$("$pkg_config" "$@" attn)
  eval "flags=($text)"
}

use_through_pkg_config() {
  local libdir=$1 flags=() cflags
  export PKG_CONFIG_PATH=$libdir/pkgconfig
  [[ $("$pkg_config" --modversion attn) == "$version" ]] || fail "the version in attn.pc"
  read_flags --cflags
  cflags=("${flags[@]}")

  read_flags --libs
  "$cc" "${cflags[@]}" "$consumer/consumer.c" -o "$work/shared" "${flags[@]}" -lm
  LD_LIBRARY_PATH=$libdir "$work/shared" "$version" || fail "the program built through pkg-config"
  loads_shared_library "$work/shared" || fail "pkg-config --libs did not link the shared library"

  read_flags --static --libs
  "$cc" "${cflags[@]}" "$consumer/consumer.c" -o "$work/static" "${flags[@]/#-lattn/-l:libattn.a}"
  "$work/static" "$version" || fail "the program built through pkg-config --static"
  ! loads_shared_library "$work/static" || fail "the static program loads libattn.so"
}

# Installs by hand into a tree whose library folder is `$2` (below the prefix or absolute), with the
# pkg-config file that a configuration for that folder makes.
check_pkg_config_for() {
  local installed=$1 libdir_option=$2 prefix=$3 libdir=$4
  "$cmake" -G Ninja -S "$source" -B "$work/configured" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR="$libdir_option" \
    -DATTN_BUILD_TESTS=OFF -DATTN_BUILD_TOOLS=OFF -DATTN_BUILD_CHAPTERS=OFF \
    -DATTN_BUILD_BENCH=OFF -DATTN_BUILD_EXAMPLES=OFF >/dev/null
  mkdir -p "$libdir/pkgconfig" "$prefix"
  cp -a "$installed"/libattn.* "$libdir"
  cp "$work/configured/attn.pc" "$libdir/pkgconfig"
  cp -a "$work/prefix/include" "$prefix"
  use_through_pkg_config "$libdir"
}

check_tree() {
  local libdir=$1 name
  for name in libattn.so libattn.so.0 "libattn.so.$version" libattn.a; do
    [[ -e $libdir/$name ]] || fail "$libdir/$name is missing"
  done
  readelf --dynamic "$libdir/libattn.so" | grep -q 'SONAME.*\[libattn\.so\.0\]' || fail "soname"
}

rm -rf "$work"
mkdir -p "$work"
"$cmake" --install "$build" --prefix "$work/first prefix" >/dev/null
mv "$work/first prefix" "$work/prefix"
pc=$(find "$work/prefix" -name attn.pc)
libdir=$(cd "$(dirname "$pc")/.." && pwd)
check_tree "$libdir"
if [[ -x $build/bin/attn ]]; then
  "$work/prefix/bin/attn" version >/dev/null || fail "the installed attn command"
fi
use_through_cmake "$work/prefix" OFF
use_through_cmake "$work/prefix" ON
use_through_pkg_config "$libdir"
check_pkg_config_for "$libdir" lib/x86_64-linux-gnu \
  "$work/multiarch prefix" "$work/multiarch prefix/lib/x86_64-linux-gnu"
check_pkg_config_for "$libdir" "$work/else where/lib" "$work/absolute prefix" "$work/else where/lib"
