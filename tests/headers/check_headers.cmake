# Compiles each header of INCLUDE/attn alone with COMPILER as LANGUAGE, STANDARD.
cmake_minimum_required(VERSION 3.25)

file(GLOB headers RELATIVE "${INCLUDE}" "${INCLUDE}/attn/*.h")
if(NOT headers)
  message(FATAL_ERROR "no header in ${INCLUDE}/attn")
endif()
foreach(header IN LISTS headers)
  string(MAKE_C_IDENTIFIER "${header}" name)
  set(source "${WORK}/${name}.${LANGUAGE}")
  file(WRITE "${source}" "#include <${header}>\n#include <${header}>\nextern int attn_unused;\n")
  execute_process(
    COMMAND "${COMPILER}" -std=${STANDARD} -Wall -Wextra -Wpedantic -Werror -Wconversion -Wundef
      "-I${INCLUDE}" -fsyntax-only -x ${LANGUAGE} "${source}"
    RESULT_VARIABLE result
    ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(SEND_ERROR "${header} as ${STANDARD}:\n${output}")
  endif()
endforeach()
