#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/cache/cache_simulation_world.h"

namespace millrace {

// A part of a file that some checksum covers.
struct CoveredBytes {
  std::string path;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// A cache whose files can be damaged while it is down.
class DamagedWorld : public SimulationWorld {
 public:
  explicit DamagedWorld(std::shared_ptr<SectorCipher> cipher = nullptr);

  void read_all();
  // What of the files with this extension is covered: all of it, but for the rest of a record's
  // last page in a segment, and for what no record takes.
  std::vector<CoveredBytes> covered(std::string_view extension);
  void flip(const std::string& path, std::uint64_t bit);

  std::vector<SimulatedObject> objects;

 private:
  void add_records(const std::string& path, std::vector<CoveredBytes>& parts);
};

// Flips one bit at a time while the cache is down. Fails the test when one reaches a reader, is not
// counted, or is not mended.
void flip_cache_bits(std::uint64_t seed, std::uint64_t count,
                     std::shared_ptr<SectorCipher> cipher = nullptr);

}  // namespace millrace
