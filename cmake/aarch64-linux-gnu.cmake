# Cross compilation for 64-bit Arm Linux with Debian's cross compiler. The arm64 libraries are those
# that `scripts/setup.sh --dev` unpacks into build/sysroot-aarch64; programs run under qemu-user.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(attn_sysroot "${CMAKE_CURRENT_LIST_DIR}/../build/sysroot-aarch64")
set(CMAKE_FIND_ROOT_PATH "${attn_sysroot}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# Programs run with the libc that was unpacked: the cross compiler's own (libc6-arm64-cross) never
# returns from pthread_create under qemu 7.2.
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-aarch64;-L;${attn_sysroot}")
