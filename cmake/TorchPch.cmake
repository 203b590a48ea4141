# One precompiled torch/torch.h for all targets that include it: 8 CPU seconds a file instead of 17,
# 33 to make it once (g++ 12, -O3), so it pays from the fourth file of a build. Files that get by
# with ATen/core/Tensor.h do not need it.
#
# Made only when a target that uses it is built. Off with -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON.

add_library(lrun_torch STATIC ${CMAKE_SOURCE_DIR}/cmake/torch_pch.cc)
_lrun_common(lrun_torch)
target_link_libraries(lrun_torch PUBLIC LibTorch::cpu)
# The header and all that share it must be compiled alike; trainer/ says why without contraction.
target_compile_options(lrun_torch PUBLIC -ffp-contract=off)
target_precompile_headers(lrun_torch PRIVATE <torch/torch.h>)

# lrun_use_torch(target): links LibTorch and shares the precompiled header.
function(lrun_use_torch target)
  target_link_libraries(${target} PRIVATE lrun_torch)
  target_precompile_headers(${target} REUSE_FROM lrun_torch)
endfunction()
