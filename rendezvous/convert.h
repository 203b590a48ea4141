// Messages of the wire to events and back. The only place that reads what peers sent.
//
// Owns every limit's check: what exceeds one, or names an unknown enumerator, becomes a Refusal
// with a sentence (BadRequest). Refuses to know connections. Called by the server and the client,
// on any thread: all functions are pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "rendezvous/events.h"
#include "rendezvous/link.h"

namespace lrun::rendezvous {
namespace v1 {
class Acknowledgement;
class Caller;
class DrainRequest;
class GetStatusReply;
class GetStatusRequest;
class HeartbeatReply;
class HeartbeatRequest;
class JoinReply;
class JoinRequest;
class LeaveRequest;
class LookupReply;
class LookupRequest;
class PublishRequest;
class StopRequest;
class WatchReply;
class WatchRequest;
}  // namespace v1

template <class Value>
using Converted = std::variant<Value, Refusal>;

// --- requests: the client writes, the server reads
// -------------------------------------------------

void write(const JoinRequest& request, v1::JoinRequest& wire);
void write(const WatchRequest& request, v1::WatchRequest& wire);
void write(const HeartbeatRequest& request, v1::HeartbeatRequest& wire);
void write(const LeaveRequest& request, v1::LeaveRequest& wire);
void write(const PublishRequest& request, v1::PublishRequest& wire);
void write(const LookupRequest& request, v1::LookupRequest& wire);

Converted<JoinRequest> read(const v1::JoinRequest& wire);
Converted<WatchRequest> read(const v1::WatchRequest& wire);
Converted<HeartbeatRequest> read(const v1::HeartbeatRequest& wire);
Converted<LeaveRequest> read(const v1::LeaveRequest& wire);
Converted<PublishRequest> read(const v1::PublishRequest& wire);
Converted<LookupRequest> read(const v1::LookupRequest& wire);
Converted<NodeId> read(const v1::DrainRequest& wire);
Converted<std::string> read(const v1::StopRequest& wire);

// Who may ask anything at all: this version of the protocol, and this run. People may leave the run
// open.
enum class AnyRun { Accepted, Refused };
void write_caller(const std::string& run_id, v1::Caller& wire);
std::optional<Refusal> check_caller(const v1::Caller& wire, const std::string& run_id_served,
                                    AnyRun any_run);

// --- replies: the server writes, the client reads
// --------------------------------------------------

// A Refusal is no message but a status: see to_status. The others must not be given one.
void write(const JoinReply& reply, v1::JoinReply& wire);
void write(const WatchReply& reply, v1::WatchReply& wire);
void write(const HeartbeatReply& reply, v1::HeartbeatReply& wire);
void write(const LookupReply& reply, v1::LookupReply& wire);
void write(const Status& status, v1::GetStatusReply& wire);

JoinReply read(const v1::JoinReply& wire);
WatchReply read(const v1::WatchReply& wire);
HeartbeatAnswer read(const v1::HeartbeatReply& wire);
LookupReply read(const v1::LookupReply& wire);
AcknowledgeAnswer read(const v1::Acknowledgement& wire);
Converted<Status> read(const v1::GetStatusReply& wire);

// --- refusals
// --------------------------------------------------------------------------------------

// The three parts of a gRPC status. `code` is grpc::StatusCode.
struct WireStatus {
  int code = 0;
  std::string sentence;
  std::string details;  // a serialised v1::Refusal
};
// The one place that says which reason has which code; proto/rendezvous.proto lists them per call.
WireStatus to_status(const Refusal& refusal);
// None when the status does not come from lrun: then gRPC itself speaks.
std::optional<Refusal> to_refusal(const WireStatus& status);
// As gRPC's documentation spells it: "INVALID_ARGUMENT".
std::string_view code_name(int code);

}  // namespace lrun::rendezvous
