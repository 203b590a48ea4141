#include "launcher/node_list.h"

#include <gtest/gtest.h>

namespace lrun::launcher {
namespace {

std::string joined(std::string_view text) {
  const auto hosts = expand_node_list(text);
  if (!hosts) return "refused";
  std::string out;
  for (const std::string& host : *hosts) out += (out.empty() ? "" : " ") + host;
  return out;
}

TEST(NodeList, ExpandsWhatScontrolExpands) {
  EXPECT_EQ(joined("node1"), "node1");
  EXPECT_EQ(joined("node[1-3,7]"), "node1 node2 node3 node7");
  EXPECT_EQ(joined("gpu-a[08-10]"), "gpu-a08 gpu-a09 gpu-a10");
  EXPECT_EQ(joined("n[9-11]"), "n9 n10 n11");
  EXPECT_EQ(joined("n[09-11]"), "n09 n10 n11");
  EXPECT_EQ(joined("a1,b[1-2],c[001-002]"), "a1 b1 b2 c001 c002");
  EXPECT_EQ(joined("x1y[0-1]z[2-3]"), "x1y0z2 x1y0z3 x1y1z2 x1y1z3");
  EXPECT_EQ(joined("node[1-2],node[5-6]"), "node1 node2 node5 node6");
}

TEST(NodeList, RefusesWhatIsNoList) {
  for (const char* text : {"", "a[1-3]b", "a[", "a[]", "a[1-", "a[3-1]", "a[x]", ",", "a,,b", "a,",
                           "a[1-999999999]"}) {
    EXPECT_EQ(joined(text), "refused") << text;
  }
}

TEST(NodeList, ExpandsCounts) {
  EXPECT_EQ(expand_counts("4(x2),1"), (std::vector<int>{4, 4, 1}));
  EXPECT_EQ(expand_counts("1"), (std::vector<int>{1}));
  for (const char* text : {"", "x", "1(x", "1(x)", "1(x2", "1(x999999999)"}) {
    EXPECT_EQ(expand_counts(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace lrun::launcher
