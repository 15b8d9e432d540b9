#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/transfer.h"
#include "dataset/publisher.h"
#include "dataset/registration.h"
#include "dataset/source_tree.h"

namespace millrace::cli {

// The flags of every command that makes a version.
struct PublishFlags {
  std::string source;
  std::string version;
  std::string notes;
  std::vector<std::string> labels;
  std::optional<std::uint64_t> sample_count;
  bool index = false;
  std::string created;
  bool dry_run = false;
  bool skip_problems = false;
  bool unsafe_single_writer = false;
  std::size_t parallel = 8;  // For work that the store does.
};

void add_publish_flags(CLI::App& command, PublishFlags& flags, const std::string& source_help);

// What such a command works with. Made once; the store lives as long as this does.
class PublishSession {
 public:
  // kUnsupported, with what to do, when the store cannot create-if-absent.
  static Result<std::unique_ptr<PublishSession>> open(Session& session, const PublishFlags& flags);

  const VersionRef& ref() const { return ref_; }
  const PublishEnvironment& environment() const { return environment_; }
  ObjectStore& store() { return *store_; }
  // A local directory, or what lies below a URL.
  Result<std::unique_ptr<SourceTree>> open_source(const Endpoint& source);
  // Where a place is inside the store of the registry; nothing when it is elsewhere.
  std::optional<std::string> key_in_store(const Location& location) const;
  // Where the objects below a place are, in the store of the registry or in another.
  Result<RegistrationPlace> registration_place(const Location& location);

  Result<VersionAnnotation> annotation() const;
  Result<std::optional<WallTime>> created() const;
  // Feeds a progress line.
  PublishProgress progress(Progress& line) const;
  Result<int> report(const PublishReport& report, TimePoint started, std::string_view done) const;

 private:
  PublishSession(Session& session, const PublishFlags& flags, VersionRef ref,
                 std::shared_ptr<ObjectStore> store, BufferPool& buffers);

  Session& session_;
  const PublishFlags& flags_;
  const VersionRef ref_;
  const std::shared_ptr<ObjectStore> store_;
  std::shared_ptr<ObjectStore> source_store_;  // When it is another one.
  const Registry registry_;
  const PublishEnvironment environment_;
};

}  // namespace millrace::cli
