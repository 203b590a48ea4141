#include "rendezvous/unreachable.h"

#include <string_view>

namespace lrun::rendezvous {
namespace {

// Both sides must change together, so each sentence ends with the ways to do that.
std::string ways_out(const Attempt& attempt) {
  return "copy the folder " + attempt.tls_folder +
         " from the service's node to this one, or give both --tls DIR with the same keys, or both "
         "--insecure-network";
}

std::string in_brackets(const std::string& words) {
  return words.empty() ? "" : " (" + words + ")";
}

Unreachable alive(std::string sentence) {
  return {.host_answered = true, .sentence = std::move(sentence), .is_final = false};
}
Unreachable silent(std::string sentence) {
  return {.host_answered = false, .sentence = std::move(sentence), .is_final = false};
}
Unreachable final(std::string sentence) {
  return {.host_answered = true, .sentence = std::move(sentence), .is_final = true};
}

Unreachable explain_plain_service(const Attempt& attempt, const std::string& where) {
  if (attempt.uses_tls) {
    return final(where +
                 " speaks plain text, this side TLS: give --insecure-network here as well, "
                 "or leave it out where the service runs");
  }
  if (attempt.is_out_of_time) return alive(where + " takes connections but did not answer in time");
  return alive("the connection to " + where + " was lost; the service is there again");
}

Unreachable explain_tls_service(const Attempt& attempt, const std::string& where,
                                const ProbeResult& found) {
  if (!attempt.uses_tls) {
    return final(where +
                 " speaks TLS, this side plain text: give this side the service's keys "
                 "(--tls DIR, without --insecure-network)");
  }
  switch (found.finding) {
    case Finding::ForeignTls:
      return final(where + " holds a certificate that the keys in " + attempt.tls_folder +
                   " do not vouch for" + in_brackets(found.detail) + ": " + ways_out(attempt));
    case Finding::RefusesOurKeys:
      return final(where + " refuses the certificate in " + attempt.tls_folder +
                   in_brackets(found.detail) + ": " + ways_out(attempt));
    case Finding::TrustedTls:
    case Finding::NoSocket:
    case Finding::Refused:
    case Finding::NotPermitted:
    case Finding::NoRoute:
    case Finding::Silent:
    case Finding::Mute:
    case Finding::Closes:
    case Finding::OtherProtocol:
    case Finding::PlainGrpc:
    case Finding::Accepts:
      break;
  }
  if (attempt.is_out_of_time) return alive(where + " takes connections but did not answer in time");
  return alive("the connection to " + where + " was lost; the service is there again");
}

}  // namespace

Unreachable explain(const Attempt& attempt, const ProbeResult& found) {
  const std::string where = to_string(attempt.endpoint);
  switch (found.finding) {
    case Finding::NoSocket:
      return alive(where + " does not exist: no rendezvous service has opened this socket");
    case Finding::Refused:
      return alive(where + " refuses connections: no rendezvous service listens there");
    case Finding::NotPermitted:
      return final(where + " belongs to another user: run as the user whose job it is");
    case Finding::NoRoute:
      return silent(where + " cannot be reached from this machine" + in_brackets(found.detail) +
                    ": check the address and the route");
    case Finding::Silent:
      return silent(where +
                    " does not answer: the host is down, or a firewall drops what is sent "
                    "to this port");
    case Finding::Mute:
      return alive(where +
                   " takes connections and says nothing: what listens there is no "
                   "rendezvous service, or it hangs");
    case Finding::Closes:
      return alive(where +
                   " takes connections and closes them without a word: what listens there "
                   "may be no rendezvous service");
    case Finding::OtherProtocol:
      return alive(where +
                   " speaks another protocol: what listens there is no rendezvous service; "
                   "check the port");
    case Finding::PlainGrpc:
      return explain_plain_service(attempt, where);
    case Finding::TrustedTls:
    case Finding::ForeignTls:
    case Finding::RefusesOurKeys:
      return explain_tls_service(attempt, where, found);
    case Finding::Accepts:
      return alive(attempt.is_out_of_time
                       ? where + " takes connections but did not answer in time"
                       : "the connection to " + where + " was lost; its host is there");
  }
  return alive(where + " was not reached");
}

Unreachable explain_unknown_name(const Endpoint& endpoint) {
  return silent("the name '" + endpoint.host + "' of " + to_string(endpoint) +
                " cannot be resolved here: check its spelling and the name service");
}

Unreachable explain_status(const Endpoint& endpoint, std::string_view code,
                           const std::string& message, bool is_final) {
  return {.host_answered = true,
          .sentence = to_string(endpoint) + " answered " + std::string(code) +
                      in_brackets(message) +
                      (is_final ? ": it is no rendezvous service of this version of lrun" : ""),
          .is_final = is_final};
}

}  // namespace lrun::rendezvous
