#include "agent/error_record.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace lrun::agent {
namespace {

long seconds_of(const ErrorRecord& record) {
  if (!record.written_at) return -1;
  return std::chrono::duration_cast<std::chrono::seconds>(record.written_at->time_since_epoch())
      .count();
}

// The rows I1 and I3 of torchrun's conformance.
TEST(ErrorRecordTest, BothFormsAreUnderstood) {
  const ErrorRecord first =
      parse_error_record(R"({"message":{"message":"E: x",)"
                         R"("extraInfo":{"py_callstack":"T\nB","timestamp":"1700000000"}}})");
  EXPECT_EQ(first.message, "E: x");
  EXPECT_EQ(first.call_stack, "T\nB");
  EXPECT_EQ(seconds_of(first), 1700000000);
  const ErrorRecord second = parse_error_record(R"({"message":"m","timestamp":1700000000.5})");
  EXPECT_EQ(second.message, "m");
  EXPECT_EQ(second.call_stack, "");
  EXPECT_EQ(seconds_of(second), 1700000000);
  EXPECT_EQ(seconds_of(parse_error_record(R"({"message":"m"})")), -1);
  EXPECT_EQ(seconds_of(parse_error_record(R"({"message":"m","timestamp":"soon"})")), -1);
  EXPECT_EQ(seconds_of(parse_error_record(R"({"message":"m","timestamp":1e300})")), -1);
}

// The row I4: whatever it holds, it is data.
TEST(ErrorRecordTest, AnythingElseIsAComplaint) {
  for (const std::string& text :
       {std::string("{bad"), std::string(R"({"other":1})"), std::string(""), std::string("[]"),
        std::string("3"), std::string(R"({"message":3})"), std::string("{\"message\":\"\xff\"}"),
        std::string(60'000, '['), "{\"message\":\"" + std::string(70'000, 'x') + "\"}"}) {
    const ErrorRecord record = parse_error_record(text);
    EXPECT_FALSE(record.complaint.empty()) << text.substr(0, 40);
    EXPECT_TRUE(record.message.empty());
  }
  EXPECT_TRUE(parse_error_record(R"({"message":{}})").complaint.empty());
  EXPECT_TRUE(parse_error_record(R"({"message":{"message":[],"extraInfo":7}})").complaint.empty());
}

TEST(ErrorRecordTest, NoFileIsNoRecord) {
  EXPECT_FALSE(read_error_record(""));
  EXPECT_FALSE(read_error_record("/nonexistent/error.json"));
  EXPECT_EQ(read_error_record("/dev/zero")->complaint, "the error record is not a file");
}

}  // namespace
}  // namespace lrun::agent
