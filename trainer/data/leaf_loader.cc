#include "trainer/data/leaf_loader.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

namespace lrun::data {
namespace {

GlobalBatch load(const Dataset& dataset, const ElasticSampler& sampler, comm::Subtree block,
                 Position position) {
  GlobalBatch batch{.position = position, .size = sampler.batch_size(position), .leaves = {}};
  for (int index = block.first; index < block.last; ++index) {
    Leaf leaf{.leaf = index, .samples = sampler.leaf(position, index), .batch = {}};
    if (!leaf.samples.empty()) leaf.batch = dataset.batch(leaf.samples);
    batch.leaves.push_back(std::move(leaf));
  }
  return batch;
}

}  // namespace

struct LeafLoader::Impl {
  Impl(const Dataset& set, const ElasticSampler& order, Options chosen)
      : dataset(set), sampler(order), options(chosen), position(chosen.start) {
    if (options.prefetch > 0) thread = std::thread([this] { run(); });
  }
  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    changed.notify_all();
    if (thread.joinable()) thread.join();
  }

  void run() {
    try {
      for (;;) {
        GlobalBatch batch = load_one();
        std::unique_lock lock(mutex);
        changed.wait(lock, [this] { return stopping || has_room(); });
        if (stopping) return;
        queue.push_back(std::move(batch));
        changed.notify_all();
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      error = std::current_exception();
      changed.notify_all();
    }
  }

  GlobalBatch load_one() {
    GlobalBatch batch = load(dataset, sampler, options.block, position);
    position = sampler.after(position);
    return batch;
  }

  GlobalBatch next() {
    if (options.prefetch == 0) return load_one();
    std::unique_lock lock(mutex);
    // Ends with a batch or with the loader's exception: its thread always brings one of the two.
    changed.wait(lock, [this] { return !queue.empty() || error; });
    if (queue.empty()) std::rethrow_exception(error);
    GlobalBatch batch = std::move(queue.front());
    queue.pop_front();
    changed.notify_all();
    return batch;
  }

  bool has_room() const { return queue.size() < static_cast<std::size_t>(options.prefetch); }

  const Dataset& dataset;
  const ElasticSampler sampler;
  const Options options;
  Position position;  // of the next batch to load; the loader thread's alone
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<GlobalBatch> queue;
  std::exception_ptr error;
  bool stopping = false;
  std::thread thread;  // last: started when everything above exists
};

LeafLoader::LeafLoader(const Dataset& dataset, const ElasticSampler& sampler, Options options)
    : impl_(std::make_unique<Impl>(dataset, sampler, options)) {}
LeafLoader::~LeafLoader() = default;

GlobalBatch LeafLoader::next() { return impl_->next(); }

}  // namespace lrun::data
