# LibTorch 2.11 from the PyPI wheel: LibTorch::cpu, LibTorch::c10. The wheel's own package file
# probes
# for GPUs and links CUDA into everything, so it is not used.
#
# Looked for in: -DLRUN_TORCH_ROOT or the environment variable of that name (a folder with include/
# and lib/), then .venv (made by scripts/deps), then the system's python3.

set(_root "${LRUN_TORCH_ROOT}")
if(NOT _root)
  set(_root "$ENV{LRUN_TORCH_ROOT}")
endif()
if(NOT _root)
  # find_spec does not import torch, so it works without torch's own dependencies.
  foreach(_python ${CMAKE_SOURCE_DIR}/.venv/bin/python3 python3)
    execute_process(COMMAND ${_python} -c
      "import importlib.util as u;print(u.find_spec('torch').submodule_search_locations[0],end='')"
      OUTPUT_VARIABLE _found RESULT_VARIABLE _rc ERROR_QUIET)
    if(_rc EQUAL 0)
      set(_root "${_found}")
      break()
    endif()
  endforeach()
endif()
if(NOT EXISTS "${_root}/include/torch/headeronly/version.h")
  message(FATAL_ERROR "LibTorch 2.11 is missing (looked in '${_root}'): run scripts/deps, or set "
    "LRUN_TORCH_ROOT to the folder of an installed torch 2.11, "
    "or build without the trainer: -DLRUN_TRAINER=OFF")
endif()

file(STRINGS ${_root}/include/torch/headeronly/version.h _version
  REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
string(REGEX REPLACE "[^0-9]+([0-9]+)[^0-9]+([0-9]+)[^0-9]+([0-9]+).*" "\\1.\\2.\\3"
  LibTorch_VERSION "${_version}")
if(NOT LibTorch_VERSION MATCHES "^2\\.11\\.")
  message(FATAL_ERROR "LibTorch ${LibTorch_VERSION} in ${_root}: "
    "lrun is built and tested with 2.11 only. Run scripts/deps, "
    "or set LRUN_TORCH_ROOT to a torch 2.11")
endif()

# No cache entries: after scripts/deps the next configure simply finds it.
foreach(_name c10 torch_cpu)
  if(NOT EXISTS ${_root}/lib/lib${_name}.so)
    message(FATAL_ERROR "LibTorch in ${_root} has no lib/lib${_name}.so: "
      "remove .venv and run scripts/deps again")
  endif()
endforeach()
if(NOT TARGET LibTorch::cpu)
  add_library(LibTorch::c10 UNKNOWN IMPORTED)
  set_target_properties(LibTorch::c10 PROPERTIES IMPORTED_LOCATION ${_root}/lib/libc10.so)
  add_library(LibTorch::cpu UNKNOWN IMPORTED)
  # The definitions equal those of the wheel's own targets: they change the layout of classes.
  set_target_properties(LibTorch::cpu PROPERTIES
    IMPORTED_LOCATION ${_root}/lib/libtorch_cpu.so
    INTERFACE_INCLUDE_DIRECTORIES "${_root}/include;${_root}/include/torch/csrc/api/include"
    INTERFACE_COMPILE_DEFINITIONS "USE_DISTRIBUTED;USE_RPC;USE_TENSORPIPE"
    INTERFACE_LINK_LIBRARIES LibTorch::c10)
endif()
set(LibTorch_ROOT_DIR ${_root})
message(STATUS "LibTorch ${LibTorch_VERSION} in ${_root}")
