#include "trainer/comm/failure.h"

#include "trainer/comm/errors.h"

namespace lrun::comm {

void throw_as_exception(const Failure& failure) {
  switch (failure.kind) {
    case Failure::Kind::PeerLost:
      throw PeerLost(failure.sentence, failure.peer);
    case Failure::Kind::Aborted:
      throw Aborted(failure.sentence);
    case Failure::Kind::DeadlineExceeded:
      throw DeadlineExceeded(failure.sentence);
    case Failure::Kind::Mismatch:
      throw Mismatch(failure.sentence);
  }
  throw Aborted(failure.sentence);
}

}  // namespace lrun::comm
