#include "launcher/metrics_server.h"

#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <stdexcept>

namespace lrun::launcher {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;

constexpr int kConnectionsMax = 64;  // a scraper needs one or two
constexpr std::size_t kHeaderBytesMax = 8 * 1024;
constexpr std::size_t kBodyBytesMax = 1024;           // of a request; none has a use for one
constexpr std::chrono::seconds kRequestDeadline{10};  // idle and slow connections end
constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";
constexpr const char* kPlainType = "text/plain; charset=utf-8";

using Request = http::request<http::string_body>;
using Response = http::response<http::string_body>;

std::string host_without_port(std::string host) {
  const std::size_t colon = host.rfind(':');
  const std::size_t bracket = host.rfind(']');
  if (colon != std::string::npos && (bracket == std::string::npos || bracket < colon))
    host.resize(colon);
  return host;
}

}  // namespace

struct MetricsServer::Impl {
  Impl(asio::io_context& loop, prometheus::Registry& metrics) : acceptor(loop), registry(metrics) {}

  Response answer(const Request& request) const;
  Response respond(const Request& request, http::status status, std::string body,
                   const char* type = kPlainType) const;
  bool is_known_host(const Request& request) const;

  tcp::acceptor acceptor;
  prometheus::Registry& registry;
  std::function<void()> refresh;
  std::function<Health()> health;
  std::function<Health()> readiness;
  std::vector<std::string> hosts{"localhost", "127.0.0.1", "[::1]"};
  int connections = 0;
};

Response MetricsServer::Impl::respond(const Request& request, http::status status, std::string body,
                                      const char* type) const {
  Response response{status, request.version()};
  response.set(http::field::content_type, type);
  response.keep_alive(request.keep_alive());
  if (status == http::status::method_not_allowed) response.set(http::field::allow, "GET, HEAD");
  response.content_length(body.size());
  if (request.method() != http::verb::head) response.body() = std::move(body);
  return response;
}

// A page in a browser may be made to ask a name that resolves to this machine; only names that are
// meant for it are answered.
bool MetricsServer::Impl::is_known_host(const Request& request) const {
  const std::string host = host_without_port(std::string(request[http::field::host]));
  return host.empty() || std::find(hosts.begin(), hosts.end(), host) != hosts.end();
}

Response MetricsServer::Impl::answer(const Request& request) const {
  if (request.method() != http::verb::get && request.method() != http::verb::head) {
    return respond(request, http::status::method_not_allowed, "only GET and HEAD\n");
  }
  if (!is_known_host(request)) {
    return respond(request, http::status::misdirected_request,
                   "this host name is not served here\n");
  }
  const std::string target(request.target().substr(0, request.target().find('?')));
  if (target == "/metrics") {
    refresh();
    return respond(request, http::status::ok,
                   prometheus::TextSerializer().Serialize(registry.Collect()), kMetricsType);
  }
  if (target == "/healthz" || target == "/readyz") {
    const Health state = target == "/healthz" ? health() : readiness();
    return respond(request, state.is_ok ? http::status::ok : http::status::service_unavailable,
                   state.reason + "\n");
  }
  return respond(request, http::status::not_found, "known are /metrics, /healthz and /readyz\n");
}

namespace {

// One connection; keeps itself alive through its callbacks.
template <class Server>
class Session : public std::enable_shared_from_this<Session<Server>> {
 public:
  Session(tcp::socket socket, std::shared_ptr<Server> server)
      : stream_(std::move(socket)), server_(std::move(server)) {
    ++server_->connections;
  }
  ~Session() { --server_->connections; }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void read() {
    parser_ = std::make_unique<http::request_parser<http::string_body>>();
    parser_->header_limit(kHeaderBytesMax);
    parser_->body_limit(kBodyBytesMax);
    stream_.expires_after(kRequestDeadline);
    http::async_read(stream_, buffer_, *parser_,
                     [self = this->shared_from_this()](beast::error_code error, std::size_t) {
                       if (!error) self->write();
                     });
  }

 private:
  void write() {
    response_ = server_->answer(parser_->get());
    stream_.expires_after(kRequestDeadline);
    http::async_write(stream_, response_,
                      [self = this->shared_from_this()](beast::error_code error, std::size_t) {
                        if (!error && self->response_.keep_alive()) self->read();
                      });
  }

  beast::tcp_stream stream_;
  std::shared_ptr<Server> server_;
  beast::flat_buffer buffer_{kHeaderBytesMax + kBodyBytesMax};
  std::unique_ptr<http::request_parser<http::string_body>> parser_;
  Response response_;
};

template <class Server>
void accept_next(const std::shared_ptr<Server>& server) {
  server->acceptor.async_accept([server](beast::error_code error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (!error && server->connections < kConnectionsMax) {
      std::make_shared<Session<Server>>(std::move(socket), server)->read();
    }
    accept_next(server);
  });
}

void listen(tcp::acceptor& acceptor, const std::string& address, int port) {
  beast::error_code error;
  const auto host = asio::ip::make_address(address, error);
  if (error) {
    throw std::runtime_error("--metrics-address='" + address +
                             "' is no address; write one such as 127.0.0.1 or 0.0.0.0");
  }
  const tcp::endpoint endpoint(host, static_cast<unsigned short>(port));
  acceptor.open(endpoint.protocol());
  acceptor.set_option(tcp::acceptor::reuse_address(true));
  acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(kConnectionsMax, error);
  if (error) {
    throw std::runtime_error("cannot serve metrics at " + address + ":" + std::to_string(port) +
                             " (" + error.message() +
                             "); choose another --metrics-port, or 0 for a free one");
  }
}

}  // namespace

MetricsServer::MetricsServer(asio::io_context& loop, const Options& options,
                             prometheus::Registry& registry, std::function<void()> refresh,
                             std::function<Health()> health, std::function<Health()> readiness)
    : impl_(std::make_shared<Impl>(loop, registry)) {
  impl_->refresh = std::move(refresh);
  impl_->health = std::move(health);
  impl_->readiness = std::move(readiness);
  impl_->hosts.push_back(options.address);
  impl_->hosts.insert(impl_->hosts.end(), options.accepted_hosts.begin(),
                      options.accepted_hosts.end());
  listen(impl_->acceptor, options.address, options.port);
  accept_next(impl_);
}

MetricsServer::~MetricsServer() {
  beast::error_code ignored;
  impl_->acceptor.close(ignored);
}

int MetricsServer::port() const { return impl_->acceptor.local_endpoint().port(); }

}  // namespace lrun::launcher
