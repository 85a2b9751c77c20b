#!/usr/bin/env bash
# Installs the Debian packages that building needs and that are missing.
#
# usage: setup.sh [--test|--dev] [--check]
#   (none)    what building and running the programs needs
#   --test    and what the tests need
#   --dev     and what .ci/run needs: clang, its tools, the aarch64 cross compiler, qemu
#   --check   install nothing: list what is missing, and fail if anything is
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

packages=(gcc libc6-dev cmake ninja-build pkg-config
  libpthreadpool-dev libjansson-dev zlib1g-dev libcairo2-dev)
test_packages=(g++ libcmocka-dev python3-numpy)
dev_packages=(clang libclang-rt-14-dev clang-format clang-tidy shellcheck dpkg-dev git
  gcc-aarch64-linux-gnu qemu-user)

check=no
cross=no
for argument in "$@"; do
  case $argument in
    --test) packages+=("${test_packages[@]}") ;;
    --dev)
      packages+=("${test_packages[@]}" "${dev_packages[@]}")
      cross=yes
      ;;
    --check) check=yes ;;
    *)
      echo "usage: setup.sh [--test|--dev] [--check]" >&2
      exit 2
      ;;
  esac
done

if ! command -v dpkg-query >/dev/null; then
  echo "setup.sh: not a Debian system; if the build lacks something, it is one of these: ${packages[*]}" >&2
  exit 0
fi

# One question for all packages; those that dpkg has never heard of are not in the answer.
installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null || true)
missing=()
for package in "${packages[@]}"; do
  grep -qxF "$package installed" <<<"$installed" || missing+=("$package")
done

if ((${#missing[@]})); then
  as_root=()
  if [[ $(id -u) != 0 ]]; then
    as_root=(sudo -n)
  fi
  if [[ $check == yes ]] || { ((${#as_root[@]})) && ! sudo -n true 2>/dev/null; }; then
    echo "setup.sh: these packages are missing; as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  echo "setup.sh: installing ${missing[*]} (log: build/setup.log)" >&2
  mkdir -p "$root/build"
  log=$root/build/setup.log
  {
    "${as_root[@]}" apt-get update -qq &&
      "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends "${missing[@]}"
  } >"$log" 2>&1 </dev/null || {
    tail -n 40 "$log" >&2
    echo "setup.sh: the installation failed; as root: apt-get install ${missing[*]}" >&2
    exit 1
  }
fi

# The arm64 libraries are unpacked into a folder of their own: Debian's libpthreadpool cannot be
# installed for two architectures at once, and nothing here should change the system's.
unpack_cross_libraries() {
  local sysroot=$1 work=$1.work package
  local -a apt=(apt-get -qq
    -o "APT::Architecture=arm64" -o "APT::Architectures::=arm64"
    -o "Dir::State=$work/state" -o "Dir::Cache=$work/cache"
    -o "Dir::State::status=$work/status" -o "APT::Sandbox::User=")
  rm -rf "$work" "$sysroot"
  mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" "$work/debs" "$work/root"
  : >"$work/status"
  echo "setup.sh: unpacking arm64 libraries into build/sysroot-aarch64" >&2
  "${apt[@]}" update >&2
  (cd "$work/debs" && "${apt[@]}" download libcmocka0 libcmocka-dev libjansson4 libjansson-dev \
    libpthreadpool0 libpthreadpool-dev zlib1g zlib1g-dev libc6 libgcc-s1 >&2)
  for package in "$work"/debs/*.deb; do
    dpkg-deb -x "$package" "$work/root"
  done
  # Some packages still keep their libraries in /lib, which is a link to /usr/lib by now; the link to
  # zlib is absolute.
  local libraries=$work/root/usr/lib
  cp -a "$work/root/lib/." "$libraries"
  rm -r "$work/root/lib"
  ln -s usr/lib "$work/root/lib"
  ln -sf libz.so.1 "$libraries/aarch64-linux-gnu/libz.so"
  mv "$work/root" "$sysroot"
  rm -r "$work"
}

sysroot=$root/build/sysroot-aarch64
if [[ $cross == yes && ! -e $sysroot/lib/ld-linux-aarch64.so.1 ]]; then
  if [[ $check == yes ]]; then
    echo "setup.sh: the arm64 libraries are not unpacked yet; setup.sh --dev does it" >&2
    exit 1
  fi
  unpack_cross_libraries "$sysroot"
fi
