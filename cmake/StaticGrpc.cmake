# gRPC, Protobuf, Abseil and OpenSSL, linked statically: `lrun` starts in milliseconds and runs
# where
# none of them is installed. lrun_grpc carries all; pkg-config is asked by hand, since
# pkg_check_modules takes ten times as long.
find_package(Protobuf REQUIRED)
find_program(LRUN_GRPC_PLUGIN grpc_cpp_plugin REQUIRED)
execute_process(COMMAND pkg-config --static --libs-only-l grpc++ protobuf openssl
  OUTPUT_VARIABLE _libs RESULT_VARIABLE _rc OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT _rc EQUAL 0)
  message(FATAL_ERROR "gRPC is missing: "
    "install libgrpc++-dev and protobuf-compiler-grpc (scripts/deps does it)")
endif()
string(REGEX MATCHALL "-l[^ ]+" _libs "${_libs}")
list(REMOVE_DUPLICATES _libs)
list(REMOVE_ITEM _libs -ldl -lrt -latomic -lpthread)
add_library(lrun_grpc INTERFACE)
target_link_libraries(lrun_grpc INTERFACE
  -Wl,--start-group -Wl,-Bstatic ${_libs} -Wl,-Bdynamic -Wl,--end-group Threads::Threads)
