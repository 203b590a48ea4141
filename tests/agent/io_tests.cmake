# Real processes, pipes and files.
lrun_program(agent_io_worker SOURCES io_worker.cc LINK)
set_target_properties(agent_io_worker PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
lrun_library(lrun_agent_io_support SOURCES io_support.cc LINK lrun_agent)
target_compile_definitions(lrun_agent_io_support PRIVATE
  LRUN_IO_WORKER="$<TARGET_FILE:agent_io_worker>")
add_dependencies(lrun_agent_io_support agent_io_worker)
lrun_test(keeper_io_test LABEL io SOURCES keeper_io_test.cc LINK lrun_agent_io_support)
find_package(Boost 1.74 REQUIRED)
find_package(prometheus-cpp REQUIRED COMPONENTS core)
# The service on the agent's own loop, without gRPC: these tests need no socket.
set(_rendezvous ${CMAKE_SOURCE_DIR}/rendezvous)
lrun_library(lrun_agent_fixture
  SOURCES agent_fixture.cc ${_rendezvous}/local_link.cc ${_rendezvous}/metrics.cc
          ${_rendezvous}/service.cc ${_rendezvous}/words.cc
  LINK lrun_agent_io_support lrun_rendezvous_core Boost::headers prometheus-cpp::core)
lrun_test(agent_io_test LABEL io SOURCES agent_io_test.cc LINK lrun_agent_fixture)
lrun_test(output_io_test LABEL io SOURCES output_io_test.cc LINK lrun_agent_fixture)
lrun_test(host_io_test LABEL io SOURCES host_io_test.cc LINK lrun_agent_io_support)
lrun_test(agent_parts_test LABEL unit
  SOURCES error_record_test.cc failure_report_test.cc output_lines_test.cc stream_choice_test.cc
          worker_environment_test.cc
  LINK lrun_agent)
lrun_test(rendezvous_calls_io_test LABEL io SOURCES rendezvous_calls_io_test.cc
  LINK lrun_agent_io_support Boost::headers)
