// Keys: who gets in, and what each side is told when it does not.
#include <gmock/gmock.h>

#include "rendezvous/probe.h"
#include "tests/rendezvous/io_fixture.h"

namespace lrun::rendezvous {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Dialled by a name that is not written as loopback, so that the client speaks TLS, as it does to
// another machine; it resolves to 127.0.0.1 by way of an IPv4-mapped address.
constexpr const char* kFarLookingHost = "::ffff:127.0.0.1";

class RendezvousIoTls : public RendezvousIo {
 protected:
  void SetUp() override { serve(1, 1); }

  void open_tls_door() { open_doors({"0.0.0.0:0"}, load_or_make_credentials(folder / "ours")); }
  void open_plain_door() { open_doors({"0.0.0.0:0"}, std::nullopt, true); }

  Client::Options far_options(std::optional<Credentials> credentials) const {
    Client::Options options =
        options_for({.host = kFarLookingHost, .port = server->endpoints()[0].port});
    options.credentials = std::move(credentials);
    return options;
  }

  TemporaryFolder folder;
};

TEST_F(RendezvousIoTls, TheSameFolderOnBothSidesIsServed) {
  open_tls_door();
  expect_served(far_options(load_credentials(folder / "ours")));
}

TEST_F(RendezvousIoTls, LoopbackFindsOutThatTheServiceSpeaksTls) {
  open_tls_door();
  Client::Options options = options_for({.host = "127.0.0.1", .port = server->endpoints()[0].port});
  options.credentials = load_credentials(folder / "ours");
  Client client(loop, options);
  std::optional<Answer<Client::StatusAnswer>> answer;
  for (int attempt = 0; attempt < 2; ++attempt) {
    answer.reset();
    client.get_status([&](Answer<Client::StatusAnswer> given) { answer = std::move(given); });
    run_until([&] { return answer.has_value(); });
    if (attempt == 0) {
      ASSERT_TRUE(std::holds_alternative<Unreachable>(*answer));
      EXPECT_FALSE(std::get<Unreachable>(*answer).is_final);
    }
  }
  EXPECT_FALSE(std::holds_alternative<Unreachable>(*answer));
}

TEST_F(RendezvousIoTls, AForeignCertificateIsNamedWithTheThreeWaysOut) {
  open_tls_door();
  const Unreachable why =
      expect_unreachable(far_options(load_or_make_credentials(folder / "mine")));
  EXPECT_TRUE(why.is_final);
  EXPECT_TRUE(why.host_answered);
  EXPECT_THAT(why.sentence, AllOf(HasSubstr("issued by 'lrun CA "), HasSubstr(folder / "mine"),
                                  HasSubstr("copy the folder"), HasSubstr("--tls DIR"),
                                  HasSubstr("--insecure-network")));
}

TEST_F(RendezvousIoTls, WithoutKeysNothingIsSent) {
  open_tls_door();
  const Unreachable why = expect_unreachable(far_options(std::nullopt));
  EXPECT_TRUE(why.is_final);
  EXPECT_THAT(why.sentence, AllOf(HasSubstr("speaks TLS"), HasSubstr("--tls DIR")));
}

TEST_F(RendezvousIoTls, PlainTextToATlsPortSaysWhichSideIsPlain) {
  open_tls_door();
  Client::Options options = far_options(std::nullopt);
  options.insecure_network = true;
  const Unreachable why = expect_unreachable(options);
  EXPECT_TRUE(why.is_final);
  EXPECT_THAT(why.sentence, HasSubstr("speaks TLS, this side plain text"));
}

TEST_F(RendezvousIoTls, TlsToAPlainPortSaysWhichSideIsPlain) {
  open_plain_door();
  const Unreachable why =
      expect_unreachable(far_options(load_or_make_credentials(folder / "ours")));
  EXPECT_TRUE(why.is_final);
  EXPECT_THAT(why.sentence, HasSubstr("speaks plain text, this side TLS"));
}

// A member's certificate is what lets a peer in: with the right CA but none of its own, or with one
// of another CA, a peer that does not care whom it talks to is turned away all the same.
TEST_F(RendezvousIoTls, APeerWithoutAMembersCertificateIsTurnedAway) {
  open_tls_door();
  make_credentials(folder / "mine");
  Credentials stranger = load_credentials(folder / "mine");
  stranger.ca_pem = load_credentials(folder / "ours").ca_pem;  // believes the service
  std::optional<ProbeResult> found;
  ProbeTarget target{.endpoint = {.host = "127.0.0.1", .port = server->endpoints()[0].port},
                     .credentials = stranger};
  probe(loop, target, [&](ProbeResult result) { found = std::move(result); });
  run_until([&] { return found.has_value(); });
  EXPECT_EQ(found->finding, Finding::RefusesOurKeys) << found->detail;

  stranger.certificate_pem.clear();
  stranger.key_pem.clear();
  found.reset();
  target.credentials = stranger;
  probe(loop, target, [&](ProbeResult result) { found = std::move(result); });
  run_until([&] { return found.has_value(); });
  EXPECT_EQ(found->finding, Finding::RefusesOurKeys) << found->detail;
  expect_served(far_options(load_credentials(folder / "ours")));
}

}  // namespace
}  // namespace lrun::rendezvous
