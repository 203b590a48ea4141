#include "trainer/comm/failure.h"

#include "trainer/comm/errors.h"

namespace lrun::comm {

std::exception_ptr to_exception(const Failure& failure) {
  switch (failure.kind) {
    case Failure::Kind::PeerLost:
      return std::make_exception_ptr(PeerLost(failure.sentence, failure.peer));
    case Failure::Kind::Aborted:
      return std::make_exception_ptr(Aborted(failure.sentence));
    case Failure::Kind::DeadlineExceeded:
      return std::make_exception_ptr(DeadlineExceeded(failure.sentence));
    case Failure::Kind::Mismatch:
      return std::make_exception_ptr(Mismatch(failure.sentence));
  }
  return std::make_exception_ptr(Aborted(failure.sentence));
}

}  // namespace lrun::comm
