# The shared library exports exactly the functions that the public headers declare with ATTN_API and
# that the stored list names. With -DUPDATE=ON the stored list is written anew.
cmake_minimum_required(VERSION 3.25)

execute_process(
  COMMAND "${NM}" --dynamic --defined-only --format=posix "${LIBRARY}"
  OUTPUT_VARIABLE output
  COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" lines "${output}")
set(exported "")
foreach(line IN LISTS lines)
  string(REGEX REPLACE "[ @].*$" "" symbol "${line}")
  if(NOT symbol STREQUAL "ATTN_0") # the version itself
    list(APPEND exported ${symbol})
  endif()
endforeach()
list(SORT exported)

set(declared "")
file(GLOB headers "${HEADERS}/*.h")
foreach(header IN LISTS headers)
  file(READ "${header}" text)
  string(REPLACE ";" "\n" text "${text}")
  string(REGEX REPLACE "//[^\n]*" "" text "${text}")
  string(REGEX REPLACE "#[ ]*define ATTN_API[^\n]*" "" text "${text}")
  string(REGEX MATCHALL "ATTN_API[^(\n]*[\n]?[^(\n]*\\(" declarations "${text}")
  foreach(declaration IN LISTS declarations)
    string(REGEX REPLACE "^.*[^a-zA-Z0-9_]([a-zA-Z0-9_]+)[ \n]*\\($" "\\1" symbol "${declaration}")
    list(APPEND declared ${symbol})
  endforeach()
endforeach()
list(SORT declared)

set(differences "")
function(report_difference what left right)
  foreach(symbol IN LISTS ${left})
    if(NOT symbol IN_LIST ${right})
      string(APPEND differences "  ${symbol}: ${what}\n")
    endif()
  endforeach()
  set(differences "${differences}" PARENT_SCOPE)
endfunction()

report_difference("exported, but no public header declares it" exported declared)
report_difference("declared in a public header, but not exported" declared exported)

if(UPDATE)
  list(JOIN exported "\n" text)
  file(WRITE "${LIST}" "${text}\n")
else()
  file(STRINGS "${LIST}" stored)
  report_difference("exported, but not in tests/exports/symbols.txt" exported stored)
  report_difference("in tests/exports/symbols.txt, but not exported" stored exported)
endif()

if(differences)
  message(FATAL_ERROR "the library's interface:\n${differences}")
endif()
