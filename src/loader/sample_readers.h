#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/request_context.h"
#include "base/status.h"
#include "dataset/sample_index.h"
#include "loader/sample_source.h"
#include "objectstore/object_store.h"

namespace millrace {

// What the user asks of a reader.
struct ReaderOptions {
  // Whether fields that are Python's pickles may be handed out. Whoever unpickles them runs what
  // code they hold.
  bool allow_pickle = false;
  // Whether files that have hashes of their own are read whole and compared, before the first
  // sample of them is.
  bool verify_hashes = false;
  bool operator==(const ReaderOptions&) const = default;
};

// What a reader works with. Files and store outlive the sources that are opened.
struct SampleEnvironment {
  SampleFiles& files;
  ObjectStore& store;  // That of the registry, which has the sample indexes.
  ReaderOptions options = {};
  // Finds the samples in the tar files of `files`, where there is no index of them. Null: who made
  // the version has to.
  std::function<Result<std::unique_ptr<SampleIndex>>(const RequestContext& context)> count_samples =
      {};
};

// A format of samples. Adding one is a file of its own and a row in the table of sample_readers.cc.
struct SampleReader {
  std::string_view name;
  // Whether the files below a directory of the version ("" is its root) look like this format.
  // Cheap: names, and perhaps one request.
  Result<bool> (*recognises)(const RequestContext& context, const SampleEnvironment& environment,
                             const std::string& directory);
  Result<std::unique_ptr<SampleSource>> (*open)(const RequestContext& context,
                                                const SampleEnvironment& environment,
                                                const std::string& directory);
};

extern const SampleReader kFilesReader;
extern const SampleReader kGroupedReader;
extern const SampleReader kWebDatasetReader;
extern const SampleReader kMdsReader;

// All readers, in the order in which they are asked whether they recognise a version.
std::span<const SampleReader* const> sample_readers();

// Opens the samples of a version by the reader of that name; "auto" takes the first that recognises
// it, which files always do. kInvalidArgument lists the readers when there is none of that name;
// else the reader's failures. Blocks.
Result<std::unique_ptr<SampleSource>> open_samples(const RequestContext& context,
                                                   const SampleEnvironment& environment,
                                                   std::string_view reader,
                                                   const std::string& directory);

}  // namespace millrace
