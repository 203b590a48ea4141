// Endpoints as users write them, metrics, and the sentences for not reaching a service.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <set>
#include <stdexcept>

#include "rendezvous/client.h"
#include "rendezvous/endpoint.h"
#include "rendezvous/metrics.h"
#include "rendezvous/unreachable.h"

namespace lrun::rendezvous {
namespace {

using testing::HasSubstr;
using testing::Not;

// --- endpoints -----------------------------------------------------------------------------------

TEST(RendezvousEndpoint, WhatIsWrittenIsReadAndWrittenAgain) {
  for (const char* text : {"node1:29500", "10.0.0.1:0", "[::1]:65535", "unix:/run/user/0/lrun/s"}) {
    EXPECT_EQ(to_string(parse_endpoint(text)), text);
  }
  EXPECT_EQ(parse_endpoint("[fe80::1%eth0]:1").host, "fe80::1%eth0");
}

TEST(RendezvousEndpoint, MistakesNameTheValueAndTheFix) {
  for (const std::string text :
       {"node1", "node1:", "node1:abc", "node1:65536", "node1:-1", ":29500", "::1:29500", "no de:1",
        "unix:relative", "http://node1:1", "node1:29500x"}) {
    try {
      parse_endpoint(text);
      ADD_FAILURE() << text << " was accepted";
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), HasSubstr("'" + text + "'"));
      EXPECT_THAT(error.what(), HasSubstr("host:port"));
    }
  }
  EXPECT_THROW(parse_endpoint("unix:/" + std::string(kUnixPathBytesMax, 'x')),
               std::invalid_argument);
}

TEST(RendezvousEndpoint, LoopbackIsWhatIsWrittenAsLoopback) {
  for (const char* text : {"localhost:1", "127.0.0.1:1", "127.1.2.3:1", "[::1]:1", "unix:/s"}) {
    EXPECT_TRUE(is_loopback(parse_endpoint(text))) << text;
  }
  for (const char* text : {"0.0.0.0:1", "127.evil.example:1", "10.0.0.1:1", "[::]:1", "node1:1"}) {
    EXPECT_FALSE(is_loopback(parse_endpoint(text))) << text;
  }
}

