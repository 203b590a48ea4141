// The client's calls for people, waiting for their answer.
#include <boost/asio/io_context.hpp>
#include <optional>
#include <utility>

#include "rendezvous/client.h"
#include "rendezvous/probe.h"

namespace lrun::rendezvous {
namespace {

// Makes one call on a loop of its own. A call ends by itself within its limit, and what it then
// looks for within the probe's; the last second is for a machine under load.
template <class Reply, class Ask>
std::optional<Answer<Reply>> ask_once(boost::asio::io_context& loop, Client& client, Duration limit,
                                      const Ask& ask) {
  std::optional<Answer<Reply>> answer;
  ask(client, [&](Answer<Reply> given) {
    answer = std::move(given);
    loop.stop();
  });
  loop.restart();
  loop.run_for(limit + kProbeLimit + std::chrono::seconds(1));
  return answer;
}

// Tries each endpoint, and once more what answered: the first try may only have learned that the
// service on a loopback address speaks TLS.
template <class Reply, class Ask>
Answer<Reply> ask_now(Client::Options options, const Ask& ask) {
  boost::asio::io_context loop;
  Client client(loop, options);
  Unreachable why{.host_answered = false, .sentence = "no endpoint answered in time"};
  for (std::size_t left = options.endpoints.size() + 1; left > 0; --left) {
    const auto answer = ask_once<Reply>(loop, client, options.call_limit, ask);
    if (!answer) return why;
    if (!std::holds_alternative<Unreachable>(*answer)) return *answer;
    why = std::get<Unreachable>(*answer);
    const bool is_last_endpoint = left <= 2;
    if (why.is_final || (is_last_endpoint && !why.host_answered)) break;
  }
  return why;
}

}  // namespace

Answer<Client::StatusAnswer> get_status_now(Client::Options options) {
  return ask_now<Client::StatusAnswer>(std::move(options), [](Client& client, auto on_answer) {
    client.get_status(std::move(on_answer));
  });
}

Answer<AcknowledgeAnswer> drain_now(Client::Options options, const NodeId& node) {
  return ask_now<AcknowledgeAnswer>(std::move(options), [&](Client& client, auto on_answer) {
    client.drain(node, std::move(on_answer));
  });
}

Answer<AcknowledgeAnswer> stop_now(Client::Options options, const std::string& reason) {
  return ask_now<AcknowledgeAnswer>(std::move(options), [&](Client& client, auto on_answer) {
    client.stop(reason, std::move(on_answer));
  });
}

}  // namespace lrun::rendezvous
