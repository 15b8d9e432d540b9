#include "loader/files_source.h"
#include "loader/sample_readers.h"

namespace millrace {

namespace {

Result<std::unique_ptr<SampleSource>> open_files(const SampleEnvironment& environment,
                                                 const std::string& directory, bool grouped) {
  return FilesSource::open(environment.files.manifest(),
                           {.directory = directory, .grouped = grouped});
}

}  // namespace

const SampleReader kFilesReader = {
    .name = FilesSource::kReader,
    .recognises = [](const RequestContext&, const SampleEnvironment&,
                     const std::string&) -> Result<bool> { return true; },
    .open = [](const RequestContext&, const SampleEnvironment& environment,
               const std::string& directory) { return open_files(environment, directory, false); },
};

const SampleReader kGroupedReader = {
    .name = FilesSource::kGroupedReader,
    .recognises = [](const RequestContext&, const SampleEnvironment&,
                     const std::string&) -> Result<bool> { return false; },
    .open = [](const RequestContext&, const SampleEnvironment& environment,
               const std::string& directory) { return open_files(environment, directory, true); },
};

}  // namespace millrace
