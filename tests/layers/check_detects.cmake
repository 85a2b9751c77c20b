# Runs check_layers.cmake on a fixture and expects exactly the violations that are in it.
cmake_minimum_required(VERSION 3.25)

set(expected
  "src/core/upward.c: layer core includes sdpa/mask.h of the later layer sdpa"
  "src/core/upward.c: layer core includes attn/tape.h of the later layer tape"
  "src/gemm/relative.c: layer gemm includes ../io/npy.h of the later layer io"
  "src/gemm/relative.c: includes attn/novel.h, which no layer is named for in check_layers.cmake"
  "include/attn/status.h: layer core includes attn/random.h of the later layer random"
  "tools/attn/inside.c: includes core/checked.h of the library's inside")

execute_process(
  COMMAND "${CMAKE_COMMAND}" "-DROOT=${FIXTURE}" -P "${CMAKE_CURRENT_LIST_DIR}/check_layers.cmake"
  RESULT_VARIABLE result
  OUTPUT_VARIABLE output
  ERROR_VARIABLE output)
if(result EQUAL 0)
  message(FATAL_ERROR "the fixture's violations were not found:\n${output}")
endif()
foreach(line IN LISTS expected)
  string(FIND "${output}" "${line}\n" position)
  if(position EQUAL -1)
    message(FATAL_ERROR "not reported: ${line}\noutput:\n${output}")
  endif()
endforeach()
string(REGEX MATCHALL "[^\n]*includes[^\n]*\n" reported "${output}")
list(LENGTH reported reported_count)
list(LENGTH expected expected_count)
if(NOT reported_count EQUAL expected_count)
  message(FATAL_ERROR "${expected_count} violations expected, reported:\n${output}")
endif()
