# Runs PROGRAM and compares what it prints with the file EXPECTED. With GOLDEN its argument is MODEL,
# which ATTN makes from it.
cmake_minimum_required(VERSION 3.25)

set(arguments "")
if(GOLDEN)
  execute_process(
    COMMAND "${ATTN}" convert "${GOLDEN}" "${MODEL}" --to gpt2 --heads 4 --new-prefix h.0.attn.
    COMMAND_ERROR_IS_FATAL ANY)
  set(arguments "${MODEL}" 0 4)
endif()
file(READ "${EXPECTED}" expected)
execute_process(COMMAND "${PROGRAM}" ${arguments}
  OUTPUT_VARIABLE output ERROR_VARIABLE errors RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "exit status ${result}\n${errors}")
endif()
if(NOT output STREQUAL expected)
  message(FATAL_ERROR "expected:\n${expected}\nprinted:\n${output}")
endif()
