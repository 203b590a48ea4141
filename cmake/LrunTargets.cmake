# The three kinds of target. Their target_link_libraries are the diagram of who may include whom.

set(LRUN_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wswitch-enum -Wnon-virtual-dtor)
# g++ 12 sees overlapping copies in std::string's operator+ where there are none (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND LRUN_WARNINGS -Wno-restrict)
endif()

function(_lrun_common target)
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR})
  target_compile_options(${target} PRIVATE ${LRUN_WARNINGS})
  if(LRUN_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  # Assertions stay on in every build type: CMake's Release flags define NDEBUG, this takes it out.
  target_compile_options(${target} PRIVATE -UNDEBUG)
  target_compile_definitions(${target} PRIVATE _GLIBCXX_ASSERTIONS)
  if(LRUN_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=address,undefined
      -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
    target_link_options(${target} PRIVATE -fsanitize=address,undefined)
  endif()
  if(LRUN_TSAN)
    target_compile_options(${target} PRIVATE -fsanitize=thread)
    target_link_options(${target} PRIVATE -fsanitize=thread)
  endif()
endfunction()

# lrun_library(NAME SOURCES a.cc b.cc LINK other_targets)
function(lrun_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  _lrun_common(${name})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} PRIVATE ${ARG_PRIVATE_LINK})
endfunction()

# lrun_program(NAME SOURCES … LINK …): a binary in build/bin
function(lrun_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  _lrun_common(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
endfunction()

# lrun_test(NAME LABEL unit SOURCES … LINK … [TIMEOUT s]): one GoogleTest program in ctest
function(lrun_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;LINK" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  _lrun_common(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest GTest::gmock GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
endfunction()
