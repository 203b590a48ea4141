// The order in which people read host names: n2 before n10.
//
// Pure. Used wherever nodes are listed or ranked without an earlier place.
#pragma once

#include <string_view>

namespace lrun::rendezvous {

// A strict total order: runs of digits compare by value, everything else byte by byte. Names that
// are equal that way ("n1", "n01") fall back to the order of bytes.
bool natural_less(std::string_view left, std::string_view right);

}  // namespace lrun::rendezvous
