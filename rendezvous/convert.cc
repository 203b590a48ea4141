#include "rendezvous/convert.h"

#include <grpcpp/support/status.h>

#include <array>
#include <cassert>

#include "proto/rendezvous.pb.h"
#include "rendezvous/convert_nouns.h"
#include "rendezvous/wire_limits.h"

namespace lrun::rendezvous {
namespace {

// The value, unless a limit was broken.
template <class Value>
Converted<Value> judged(const Limits& limits, Value value) {
  if (limits.refusal()) return *limits.refusal();
  return value;
}

// The same for an answer: the reader is the client, so the sentence says whose fault it is.
template <class Reply>
Reply judged_reply(const Limits& limits, Reply reply) {
  if (!limits.refusal()) return reply;
  Refusal refusal = *limits.refusal();
  refusal.sentence = "the service sent an answer that this lrun cannot read: " + refusal.sentence;
  return refusal;
}

NodeId read_node(Limits& limits, const std::string& name) {
  return NodeId{limits.required_text("node", name, kNodeNameBytesMax)};
}

}  // namespace

// --- requests
// --------------------------------------------------------------------------------------

void write_caller(const std::string& run_id, v1::Caller& wire) {
  wire.set_protocol_version(kProtocolVersion);
  wire.set_run_id(run_id);
}

std::optional<Refusal> check_caller(const v1::Caller& wire, const std::string& run_id_served,
                                    AnyRun any_run) {
  if (wire.protocol_version() != kProtocolVersion) {
    return Refusal{RefuseReason::BadRequest,
                   "the caller speaks version " + std::to_string(wire.protocol_version()) +
                       " of the protocol, this service version " +
                       std::to_string(kProtocolVersion) + ": use the same lrun on all nodes"};
  }
  if (wire.run_id().empty() && any_run == AnyRun::Accepted) return std::nullopt;
  if (wire.run_id() == run_id_served) return std::nullopt;
  return Refusal{RefuseReason::WrongRun, "run id '" + clean_text(wire.run_id(), kRunIdBytesMax) +
                                             "' is not served here, but '" + run_id_served +
                                             "': give every node the same --rdzv-id, or another "
                                             "endpoint to another job"};
}

void write(const JoinRequest& request, v1::JoinRequest& wire) {
  write_caller(request.run_id, *wire.mutable_caller());
  write(request.facts, *wire.mutable_facts());
  write(request.last_seen, *wire.mutable_last_seen());
  wire.set_restarts_spent(request.restarts_spent);
  if (request.failure) write(*request.failure, *wire.mutable_failure());
}

Converted<JoinRequest> read(const v1::JoinRequest& wire) {
  Limits limits;
  JoinRequest request;
  request.facts = read(limits, wire.facts());
  request.run_id = limits.text("run_id", wire.caller().run_id(), kRunIdBytesMax);
  request.last_seen = read(wire.last_seen());
  request.restarts_spent = limits.number("restarts_spent", wire.restarts_spent(), 0, kRestartsMax);
  if (wire.has_failure()) request.failure = read(limits, wire.failure());
  return judged(limits, request);
}

void write(const WatchRequest& request, v1::WatchRequest& wire) {
  write_caller(request.run_id, *wire.mutable_caller());
  wire.set_node(request.node.value);
  wire.set_incarnation(request.incarnation.value);
}

Converted<WatchRequest> read(const v1::WatchRequest& wire) {
  Limits limits;
  WatchRequest request;
  request.node = read_node(limits, wire.node());
  request.incarnation.value = wire.incarnation();
  request.run_id = limits.text("run_id", wire.caller().run_id(), kRunIdBytesMax);
  return judged(limits, request);
}

void write(const HeartbeatRequest& request, v1::HeartbeatRequest& wire) {
  write_caller(request.run_id, *wire.mutable_caller());
  write(request.facts, *wire.mutable_facts());
  if (request.running) write(*request.running, *wire.mutable_running());
  wire.set_state(wire_enumerator<v1::AgentState>(request.state));
  wire.set_restarts_spent(request.restarts_spent);
  write(request.progress, *wire.mutable_progress());
  if (request.failure) write(*request.failure, *wire.mutable_failure());
}

Converted<HeartbeatRequest> read(const v1::HeartbeatRequest& wire) {
  Limits limits;
  HeartbeatRequest request;
  request.facts = read(limits, wire.facts());
  request.run_id = limits.text("run_id", wire.caller().run_id(), kRunIdBytesMax);
  if (wire.has_running()) request.running = read(limits, wire.running());
  request.state = limits.enumerator("state", wire.state(), AgentState::Done);
  request.restarts_spent = limits.number("restarts_spent", wire.restarts_spent(), 0, kRestartsMax);
  request.progress = read(limits, wire.progress());
  if (wire.has_failure()) request.failure = read(limits, wire.failure());
  return judged(limits, request);
}

void write(const LeaveRequest& request, v1::LeaveRequest& wire) {
  write_caller(request.run_id, *wire.mutable_caller());
  wire.set_node(request.node.value);
  wire.set_incarnation(request.incarnation.value);
  write(request.generation, *wire.mutable_generation());
  wire.set_kind(wire_enumerator<v1::LeaveKind>(request.kind));
  if (request.cause) write(*request.cause, *wire.mutable_cause());
}

Converted<LeaveRequest> read(const v1::LeaveRequest& wire) {
  Limits limits;
  LeaveRequest request;
  request.node = read_node(limits, wire.node());
  request.incarnation.value = wire.incarnation();
  request.run_id = limits.text("run_id", wire.caller().run_id(), kRunIdBytesMax);
  request.generation = read(wire.generation());
  request.kind = limits.enumerator("kind", wire.kind(), LeaveKind::Drained);
  if (wire.has_cause()) request.cause = read(limits, wire.cause());
  return judged(limits, request);
}

void write(const PublishRequest& request, v1::PublishRequest& wire) {
  write(request.generation, *wire.mutable_generation());
  wire.set_key(request.key);
  wire.set_value(request.value);
}

Converted<PublishRequest> read(const v1::PublishRequest& wire) {
  Limits limits;
  PublishRequest request;
  request.generation = read(wire.generation());
  request.key = limits.required_text("key", wire.key(), kKeyBytesMax);
  request.value = limits.text("value", wire.value(), kValueBytesMax);
  return judged(limits, request);
}

void write(const LookupRequest& request, v1::LookupRequest& wire) {
  write(request.generation, *wire.mutable_generation());
  wire.set_key(request.key);
}

Converted<LookupRequest> read(const v1::LookupRequest& wire) {
  Limits limits;
  LookupRequest request;
  request.generation = read(wire.generation());
  request.key = limits.required_text("key", wire.key(), kKeyBytesMax);
  return judged(limits, request);
}

Converted<NodeId> read(const v1::DrainRequest& wire) {
  Limits limits;
  return judged(limits, read_node(limits, wire.node()));
}

Converted<std::string> read(const v1::StopRequest& wire) {
  Limits limits;
  return judged(limits, limits.text("reason", wire.reason(), kStopReasonBytesMax));
}

// --- replies
// ---------------------------------------------------------------------------------------

void write(const JoinReply& reply, v1::JoinReply& wire) {
  assert(!std::holds_alternative<Refusal>(reply));
  if (const auto* assignment = std::get_if<Assignment>(&reply)) {
    write(*assignment, *wire.mutable_assignment());
  } else {
    wire.mutable_ask_again();
  }
}

JoinReply read(const v1::JoinReply& wire) {
  Limits limits;
  if (wire.has_ask_again()) return AskAgain{};
  const Assignment assignment = read(limits, wire.assignment());
  return judged_reply<JoinReply>(limits, assignment);
}

void write(const WatchReply& reply, v1::WatchReply& wire) {
  assert(!std::holds_alternative<Refusal>(reply));
  if (const auto* directive = std::get_if<Directive>(&reply)) {
    write(*directive, *wire.mutable_directive());
  } else {
    wire.mutable_ask_again();
  }
}

WatchReply read(const v1::WatchReply& wire) {
  Limits limits;
  if (wire.has_ask_again()) return AskAgain{};
  const Directive directive = read(limits, wire.directive());
  return judged_reply<WatchReply>(limits, directive);
}

void write(const HeartbeatReply& reply, v1::HeartbeatReply& wire) {
  write(reply.directive, *wire.mutable_directive());
  write(reply.interval, *wire.mutable_interval());
  write(reply.lease, *wire.mutable_lease());
}

HeartbeatAnswer read(const v1::HeartbeatReply& wire) {
  Limits limits;
  HeartbeatReply reply;
  reply.directive = read(limits, wire.directive());
  reply.interval = read(limits, "interval", wire.interval());
  reply.lease = read(limits, "lease", wire.lease());
  limits.require(reply.interval > Duration{} && reply.lease > Duration{}, "interval or lease",
                 "above 0");
  return judged_reply<HeartbeatAnswer>(limits, reply);
}

void write(const LookupReply& reply, v1::LookupReply& wire) {
  assert(!std::holds_alternative<Refusal>(reply));
  if (const auto* value = std::get_if<std::string>(&reply)) {
    wire.set_value(*value);
  } else {
    wire.mutable_ask_again();
  }
}

LookupReply read(const v1::LookupReply& wire) {
  Limits limits;
  if (wire.has_ask_again()) return AskAgain{};
  limits.require(wire.has_value(), "value", "set");
  const std::string value = limits.text("value", wire.value(), kValueBytesMax);
  return judged_reply<LookupReply>(limits, value);
}

AcknowledgeAnswer read(const v1::Acknowledgement&) { return std::monostate{}; }

// --- refusals
// --------------------------------------------------------------------------------------

namespace {

grpc::StatusCode code_of(RefuseReason reason) {
  switch (reason) {
    case RefuseReason::Closed:
      return grpc::StatusCode::FAILED_PRECONDITION;
    case RefuseReason::DuplicateNode:
    case RefuseReason::DuplicateRank:
      return grpc::StatusCode::ALREADY_EXISTS;
    case RefuseReason::Superseded:
      return grpc::StatusCode::PERMISSION_DENIED;
    case RefuseReason::StaleGeneration:
      return grpc::StatusCode::ABORTED;
    case RefuseReason::JoinTimedOut:
      return grpc::StatusCode::DEADLINE_EXCEEDED;
    case RefuseReason::Full:
      return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case RefuseReason::BadRequest:
      return grpc::StatusCode::INVALID_ARGUMENT;
    case RefuseReason::UnknownNode:
    case RefuseReason::WrongRun:
      return grpc::StatusCode::NOT_FOUND;
  }
  return grpc::StatusCode::INTERNAL;  // a value that is no enumerator
}

}  // namespace

WireStatus to_status(const Refusal& refusal) {
  v1::Refusal details;
  details.set_reason(wire_enumerator<v1::RefuseReason>(refusal.reason));
  return {.code = code_of(refusal.reason),
          .sentence = clean_text(refusal.sentence, kSentenceBytesMax),
          .details = details.SerializeAsString()};
}

std::optional<Refusal> to_refusal(const WireStatus& status) {
  v1::Refusal details;
  if (status.details.empty() || !details.ParseFromString(status.details)) return std::nullopt;
  Limits limits;
  const RefuseReason reason = limits.enumerator("reason", details.reason(), RefuseReason::WrongRun);
  if (limits.refusal() || code_of(reason) != status.code) return std::nullopt;
  return Refusal{reason, clean_text(status.sentence, kSentenceBytesMax)};
}

std::string_view code_name(int code) {
  constexpr std::array<std::string_view, 17> kNames = {"OK",
                                                       "CANCELLED",
                                                       "UNKNOWN",
                                                       "INVALID_ARGUMENT",
                                                       "DEADLINE_EXCEEDED",
                                                       "NOT_FOUND",
                                                       "ALREADY_EXISTS",
                                                       "PERMISSION_DENIED",
                                                       "RESOURCE_EXHAUSTED",
                                                       "FAILED_PRECONDITION",
                                                       "ABORTED",
                                                       "OUT_OF_RANGE",
                                                       "UNIMPLEMENTED",
                                                       "INTERNAL",
                                                       "UNAVAILABLE",
                                                       "DATA_LOSS",
                                                       "UNAUTHENTICATED"};
  const bool is_known = code >= 0 && static_cast<std::size_t>(code) < kNames.size();
  return is_known ? kNames[static_cast<std::size_t>(code)] : "UNKNOWN";
}

}  // namespace lrun::rendezvous
