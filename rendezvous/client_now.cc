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
Answer<Reply> ask_now(Client::Options options, Ask ask) {
  const Duration limit = options.call_limit + kProbeLimit + std::chrono::seconds(1);
  const std::string where = to_string(options.endpoints.front());
  boost::asio::io_context loop;
  std::optional<Answer<Reply>> answer;
  {
    Client client(loop, std::move(options));
    ask(client, [&](Answer<Reply> given) {
      answer = std::move(given);
      loop.stop();
    });
    loop.run_for(limit);
  }
  if (answer) return *answer;
  return Unreachable{.host_answered = false, .sentence = where + " did not answer in time"};
}

}  // namespace

Answer<Client::StatusAnswer> get_status_now(Client::Options options) {
  return ask_now<Client::StatusAnswer>(
      std::move(options),
      [](Client& client, auto on_answer) { client.get_status(std::move(on_answer)); });
}

Answer<AcknowledgeAnswer> drain_now(Client::Options options, const NodeId& node) {
  return ask_now<AcknowledgeAnswer>(
      std::move(options),
      [&](Client& client, auto on_answer) { client.drain(node, std::move(on_answer)); });
}

Answer<AcknowledgeAnswer> stop_now(Client::Options options, const std::string& reason) {
  return ask_now<AcknowledgeAnswer>(
      std::move(options),
      [&](Client& client, auto on_answer) { client.stop(reason, std::move(on_answer)); });
}

}  // namespace lrun::rendezvous
