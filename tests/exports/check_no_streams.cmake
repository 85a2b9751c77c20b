# Nothing in the library can write to a standard stream or end the process.
cmake_minimum_required(VERSION 3.25)

set(forbidden stdin stdout stderr printf vprintf dprintf puts putchar perror psignal
  __printf_chk __vprintf_chk abort exit _exit _Exit quick_exit syslog)
if(NOT ASSERTIONS)
  list(APPEND forbidden __assert_fail)
endif()

execute_process(
  COMMAND "${NM}" --undefined-only --format=posix "${LIBRARY}"
  OUTPUT_VARIABLE output
  COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE "[][]" " " output "${output}") # brackets would join list elements
string(REGEX MATCHALL "[^\n]+" lines "${output}")
set(object "")
set(found "")
set(references 0)
foreach(line IN LISTS lines)
  if(line MATCHES " ([^ ]+) :$")
    set(object "${CMAKE_MATCH_1}")
  elseif(line MATCHES "^([^ ]+) U")
    math(EXPR references "${references} + 1")
    if(CMAKE_MATCH_1 IN_LIST forbidden)
      string(APPEND found "  ${object} refers to ${CMAKE_MATCH_1}\n")
    endif()
  endif()
endforeach()
if(references EQUAL 0)
  message(FATAL_ERROR "nothing was read from ${LIBRARY}")
endif()
if(found)
  message(FATAL_ERROR "the library must not print or end the process:\n${found}")
endif()
