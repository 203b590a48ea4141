# Real processes, pipes and files.
lrun_program(agent_io_worker SOURCES io_worker.cc LINK)
set_target_properties(agent_io_worker PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
lrun_library(lrun_agent_io_support SOURCES io_support.cc LINK lrun_agent)
target_compile_definitions(lrun_agent_io_support PRIVATE
  LRUN_IO_WORKER="$<TARGET_FILE:agent_io_worker>")
add_dependencies(lrun_agent_io_support agent_io_worker)
lrun_test(keeper_io_test LABEL io SOURCES keeper_io_test.cc LINK lrun_agent_io_support)
