#include "tests/dataset/race_ground.h"

#include <filesystem>

#include <fmt/format.h>

#include "objectstore/file_object_store.h"
#include "objectstore/prefixed_object_store.h"

namespace millrace {

using testing::CephServer;

std::shared_ptr<ObjectStore> FileRaceGround::open(const std::string& world) {
  std::filesystem::create_directories(url(world));
  return FileObjectStore::open(url(world), inline_executor(), {}).value();
}

CephRaceGround::CephRaceGround(std::string endpoint)
    : endpoint_(std::move(endpoint)), direct_(s3::ceph_target(CephServer::shared().endpoint())) {}

std::string CephRaceGround::url(const std::string& world) const {
  return fmt::format("s3://{}/{}?endpoint={}", CephServer::kSharedBucket, world, endpoint_);
}

std::shared_ptr<ObjectStore> CephRaceGround::open(const std::string& world) {
  return std::make_shared<PrefixedObjectStore>(
      std::shared_ptr<ObjectStore>(&direct_.retrying(), [](ObjectStore*) {}), world);
}

std::vector<std::pair<std::string, std::string>> CephRaceGround::environment() const {
  return {{"AWS_ACCESS_KEY_ID", CephServer::shared().access_key()},
          {"AWS_SECRET_ACCESS_KEY", CephServer::shared().secret_key()}};
}

}  // namespace millrace
