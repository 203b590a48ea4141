// A job's status as text for people and as JSON for programs (schema in docs/status.md). Pure.
#pragma once

#include <cstddef>
#include <string>

#include "rendezvous/events.h"

namespace lrun::launcher {

inline constexpr int kStatusSchema = 1;

std::string status_as_json(const rendezvous::Status& status);
std::string status_as_text(const rendezvous::Status& status, std::size_t columns);

// 0 healthy or succeeded; 1 failed, or fewer participants than MIN.
int status_exit_code(const rendezvous::Status& status);

}  // namespace lrun::launcher
