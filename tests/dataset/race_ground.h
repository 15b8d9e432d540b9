#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "objectstore/object_store.h"
#include "tests/servers/s3_test_store.h"
#include "tests/servers/torture.h"

namespace millrace {

// The store that processes race on. They reach it by a URL, maybe through a proxy with faults;
// checks reach it directly. Each world of a race has a part of it for itself.
//
// Safe from any thread.
class RaceGround {
 public:
  virtual ~RaceGround() = default;

  virtual std::string url(const std::string& world) const = 0;
  virtual std::shared_ptr<ObjectStore> open(const std::string& world) = 0;
  virtual std::vector<std::pair<std::string, std::string>> environment() const { return {}; }
  // How long a process may stand still while others wait for it.
  virtual std::chrono::milliseconds pause_max() const { return std::chrono::seconds(5); }
};

class FileRaceGround final : public RaceGround {
 public:
  std::string url(const std::string& world) const override {
    return directory_.path() + "/" + world;
  }
  std::shared_ptr<ObjectStore> open(const std::string& world) override;
  // It may hold the lock of a key.
  std::chrono::milliseconds pause_max() const override { return std::chrono::milliseconds(400); }

 private:
  TortureDirectory directory_;
};

// The shared Ceph cluster; the processes use it at `endpoint`, which is its own or a proxy's.
class CephRaceGround final : public RaceGround {
 public:
  explicit CephRaceGround(std::string endpoint);

  std::string url(const std::string& world) const override;
  std::shared_ptr<ObjectStore> open(const std::string& world) override;
  std::vector<std::pair<std::string, std::string>> environment() const override;

 private:
  const std::string endpoint_;
  s3::S3TestStore direct_;
};

}  // namespace millrace
