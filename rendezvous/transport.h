// What both ends of the wire need of gRPC: its process-wide settings, and credentials.
//
// Owns what gRPC says by itself (debug lines; a failed handshake of a server is a warning). Used by
// rendezvous/{server,client}; a program that makes neither never starts gRPC.
#pragma once

#include <memory>
#include <string>

#include "rendezvous/credentials.h"

namespace grpc {
class ChannelCredentials;
class ServerCredentials;
}  // namespace grpc

namespace lrun::rendezvous {

// On the loop's thread, before anything else of gRPC; repeating it does nothing.
void start_grpc();

// From now on a peer that fails the handshake is worth a warning, at most one a minute and kind.
void warn_of_failed_handshakes();

// Said at each start with --insecure-network, by either end.
void warn_of_plain_text(const std::string& endpoint);

// Null: plain text. The files of the folder are read again when they change, so that rotated
// certificates restart nothing. A peer must hold a certificate of the folder's CA; host names are
// not compared.
std::shared_ptr<grpc::ServerCredentials> server_credentials(const Credentials* credentials);
std::shared_ptr<grpc::ChannelCredentials> channel_credentials(const Credentials* credentials);

}  // namespace lrun::rendezvous
