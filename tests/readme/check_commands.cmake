# Every `./scripts/test.sh -R '<expression>'` on PAGE chooses at least one test of BUILD.
cmake_minimum_required(VERSION 3.25)

file(READ "${PAGE}" text)
string(REGEX MATCHALL "test\\.sh -R '[^']*'" commands "${text}")
if(NOT commands)
  message(FATAL_ERROR "${PAGE}: no command found")
endif()
foreach(command IN LISTS commands)
  string(REGEX REPLACE "^.*'(.*)'$" "\\1" expression "${command}")
  execute_process(COMMAND "${CTEST}" --test-dir "${BUILD}" -N -R "${expression}"
    OUTPUT_VARIABLE listed COMMAND_ERROR_IS_FATAL ANY)
  if(NOT listed MATCHES "Total Tests: [1-9]")
    message(SEND_ERROR "${PAGE}: no test matches '${expression}'")
  endif()
endforeach()