TEST(RendezvousEndpoint, TheAddressTowardsAPeerIsOurOwn) {
  EXPECT_EQ(local_address_towards("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(local_address_towards("not an address"), "");
}

// --- metrics -------------------------------------------------------------------------------------

class RendezvousMetrics : public testing::Test {
 protected:
  std::string text() const { return prometheus::TextSerializer().Serialize(registry.Collect()); }
  std::size_t series() const {
    std::size_t count = 0;
    for (const auto& family : registry.Collect()) count += family.metric.size();
    return count;
  }
  prometheus::Registry registry;
  Metrics metrics{registry};
};

TEST_F(RendezvousMetrics, EverySeriesIsThereFromTheStart) {
  const std::size_t at_start = series();
  EXPECT_THAT(text(), HasSubstr("lrun_rendezvous_generations_total{reason=\"stalled\"} 0"));
  EXPECT_THAT(text(), HasSubstr("lrun_rendezvous_departures_total{evidence=\"silent\"} 0"));
  EXPECT_THAT(text(), HasSubstr("lrun_rendezvous_refusals_total{reason=\"wrong_run\"} 0"));
  for (int generation = 0; generation < 1000; ++generation) {
    GenerationPublished published;
    published.reason = GenerationReason::WorkerFailed;
    metrics.count(published);
    metrics.count(NodeDeparted{NodeId{"n" + std::to_string(generation)}, Evidence::Gone});
    metrics.count_request("Join", "ALREADY_EXISTS");
    Status status;
    status.nodes.resize(3);
    metrics.show(status);
  }
  EXPECT_EQ(series(), at_start);
  EXPECT_THAT(text(), HasSubstr("generations_total{reason=\"worker_failed\"} 1000"));
}

TEST_F(RendezvousMetrics, OnePhaseAtATimeAndNothingOnceItServesNoMore) {
  Status status;
  status.config.min_nodes = 1;
  status.config.max_nodes = 4;
  status.config.max_restarts = 3;
  status.restarts_spent = 1;
  status.world_size = 8;
  status.phase = Phase::Active;
  status.nodes.resize(2);
  status.nodes[0].role = Role::Participant;
  status.nodes[0].draining = true;
  status.nodes[1].role = Role::Spare;
  metrics.show(status);
  EXPECT_THAT(text(), HasSubstr("lrun_rendezvous_phase{phase=\"active\"} 1"));
  EXPECT_THAT(text(), HasSubstr("lrun_rendezvous_phase{phase=\"forming\"} 0"));
  EXPECT_THAT(text(), HasSubstr("lrun_rendezvous_nodes{role=\"participant\"} 1"));
  EXPECT_THAT(text(), HasSubstr("lrun_rendezvous_nodes{role=\"draining\"} 1"));
  EXPECT_THAT(text(), HasSubstr("lrun_rendezvous_restart_budget_left 2"));
  EXPECT_THAT(text(), HasSubstr("lrun_rendezvous_leader 1"));
  metrics.show_nothing();
  EXPECT_THAT(text(), HasSubstr("lrun_rendezvous_leader 0"));
  EXPECT_THAT(text(), HasSubstr("lrun_rendezvous_nodes{role=\"participant\"} 0"));
}

// --- sentences -----------------------------------------------------------------------------------

constexpr std::array kFindings = {
    Finding::NoSocket,  Finding::Refused,    Finding::NotPermitted, Finding::NoRoute,
    Finding::Silent,    Finding::Mute,       Finding::Closes,       Finding::OtherProtocol,
    Finding::PlainGrpc, Finding::TrustedTls, Finding::ForeignTls,   Finding::RefusesOurKeys,
    Finding::Accepts};

TEST(RendezvousUnreachable, EveryFindingHasASentenceOfItsOwn) {
  Attempt attempt{.endpoint = {.host = "10.0.0.1", .port = 29500}, .uses_tls = true};
  attempt.tls_folder = "/home/u/.config/lrun/tls";
  std::set<std::string> sentences;
  for (const Finding finding : kFindings) {
    const Unreachable why = explain(attempt, {finding, "detail"});
    EXPECT_THAT(why.sentence, HasSubstr("10.0.0.1:29500"));
    EXPECT_THAT(why.sentence, Not(HasSubstr("\n")));
    EXPECT_TRUE(sentences.insert(why.sentence).second) << why.sentence;
  }
}

// Nobody is fenced while the host of the service answers in any way.
TEST(RendezvousUnreachable, OnlySilenceIsSilence) {
  const Attempt attempt{.endpoint = {.host = "10.0.0.1", .port = 29500}};
  for (const Finding finding : kFindings) {
    const bool is_silence = finding == Finding::Silent || finding == Finding::NoRoute;
    EXPECT_EQ(explain(attempt, {finding, ""}).host_answered, !is_silence);
  }
}

TEST(RendezvousUnreachable, OnlyWhatBothSidesMustChangeIsFinal) {
  Attempt attempt{.endpoint = {.host = "10.0.0.1", .port = 29500}, .uses_tls = true};
  for (const Finding finding : {Finding::ForeignTls, Finding::RefusesOurKeys, Finding::PlainGrpc}) {
    EXPECT_TRUE(explain(attempt, {finding, ""}).is_final);
  }
  for (const Finding finding : {Finding::Refused, Finding::Silent, Finding::Mute, Finding::Accepts,
                                Finding::NoSocket, Finding::TrustedTls}) {
    EXPECT_FALSE(explain(attempt, {finding, ""}).is_final);
  }
  attempt.uses_tls = false;
  EXPECT_TRUE(explain(attempt, {Finding::TrustedTls, ""}).is_final);
  EXPECT_FALSE(explain(attempt, {Finding::PlainGrpc, ""}).is_final);
}

}  // namespace
}  // namespace lrun::rendezvous
