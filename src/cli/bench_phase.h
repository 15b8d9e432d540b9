#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/session.h"
#include "objectstore/object_store.h"

namespace millrace::cli {

// One measurement: so many requests of one kind.
struct BenchPhase {
  std::string name;  // "put" or "get".
  std::uint64_t object_bytes = 0;
  std::uint64_t requests = 0;
  double seconds = 0;
  std::vector<double> latencies_ms;  // Ascending.

  double bytes_per_second() const;
  double requests_per_second() const;
  // 50 is the median, 100 the slowest.
  double percentile_ms(int percentile) const;
};

// Sends the requests of `store bench`, `parallel` at a time, each timed from call to answer. The
// bytes are random, so that no store can shrink them. Session and store outlive it.
class Bench {
 public:
  Bench(Session& session, ObjectStore& store, std::size_t parallel);

  // Objects "<prefix><number>".
  Result<BenchPhase> write_objects(const std::string& prefix, std::uint64_t size,
                                   std::uint64_t count) const;
  Result<BenchPhase> read_objects(const std::string& prefix, std::uint64_t size,
                                  std::uint64_t count) const;
  // Ranges spread evenly over one object.
  Result<BenchPhase> read_ranges(const ObjectInfo& info, std::uint64_t size,
                                 std::uint64_t count) const;
  // Everything below the prefix. Also after an interruption, so that nothing stays behind.
  Status remove_objects(const std::string& prefix) const;

 private:
  using Request = std::function<Status(const RequestContext& context, std::uint64_t number)>;
  Result<BenchPhase> measure(std::string name, std::uint64_t size, std::uint64_t count,
                             const Request& request) const;

  Session& session_;
  ObjectStore& store_;
  const std::size_t parallel_;
};

}  // namespace millrace::cli
