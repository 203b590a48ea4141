// Slurm's compressed node lists: "node[1-3,7]" means node1 node2 node3 node7. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lrun::launcher {

// The hosts in order, as `scontrol show hostnames` prints them; none for text that is no list, or
// one of more than kHostsMax hosts.
inline constexpr std::size_t kHostsMax = 100'000;
std::optional<std::vector<std::string>> expand_node_list(std::string_view text);

// Slurm's compressed counts: "4(x2),1" means 4 4 1.
std::optional<std::vector<int>> expand_counts(std::string_view text);

}  // namespace lrun::launcher
