// Signals to this process, as events of the loop.
//
// Owns which are watched: those that stop a job (unless they were ignored at start, as nohup does),
// and USR1/USR2, which must not end a launcher that schedulers warn with them.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <functional>

namespace lrun::launcher {

class Signals {
 public:
  // Make it after the keeper: workers start with the dispositions of before. `on_stop` gets TERM,
  // INT, HUP or QUIT, each time one comes.
  Signals(boost::asio::io_context& loop, std::function<void(int signal_number)> on_stop);

 private:
  void wait();
  boost::asio::signal_set set_;
  std::function<void(int)> on_stop_;
};

}  // namespace lrun::launcher
