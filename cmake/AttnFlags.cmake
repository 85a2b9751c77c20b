# Compiler flags for everything in this tree (not for projects that embed it).

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# -O2 everywhere; the kernels ask for -O3 in their own files. RelWithDebInfo, the default, keeps
# assertions; Release leaves them out. Flags that somebody chose otherwise stay.
foreach(language IN ITEMS C CXX)
  if(CMAKE_${language}_FLAGS_RELWITHDEBINFO STREQUAL "-O2 -g -DNDEBUG")
    set(CMAKE_${language}_FLAGS_RELWITHDEBINFO "-O2 -g")
  endif()
  if(CMAKE_${language}_FLAGS_RELEASE STREQUAL "-O3 -DNDEBUG")
    set(CMAKE_${language}_FLAGS_RELEASE "-O2 -DNDEBUG")
  endif()
endforeach()

# Fused multiply-adds are explicit in the source; the compiler makes none of its own, so that the
# bits of a result do not depend on it.
add_compile_options(
  -ffp-contract=off
  -fno-math-errno
  -Wall -Wextra -Wpedantic -Wconversion -Wvla
  $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>
  $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>)
if(ATTN_WERROR)
  add_compile_options(-Werror)
endif()

if(ATTN_SANITIZE)
  add_compile_options(-fsanitize=${ATTN_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${ATTN_SANITIZE})
endif()
