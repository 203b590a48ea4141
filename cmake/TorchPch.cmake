# One precompiled torch/torch.h for all targets that include it: 8 CPU seconds a file instead of 17,
# 33 to make it once (g++ 12, -O3), so it pays from the fourth file of a build. Files that get by
# with ATen/core/Tensor.h do not need it.
#
# Made only when a target that uses it is built. Off with -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON.

# lrun_precompile_torch(target): the target whose header is shared, exactly one.
function(lrun_precompile_torch target)
  # The header and all that share it must be compiled alike; trainer/ says why without contraction.
  target_compile_options(${target} PUBLIC -ffp-contract=off)
  target_precompile_headers(${target} PRIVATE <torch/torch.h>)
endfunction()

# lrun_use_torch(target): links LibTorch and shares the precompiled header of lrun_torch.
function(lrun_use_torch target)
  target_link_libraries(${target} PRIVATE lrun_torch)
  target_precompile_headers(${target} REUSE_FROM lrun_torch)
endfunction()
